"""What the calls of the kernel language mean: each takes the parser, the call, its arguments."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from . import ir
from .ir import Value
from .lang import DType
from .scope import Array

if TYPE_CHECKING:
    from .parse import Parser

# Calls whose arguments are all values: name -> (op, number of arguments).
PLAIN = {
    "group.sum": ("group_sum", 1), "group.max": ("group_max", 1), "group.min": ("group_min", 1),
    "group.across_warps_sum": ("across_warps_sum", 1), "warp.sum": ("warp_sum", 1),
    "warp.max": ("warp_max", 1), "warp.min": ("warp_min", 1), "warp.scan_sum": ("warp_scan_sum", 1),
    "warp.read": ("warp_read", 2), "warp.id": ("warp_id", 0), "lane": ("lane", 0),
    "num_warps": ("num_warps", 0), "select": ("select", 3), "fma": ("fma", 3),
    "mulhi": ("mulhi", 2), "dot_bf16": ("dot_bf16", 3),
} | {
    name: (name, 1)
    for name in (
        "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "floor", "ceil", "rint", "abs",
    )
}  # fmt: skip

# What an author calls an op.
SPOKEN = {kind: name for name, (kind, _) in PLAIN.items()}


def spoken(op: ir.Op) -> str:
    """An op in the words of the author, for messages."""
    if op.kind == "for":
        return f"a {op.attrs['kind']} loop"
    if op.kind.startswith("step"):
        return f"step.{op.attrs['field']}"
    if op.kind in ("load", "store"):
        return op.attrs["param"]
    return SPOKEN.get(op.kind, op.kind)


def _group_id(p: Parser, node: ast.Call, args: list[Any]) -> Value:
    axis = args[0] if args else 0
    if axis not in (0, 1, 2):
        raise p.fail(node, f"group.id({axis})", "axes of the grid: 0, 1, 2")
    return p.emit("group_id", node=node, axis=axis)


def _dim(p: Parser, node: ast.Call, args: list[Any]) -> Value:
    if len(args) != 1 or args[0] not in p.func.dims:
        args = args or [None]
        raise p.fail(node, f"no dim is named {args[0]!r}", "dims: " + ", ".join(p.func.dims))
    return p.emit("dim", node=node, name=args[0])


def _array(p: Parser, node: ast.Call, args: list[Any]) -> Any:
    match args:
        case [DType() as dtype, int() as count]:
            pass
        case _:
            raise p.fail(node, "array(dtype, n) needs a dtype and a number known at build time")
    zero = p.emit("cast", p.value(0, node), node=node, to=dtype.name)
    return Array([zero] * count)


def _shared(p: Parser, node: ast.Call, args: list[Any]) -> Any:
    from .parse import SharedRef

    match args:
        case [DType() as dtype, int(), *shape] if all(isinstance(n, int) for n in shape):
            shape = args[1:]
        case _:
            raise p.fail(node, "shared(dtype, n…) needs a dtype and sizes known at build time")
    s = ir.Shared(f"shared{len(p.func.shared)}", dtype.name, tuple(shape))
    p.func.shared.append(s)
    return SharedRef(s)


def _barrier(p: Parser, node: ast.Call, args: list[Any]) -> None:
    p.emit_op("barrier", [], 0, node)


def _prefetch(p: Parser, node: ast.Call, args: list[Any]) -> None:
    """prefetch(tensor, i…): the element will be read soon; it may lie outside the tensor."""
    param = getattr(args[0], "param", None) if args else None
    if param is None:
        raise p.fail(node, "prefetch(tensor, i…) needs a tensor parameter and its indices")
    p.check_index(node, param.name, param.shape, args[1:])
    p.emit_op("prefetch", [p.value(a, node) for a in args[1:]], 0, node, param=param.name)


def _dot_u8i8(p: Parser, node: ast.Call, args: list[Any]) -> Value:
    match args:
        case [list() as codes, list() as x, int() as bits] if len(codes) == len(x):
            pass
        case _:
            raise p.fail(
                node,
                "dot_u8i8(codes, x, bits) needs two register arrays of one length and a number",
            )
    words = [p.value(v, node) for v in [*codes, *x]]
    return p.emit("dot_u8i8", *words, node=node, bits=bits)


def _bitcast(p: Parser, node: ast.Call, args: list[Any]) -> Value:
    match args:
        case [DType(name), x]:
            return p.emit("bitcast", p.value(x, node), node=node, to=name)
    raise p.fail(node, "bitcast(dtype, x) needs a dtype and a value")


def _plain(name: str, kind: str, count: int) -> Any:
    def build(p: Parser, node: ast.Call, args: list[Any]) -> Value:
        if len(args) != count:
            raise p.fail(node, f"{name} takes {count} arguments, got {len(args)}")
        return p.emit(kind, *(p.value(a, node) for a in args), node=node)

    return build


def _fold(kind: str, python: Any) -> Any:
    """min and max: numbers stay numbers; more than two arguments fold from the left."""

    def build(p: Parser, node: ast.Call, args: list[Any]) -> Any:
        if len(args) < 2:
            raise p.fail(node, f"{kind} takes two or more arguments, got {len(args)}")
        if not any(isinstance(a, Value) for a in args):
            return python(args)
        result = args[0]
        for a in args[1:]:
            result = p.emit(kind, p.value(result, node), p.value(a, node), node=node)
        return result

    return build


CALLS: dict[str, Any] = {
    "group.id": _group_id, "dim": _dim, "array": _array, "shared": _shared, "barrier": _barrier,
    "dot_u8i8": _dot_u8i8, "prefetch": _prefetch, "bitcast": _bitcast, "min": _fold("min", min),
    "max": _fold("max", max),
} | {name: _plain(name, kind, count) for name, (kind, count) in PLAIN.items()}  # fmt: skip
