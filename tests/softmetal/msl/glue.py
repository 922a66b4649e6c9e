"""Entry points and tables for the runner and the software Metal: C++ text for runner.h."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prepass import Kernel, Unit

# Attribute -> (C++ expression, whether it has components).
_POSITIONS = {
    "thread_position_in_grid": ("t->in_grid", True),
    "thread_position_in_threadgroup": ("t->in_group", True),
    "threadgroup_position_in_grid": ("t->group", True),
    "threads_per_threadgroup": ("d->group_size", True),
    "threadgroups_per_grid": ("d->groups", True),
    "threads_per_grid": ("d->grid", True),
    "thread_index_in_threadgroup": ("t->index", False),
    "thread_index_in_simdgroup": ("t->lane", False),
    "simdgroup_index_in_threadgroup": ("t->simdgroup", False),
    "threads_per_simdgroup": ("32u", False),
    "simdgroups_per_threadgroup": ("msl::simdgroups(d)", False),
}
_TYPES = {
    "bool": "Bool", "char": "Char", "uchar": "UChar", "short": "Short", "ushort": "UShort",
    "int": "Int", "uint": "UInt", "half": "Half", "float": "Float", "bfloat": "BFloat",
}  # fmt: skip


class _Signature:
    """One kernel's parameters: call arguments, buffer bindings, members of argument buffers."""

    def __init__(self, kernel: Kernel, unit: Unit):
        self.call: list[str] = []
        self.buffers: list[str] = []
        self.members: list[str] = []
        for parameter in kernel.parameters:
            attribute = re.search(r"\[\[\s*(\w+)(?:\((\d+)\))?\s*\]\]", parameter)
            declared = re.sub(r"\[\[.*?\]\]", "", parameter).strip()
            match = re.match(r"(.*?)(\w+)$", declared)
            if not attribute or not match:
                raise SystemExit(f"{kernel.name}: cannot read parameter: {parameter}")
            kind, name = match.group(1).strip(), match.group(2)
            what, number = attribute.group(1), int(attribute.group(2) or 0)
            if what == "buffer":
                self._buffer(unit, kind, name, number)
            elif what == "threadgroup":
                self.call.append(f"({kind})d->group_memory[{number}]")
            elif what in _POSITIONS:
                self._position(kind, *_POSITIONS[what])
            else:
                raise SystemExit(f"{kernel.name}: unknown attribute {what}")

    def _buffer(self, unit: Unit, kind: str, name: str, number: int) -> None:
        writes = not re.search(r"\b(?:const|constant)\b", kind)
        base = re.sub(r"\b(?:constant|device|const)\b|[&*]", "", kind).strip()
        if kind.endswith("&"):
            self.call.append(f"*({kind[:-1].strip()}*)d->buffers[{number}]")
        else:
            self.call.append(f"({kind})d->buffers[{number}]")
        for member, field, index in unit.tables.get(base, []):
            is_pointer = "*" in member
            member_writes = is_pointer and not re.search(r"\b(?:const|constant)\b", member)
            self.members.append(
                f'{{"{field}", {number}, {index}, offsetof({base}, {field}), '
                f"sizeof({base}::{field}), {_flag(is_pointer)}, {_flag(member_writes)}}}"
            )
        size = f"sizeof({base})" if base != "void" else "1"
        is_table = base in unit.tables
        is_array = is_table and kind.endswith("*")
        self.buffers.append(
            f'{{"{name}", {number}, {size}, alignof({base}), {_flag(writes)}, {_flag(is_table)}, '
            f"{_flag(is_array)}}}"
        )

    def _position(self, kind: str, value: str, has_components: bool) -> None:
        width = re.search(r"([23])$", kind)
        if width:
            parts = [f"(msl::lanes<{kind}>::e){value}.v[{i}]" for i in range(int(width.group(1)))]
            self.call.append(f"{kind}{{{', '.join(parts)}}}")
        else:
            self.call.append(f"({kind}){value}" + (".v[0]" if has_components else ""))


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _array(kind: str, name: str, items: list[str]) -> str:
    return f"static const {kind} {name}[] = {{{', '.join(items) or '{}'}}};"


def _kernel(kernel: Kernel, unit: Unit) -> tuple[list[str], str]:
    """(declarations, row of the kernel table)"""
    signature, k = _Signature(kernel, unit), kernel.name
    used = [
        i for i, c in enumerate(unit.constants) if re.search(rf"\b{c.name}\b(?!\s*\))", kernel.body)
    ]
    required = [
        i
        for i in used
        if f"is_function_constant_defined({unit.constants[i].name})"
        not in kernel.body.replace(" ", "")
    ]
    shared = " + ".join(f"msl::shared_bytes<msl::type<{s}>>()" for s in kernel.shared) or "0"
    lines = [
        '__attribute__((no_sanitize("coverage")))',
        f"static void msl_entry_{k}(const MslDispatch* d, const MslThread* t) {{",
        f"  {k}({', '.join(signature.call)});",
        "}",
        _array("MslBuffer", f"msl_buffers_{k}", signature.buffers),
        _array("MslMember", f"msl_members_{k}", signature.members),
        _array("uint32_t", f"msl_constants_{k}", [str(i) for i in required]),
    ]
    row = (
        f'{{"{k}", msl_entry_{k}, msl_buffers_{k}, {len(signature.buffers)}, msl_members_{k}, '
        f"{len(signature.members)}, msl_constants_{k}, {len(required)}, {shared}}}"
    )
    return lines, row


def entries(unit: Unit) -> str:
    lines, rows = [], []
    for kernel in unit.kernels:
        text, row = _kernel(kernel, unit)
        lines += text
        rows.append(row)
    constants = [
        f'{{{c.index}, "{c.name}", MslType::k{_TYPES[c.type]}, sizeof({c.type}), &{c.name}, '
        f"&{c.name}__defined}}"
        for c in unit.constants
    ]
    lines += [
        _array("MslKernel", "msl_kernels", rows),
        _array("MslConstant", "msl_constants", constants),
        f"static const MslUnit msl_unit = {{msl_kernels, {len(rows)}, msl_constants, "
        f"{len(constants)}}};",
        '__attribute__((section("msl_units"), used)) static const MslUnit* msl_unit_entry = '
        "&msl_unit;",
    ]
    return "\n".join(lines) + "\n"
