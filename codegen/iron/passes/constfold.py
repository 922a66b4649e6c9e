"""ConstFold: numbers known at build time, common subexpressions, dead code.

Kernels are written with statics, unrolled loops and conversions that cost nothing to read; here
they come to cost nothing to run. Float arithmetic is never reordered, so results keep their bits.
"""

import math

from ..ir import BINARY, COMPARE, LOGIC, Block, Func, Op, Value
from ..names import FLOATS
from .rewrite import definitions, drop_dead, final, replace

# Ops that give the same result for the same arguments and touch no memory.
PURE = (
    *BINARY, *COMPARE, *LOGIC, "dim", "arg", "step", "group_id", "lane", "warp_id", "warp_width",
    "num_warps", "cast", "bitcast", "const", "select", "neg", "mulhi",
)  # fmt: skip


def run(func: Func, target: str) -> None:
    """Fold, share, drop what is dead; on GPUs widths are numbers from here on."""
    if target != "cpu":
        _known_widths(func)
    mapping: dict[Value, Value] = {}
    _fold(func.body, mapping, definitions(func))
    replace(func, mapping)
    mapping = {}
    _share(func.body, {}, mapping)
    replace(func, mapping)
    drop_dead(func)


def _known_widths(func: Func) -> None:
    for op in func.body.walk():
        if op.kind in ("warp_width", "num_warps"):
            value = 32 if op.kind == "warp_width" else func.group // 32
            op.kind, op.attrs = "const", {"value": value}


def _fold(block: Block, mapping: dict[Value, Value], defs: dict[Value, Op]) -> None:
    kept: list[Op] = []
    for op in block.ops:
        op.args = [final(mapping, a) for a in op.args]
        for inner in op.blocks:
            _fold(inner, mapping, defs)
        values = [
            defs[a].attrs["value"] if a in defs and defs[a].kind == "const" else None
            for a in op.args
        ]
        result = _evaluate(op, values)
        if result is not None:
            op.kind, op.args, op.attrs = "const", [], {"value": result}
        elif (same := _identity(op, values)) is not None:
            mapping[op.result] = same
            continue
        elif op.kind == "if" and values[0] is not None:
            chosen = op.blocks[0 if values[0] else 1]
            kept += chosen.ops[:-1]
            mapping.update(zip(op.results, chosen.ops[-1].args, strict=True))
            continue
        kept.append(op)
    block.ops = kept


def _evaluate(op: Op, values: list) -> int | float | bool | None:
    if not op.results or op.kind == "const" or not values or any(v is None for v in values):
        return None
    to = op.results[0].type
    if (
        op.kind == "cast"
        and op.args[0].type in ("i32", "u32", "f32")
        and to in ("f32", "i32", "u32")
    ):
        x = values[0]
        if to == "f32":
            return float(x) if abs(x) < 2**24 else None
        return _wrap(int(x), to) if math.isfinite(x) and abs(x) < 2**31 else None
    if to == "bool" and op.kind in COMPARE:
        a, b = values
        return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[
            op.kind
        ]
    if to in ("i32", "u32") and op.kind in BINARY:
        a, b = values
        if op.kind in ("div", "mod") and b == 0:
            return None
        fn = {
            "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b,
            "div": lambda: a // b, "mod": lambda: a % b, "min": lambda: min(a, b),
            "max": lambda: max(a, b), "and": lambda: a & b, "or": lambda: a | b,
            "xor": lambda: a ^ b, "shl": lambda: a << (b & 31), "shr": lambda: a >> (b & 31),
        }  # fmt: skip
        return _wrap(fn[op.kind](), to)
    if op.kind == "neg" and to in ("f32", "i32"):
        return -values[0]
    return None


def _wrap(x: int, to: str) -> int:
    x &= 0xFFFFFFFF
    return x - 2**32 if to == "i32" and x >= 2**31 else x


def _identity(op: Op, values: list) -> Value | None:
    """x*1, x+0, x-0, x//1, x<<0, casts to the same type, selects of one value."""
    if op.kind == "cast" and op.args[0].type == op.attrs["to"]:
        return op.args[0]
    if op.kind == "select" and values[0] is not None:
        return op.args[1 if values[0] else 2]
    if op.kind not in BINARY or op.result.type in FLOATS and op.kind not in ("mul", "div"):
        return None
    a, b = op.args
    neutral = {"add": 0, "sub": 0, "mul": 1, "div": 1, "shl": 0, "shr": 0, "or": 0, "xor": 0}
    if op.kind in neutral and values[1] == neutral[op.kind]:
        return a
    if op.kind in ("add", "mul", "or", "xor") and values[0] == neutral[op.kind]:
        return b
    return None


def _share(block: Block, outer: dict, mapping: dict[Value, Value]) -> None:
    """The second of two equal pure ops becomes the first."""
    seen, kept = dict(outer), []
    for op in block.ops:
        op.args = [final(mapping, a) for a in op.args]
        key = None
        if op.kind in PURE:
            attrs = tuple(sorted((k, repr(v)) for k, v in op.attrs.items()))
            key = (op.kind, tuple(id(a) for a in op.args), attrs, op.result.type)
            if key in seen:
                mapping[op.result] = seen[key]
                continue
            seen[key] = op.result
        for inner in op.blocks:
            _share(inner, seen, mapping)
        kept.append(op)
    block.ops = kept
