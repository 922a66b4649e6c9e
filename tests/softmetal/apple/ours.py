"""Our own headers: protocols and classes through the compiler, enums and availability as text."""

import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from .macho import Image, Protocol

_BLOCK_COMMENT = re.compile(r"//[^\n]*")


@dataclass
class Headers:
    protocols: dict[str, Protocol] = field(default_factory=dict)
    classes: dict[str, Protocol] = field(default_factory=dict)
    enums: dict[str, str] = field(default_factory=dict)  # name -> Q or q
    values: dict[str, int] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    newer: set[str] = field(default_factory=set)  # "MTLDevice -newX:" and types after macOS 14


def read_text(include: Path) -> str:
    """All headers, without comments and preprocessor lines."""
    files = [*sorted(include.glob("Foundation/*.h")), *sorted(include.glob("Metal/*.h"))]
    text = "\n".join(_BLOCK_COMMENT.sub("", f.read_text()) for f in files)
    return re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def _containers(text: str) -> list[tuple[str, str, str, str]]:
    """(what stands before, protocol or interface, name, body) of each declaration."""
    pattern = re.compile(
        r"((?:API_AVAILABLE\(macos\([\d.]+\)\)|__attribute__\(\(\w+\)\))\s*)?"
        r"@(protocol|interface)\s+(\w+)\b(?:<[^>]*>)?([^;{\n]*)(.*?)@end",
        re.S,
    )
    return [
        (m[1] or "", m[2], m[3], m[5])
        for m in pattern.finditer(re.sub(r"@protocol [\w, \n]+;", "", text))
    ]


def _selector(declaration: str) -> str:
    """The selector of "- (void)setBuffer:(id)b offset:(NSUInteger)o"."""
    sign, rest = declaration[0], re.sub(r"API_AVAILABLE.*|NS_\w+", "", declaration[1:])
    rest = _drop_parentheses(rest)
    named = re.findall(r"(\w*)\s*:", rest)
    return sign + ("".join(f"{n}:" for n in named) if named else rest.split()[0])


def _drop_parentheses(text: str) -> str:
    out, depth = "", 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth == 0 and c != ")":
            out += c
    return out


def _newer(before: str, name: str, body: str) -> set[str]:
    found = set()
    mark = re.compile(r"API_AVAILABLE\(macos\((\d+)")
    whole = (m := mark.search(before)) and int(m[1]) > 14
    if whole:
        found.add(name)
    for statement in re.split(r"[;{}]", body):
        statement = " ".join(statement.split())
        if not whole and not ((m := mark.search(statement)) and int(m[1]) > 14):
            continue
        if (at := re.search(r"[-+] ?\(", statement)) is not None:
            found.add(f"{name} {_selector(statement[at.start() :])}")
        elif "@property" in statement:
            plain = re.sub(r"API_AVAILABLE\(.*", "", statement)
            getter = re.search(r"getter=(\w+)", statement)
            last = re.findall(r"\w+", plain)[-1]
            found.add(f"{name} -{getter[1] if getter else last}")
            if "readonly" not in statement:
                found.add(f"{name} -set{last[0].upper()}{last[1:]}:")
    return found


def _compile(clang: str, lld: str, include: Path, source: str) -> dict[str, Protocol]:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "ours.m").write_text(source)
        target = ["-target", "arm64-apple-macos14", "-fblocks", "-ffreestanding"]
        objc = include.parent / "objcrt"
        flags = ["-w", "-Werror=undef-prefix", f"-I{include}", f"-I{objc}"]
        run = [clang, *target, *flags, "-c", "ours.m", "-o", "ours.o"]
        subprocess.run(run, cwd=base, check=True)
        link = [lld, "-arch", "arm64", "-platform_version", "macos", "14.0", "14.0", "-dylib"]
        link += ["-undefined", "dynamic_lookup", "-no_fixup_chains", "-o", "ours.dylib", "ours.o"]
        subprocess.run(link, cwd=base, check=True)
        return Image(base / "ours.dylib").protocols()


def load(include: Path, clang: str, lld: str) -> Headers:
    text = read_text(include)
    found = Headers()
    source = "#import <Metal/Metal.h>\ntypedef id ObjectType;\n"
    for before, kind, name, body in _containers(text):
        found.newer |= _newer(before, name, body)
        if kind == "interface":
            # A class of which only the declaration is seen has no metadata: its twin protocol has.
            body = re.sub(r"^\s*\{.*?\}", "", body, flags=re.S)
            source += f"@protocol class_{name}\n{body}\n@end\n"
            name = f"class_{name}"
        source += f"Protocol* force_{name}(void) {{ return @protocol({name}); }}\n"
    for name, protocol in _compile(clang, lld, include, source).items():
        if name.startswith("class_"):
            found.classes[name.removeprefix("class_")] = protocol
        else:
            found.protocols[name] = protocol
    for kind, name in re.findall(r"NS_(?:ENUM|OPTIONS)\((\w+),\s*(\w+)\)", text):
        found.enums[name] = {"NSUInteger": "Q", "NSInteger": "q"}[kind]
    for name, value in re.findall(r"\b((?:MTL|NS)\w+) = ([^,;{}\n]+?)\s*[,}\n]", text):
        found.values[name] = eval(value)
    found.functions = re.findall(r"MTL_EXTERN [\w<>* ]+?\b(\w+)\(void\)", text)
    found.constants = re.findall(r"MTL_EXTERN NSErrorDomain const (\w+);", text)
    return found
