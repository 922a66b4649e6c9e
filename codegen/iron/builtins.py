"""What the calls of the kernel language mean: each takes the parser, the call and its arguments."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from . import ir
from .ir import Value
from .lang import DType

if TYPE_CHECKING:
    from .parse import Parser

GROUP_CALLS = {
    "group.sum": "group_sum", "group.max": "group_max", "group.min": "group_min",
    "group.across_warps_sum": "across_warps_sum",
    "warp.sum": "warp_sum", "warp.max": "warp_max", "warp.min": "warp_min", "warp.scan_sum": "warp_scan_sum",
    "warp.read": "warp_read", "warp.id": "warp_id", "lane": "lane", "num_warps": "num_warps",
}  # fmt: skip


def _group_id(p: Parser, node: ast.Call, args: list[Any]) -> Value:
    return p.emit("group_id", node=node, axis=int(args[0]) if args else 0)


def _dim(p: Parser, node: ast.Call, args: list[Any]) -> Value:
    if args[0] not in p.func.dims:
        raise p.fail(node, f"no dim is named {args[0]!r}", "dims: " + ", ".join(p.func.dims))
    return p.emit("dim", node=node, name=args[0])


def _array(p: Parser, node: ast.Call, args: list[Any]) -> Any:
    from .parse import Array

    dtype, count = args[0], args[1]
    if not isinstance(dtype, DType) or not isinstance(count, int):
        raise p.fail(node, "array(dtype, n) needs a dtype and a number known at build time")
    zero = p.emit("cast", p.value(0, node), node=node, to=dtype.name)
    return Array([zero] * count)


def _shared(p: Parser, node: ast.Call, args: list[Any]) -> Any:
    from .parse import SharedRef

    dtype, shape = args[0], args[1:]
    if not isinstance(dtype, DType) or not all(isinstance(n, int) for n in shape):
        raise p.fail(node, "shared(dtype, n…) needs a dtype and sizes known at build time")
    s = ir.Shared(f"shared{len(p.func.shared)}", dtype.name, tuple(shape))
    p.func.shared.append(s)
    return SharedRef(s)


def _barrier(p: Parser, node: ast.Call, args: list[Any]) -> None:
    p.emit_op("barrier", [], 0, node)


def _prefetch(p: Parser, node: ast.Call, args: list[Any]) -> None:
    """prefetch(tensor, i…): the element will be read soon; it may lie outside the tensor."""
    param = args[0].param
    p.check_rank(node, param.name, len(param.shape), args[1:])
    p.emit_op("prefetch", [p.value(a, node) for a in args[1:]], 0, node, param=param.name)


def _dot_u8i8(p: Parser, node: ast.Call, args: list[Any]) -> Value:
    codes, x, bits = args
    if len(codes) != len(x) or not isinstance(bits, int):
        raise p.fail(node, f"dot_u8i8(codes, x, bits): {len(codes)} code words against {len(x)}")
    words = [p.value(v, node) for v in [*codes, *x]]
    return p.emit("dot_u8i8", *words, node=node, bits=bits)


def _bitcast(p: Parser, node: ast.Call, args: list[Any]) -> Value:
    return p.emit("bitcast", p.value(args[1], node), node=node, to=args[0].name)


def _plain(kind: str) -> Any:
    def build(p: Parser, node: ast.Call, args: list[Any]) -> Value:
        return p.emit(kind, *(p.value(a, node) for a in args), node=node)

    return build


def _fold(kind: str, python: Any) -> Any:
    """min and max: numbers stay numbers; more than two arguments fold from the left."""

    def build(p: Parser, node: ast.Call, args: list[Any]) -> Any:
        if not any(isinstance(a, Value) for a in args):
            return python(args)
        result = args[0]
        for a in args[1:]:
            result = p.emit(kind, p.value(result, node), p.value(a, node), node=node)
        return result

    return build


BUILTIN_CALLS: dict[str, Any] = {
    "group.id": _group_id, "dim": _dim, "array": _array, "shared": _shared, "barrier": _barrier,
    "dot_u8i8": _dot_u8i8, "prefetch": _prefetch, "bitcast": _bitcast, "select": _plain("select"), "fma": _plain("fma"),
    "mulhi": _plain("mulhi"), "min": _fold("min", min), "max": _fold("max", max),
}  # fmt: skip
BUILTIN_CALLS |= {
    name: _plain(name)
    for name in (
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "sin",
        "cos",
        "tanh",
        "floor",
        "ceil",
        "rint",
        "abs",
    )
}
