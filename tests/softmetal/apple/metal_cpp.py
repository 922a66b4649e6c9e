"""Apple's metal-cpp headers as an authority: selectors, type encodings and enums, read as text."""

import re
from dataclasses import dataclass, field
from pathlib import Path

_SCALARS = {
    "void": "v", "bool": "B", "float": "f", "double": "d", "char": "c", "int": "i",
    "unsigned int": "I", "unsigned short": "S", "unichar": "S", "long long": "q",
    "unsigned long long": "Q", "uint8_t": "C", "uint32_t": "I", "uint64_t": "Q", "int64_t": "q",
    "UInteger": "Q", "Integer": "q", "TimeInterval": "d", "CFTimeInterval": "d",
    "StringEncoding": "Q", "GPUAddress": "Q",
}  # fmt: skip
_STRUCTS = {
    "Size": "{?=QQQ}", "Range": "{_NSRange=QQ}", "ResourceID": "{MTLResourceID=Q}",
    "OperatingSystemVersion": "{?=qqq}",
}  # fmt: skip
_FOUNDATION = {"String", "Error", "Array", "URL", "Dictionary", "ProcessInfo", "Object"}


@dataclass
class MetalCpp:
    methods: dict[str, dict[str, str]] = field(default_factory=dict)  # type -> "-sel:" -> encoding
    enums: dict[str, str] = field(default_factory=dict)  # MTLStorageMode -> Q
    protocols: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)


class _Reader:
    def __init__(self, root: Path):
        files = [*sorted(root.glob("Metal/*.hpp")), *sorted(root.glob("Foundation/*.hpp"))]
        self.text = "\n".join(f.read_text() for f in files)
        flat = re.sub(r"[ \t]*\n[ \t]*", " ", self.text)
        found = re.findall(r'_(?:MTL|NS)_PRIVATE_DEF_SEL\(\s*(\w+),\s*"([^"]+)"\)', flat)
        self.selectors = dict(found)
        self.result = MetalCpp(
            protocols=set(re.findall(r"PRIVATE_DEF_PRO\((\w+)\)", self.text)),
            classes=set(re.findall(r"PRIVATE_DEF_CLS\((\w+)\)", self.text)),
        )
        declared = re.findall(r"_(MTL|NS)_(?:ENUM|OPTIONS)\(\s*([\w:]+),\s*(\w+)\s*\)", self.text)
        self.enums = {}
        for prefix, kind, name in declared:
            if code := _SCALARS.get(kind.split("::")[-1]):
                self.enums[name] = self.result.enums[prefix + name] = code

    def encode(self, kind: str) -> str:
        """A C++ type as Objective-C encodes it, without offsets."""
        is_const = kind.strip().startswith("const ")
        pointers = kind.count("*") + kind.count("[]")
        base = re.sub(r"\bconst\b|[*&]|\[\]", " ", kind).strip()
        name = base.split("::")[-1].strip()
        if "function" in base or re.search(r"(Handler|Block|Deallocator)$", name) or "^" in kind:
            return "@?"
        if "SEL" in base:
            return ":"
        code = (
            _SCALARS.get(base) or _SCALARS.get(name) or _STRUCTS.get(name) or self.enums.get(name)
        )
        if code == "c" and pointers == 1:
            return ("r" if is_const else "") + "*"
        if code is None:
            pointers -= 1
            code = self._object(base, name) if pointers <= 0 else "@"
        return ("r" if is_const and pointers > 0 else "") + "^" * pointers + code

    def _object(self, base: str, name: str) -> str:
        if name in ("Object", "_Object", "ObjectType"):
            return "@"
        prefix = "NS" if "NS::" in base or name in _FOUNDATION else "MTL"
        full = prefix + name
        return f'@"<{full}>"' if full in self.result.protocols else f'@"{full}"'

    def read(self) -> MetalCpp:
        pattern = re.compile(
            r"_(?:MTL|NS)_INLINE\s+(?:template\s*<[^>]*>\s*)?([\w:<>\s\*&]+?)\s*"
            r"\b(MTL4?|NS)::(\w+)(?:<[^>]*>)?::(~?\w+)\(([^{};]*?)\)\s*(?:const)?\s*\{(.*?)\n\}",
            re.S,
        )
        for returned, space, owner, _, arguments, body in pattern.findall(self.text):
            sent = re.search(
                r"sendMessage(?:Safe)?<([^;]*?)>\(\s*([^;]*?),\s*_(?:MTL|NS)_PRIVATE_SEL\((\w+)\)",
                body,
            )
            selector = sent and self.selectors.get(sent.group(3))
            if not sent or not selector:
                continue
            parts = [a for a in re.split(r",(?![^<(]*[>)])", arguments) if a.strip()]
            if len(parts) != selector.count(":"):
                continue
            kinds = [re.sub(r"\b\w+(\s*\[\])?\s*$", r"\1", p.strip()) for p in parts]
            encoding = self.encode(returned) + "@:" + "".join(map(self.encode, kinds))
            sign = "+" if "PRIVATE_CLS" in sent.group(2) else "-"
            self.result.methods.setdefault(space + owner, {})[sign + selector] = encoding
        return self.result


def load(root: Path) -> MetalCpp:
    return _Reader(root).read()
