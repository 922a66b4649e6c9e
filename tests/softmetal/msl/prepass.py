"""Turns MSL into C++ for the runner: vector constructors, threadgroup memory, function constants
and entry points."""

import re
from dataclasses import dataclass, field

import glue

from text import close, line, split, strip_comments

_VECTOR = r"(?:float|half|bfloat|int|uint|short|ushort|char|uchar|long|ulong|bool)[234]"
_CONSTANT = re.compile(r"\bconstant\s+(\w+)\s+(\w+)\s*\[\[\s*function_constant\((\d+)\)\s*\]\]\s*;")
_SHARED = re.compile(
    r"(?P<lead>(?<=[;{}])\s*)threadgroup\s+(?P<type>[\w:<>, ]+?)\s+(?P<name>\w+)\s*"
    r"(?P<dims>(?:\[[^\]]*\])*)\s*;"
)


@dataclass
class Constant:
    type: str
    name: str
    index: int


@dataclass
class Kernel:
    name: str
    parameters: list[str]
    body: str = ""
    shared: list[str] = field(default_factory=list)  # types of its threadgroup variables


@dataclass
class Unit:
    """What one file declares."""

    constants: list[Constant]
    kernels: list[Kernel]
    tables: dict[str, list[tuple[str, str, int]]]  # struct -> (type, name, id)


def parse(text: str) -> Unit:
    tables = {}
    for m in re.finditer(r"struct\s+(\w+)\s*\{(.*?)\};", text, re.S):
        members = re.findall(r"([^;{}]*?)\b(\w+)\s*\[\[\s*id\((\d+)\)\s*\]\]\s*;", m.group(2))
        if members:
            tables[m.group(1)] = [(t.strip(), name, int(i)) for t, name, i in members]
    constants = [Constant(t, name, int(i)) for t, name, i in _CONSTANT.findall(text)]
    kernels = []
    for m in re.finditer(r"(?:\bkernel|\[\[\s*kernel\s*\]\])\s+void\s+(\w+)\s*(?=\()", text):
        end = close(text, m.end())
        parameters = [re.sub(r"\s+", " ", p) for p in split(text[m.end() + 1 : end - 1])]
        start = text.find("{", end)
        body = text[start : close(text, start)]
        shared = [s.group("type") + s.group("dims") for s in _SHARED.finditer(body)]
        kernels.append(Kernel(m.group(1), parameters, body, shared))
    return Unit(constants, kernels, tables)


def rewrite(text: str, check: bool) -> str:
    """The same text as C++; `check`: for the pass that only checks address spaces."""

    def constant(m: re.Match[str]) -> str:
        return f"static {m.group(1)} {m.group(2)}; static bool {m.group(2)}__defined;"

    def shared(m: re.Match[str]) -> str:
        kind, name, dims = m.group("type"), m.group("name"), m.group("dims")
        if check:
            return f"{m.group('lead')}static threadgroup {kind} {name}{dims};"
        whole = f"msl::type<{kind}{dims}>"
        return f"{m.group('lead')}{whole}& {name} = msl::shared<{whole}>();"

    text = _CONSTANT.sub(constant, text)
    text = re.sub(r"is_function_constant_defined\(\s*(\w+)\s*\)", r"\1__defined", text)
    text = _SHARED.sub(shared, text)
    text = re.sub(rf"\b({_VECTOR})\s*\((?!\s*\*)", r"msl::make<\1>(", text)
    return re.sub(r"\[\[(?!\s*(?:unroll|likely|unlikely))[^\]]*\]\]", "", text)


def convert(source: str, name: str, check: bool = False) -> str:
    """C++ text of one .metal file."""
    text = strip_comments(source)
    unit = parse(text)
    for k in unit.kernels:
        for p in k.parameters:
            if p.count("[[") != 1:
                where = line(text, text.find(k.name))
                raise SystemExit(f"{name}:{where}: {k.name}: needs one attribute: {p}")
    code = f'#line 1 "{name}"\n{rewrite(text, check)}\n'
    return code if check else code + glue.entries(unit)
