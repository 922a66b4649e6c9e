"""What MSL forbids and C++ allows, or what would make generated MSL hard to check."""

import re

from text import close, line, strip_comments

_SPACE = r"(?:device|constant|threadgroup|thread)\b"
_TYPE = (
    r"(?:const\s+)?(?:float|half|bfloat|int|uint|short|ushort|char|uchar|long|ulong|bool|void"
    r"|size_t|atomic_\w+|[A-Z]\w*)[234]?(?:\s+const)?"
)
_POINTER = re.compile(
    rf"([(,;{{<]\s*)((?:\w+\s+)*?)({_TYPE})\s*[*&]+\s*(?=\)|>|\w+\s*(?:[,);=\[]|\[\[))"
)
_C_ONLY = re.compile(
    r"\b(double|float64_t|long\s+long|new|delete|throw|try|catch|virtual|dynamic_cast|typeid"
    r"|goto|std|malloc|printf|thread_local|static_cast<\s*double)\b"
)
_GLOBAL = re.compile(r"^(?:static\s+)?const(?:expr)?\s+\w+", re.M)
_LAMBDA = re.compile(r"\[[&=\w, ]*\]\s*\([^()]*\)\s*(?:->\s*\w+\s*)?\{")
_SCOPED = re.compile(r"(?<=[;{}])\s*threadgroup\s+[\w:]+\s+(\w+)\s*\[")


def lint(source: str) -> list[tuple[int, str]]:
    """(line, complaint) of everything suspicious."""
    text = strip_comments(source)
    found = []
    for m in _POINTER.finditer(text):
        if not re.search(_SPACE, m.group(2)) and "return" not in m.group(2):
            what = f"pointer or reference without an address space: {m.group(3)} *"
            found.append((line(text, m.start(3)), what))
    for m in _C_ONLY.finditer(text):
        found.append((line(text, m.start()), f"MSL has no '{m.group(1)}'"))
    for m in _GLOBAL.finditer(text):
        if text.count("{", 0, m.start()) == text.count("}", 0, m.start()):
            found.append((line(text, m.start()), "a global that is not constant"))
    for m in _LAMBDA.finditer(text):
        found.append((line(text, m.start()), "MSL has no lambdas"))
    kernels = [
        (body := text.find("{", close(text, m.end() - 1)), close(text, body))
        for m in re.finditer(r"\bkernel\s+void\s+\w+\s*\(", text)
    ]
    for m in _SCOPED.finditer(text):
        inside = [k for k in kernels if k[0] < m.start() < k[1]]
        depth = inside and text.count("{", inside[0][0], m.start()) - text.count(
            "}", inside[0][0], m.start()
        )
        if depth not in (0, 1):
            found.append((line(text, m.start()), "threadgroup memory inside a loop or branch"))
        elif not inside:
            found.append((line(text, m.start()), "threadgroup memory outside of a kernel"))
    return sorted(found)
