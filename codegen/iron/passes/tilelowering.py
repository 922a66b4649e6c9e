"""TileLowering: turn the primitives over packed data into what each target computes best.

A CPU keeps them: simd_dot.h has the best instructions of each set. CUDA has an instruction for four
products of bytes, Metal has none and multiplies unpacked bytes; both unpack pairs of bf16.
"""

from collections.abc import Callable

from ..ir import Block, Func, Op, Value
from .rewrite import blocks

Emit = Callable[..., Value]


def run(func: Func, target: str) -> None:
    """Replace every dot_u8i8 and dot_bf16 on GPUs."""
    if target == "cpu":
        return
    lower = {"cuda": _chain, "msl": _unpacked}[target]
    for block in blocks(func.body):
        _lower(block, lower)


def _lower(block: Block, lower: Callable) -> None:
    old, block.ops = block.ops, []
    bytes_of: dict = {}  # unpacked once per block, however many dots use them
    for op in old:
        if op.kind not in ("dot_u8i8", "dot_bf16"):
            block.ops.append(op)
            continue

        def emit(kind: str, type_: str, *args: Value, _loc=op.loc, **attrs: object) -> Value:
            new = Op(kind, list(args), attrs, [Value(type_)], loc=_loc)
            block.ops.append(new)
            return new.result

        if op.kind == "dot_bf16":
            _pairs(emit, *op.args)
        else:
            half = len(op.args) // 2
            lower(emit, op.args[:half], op.args[half:], bytes_of)
        block.ops[-1].results = op.results


def _chain(emit: Emit, codes: list[Value], x: list[Value], bytes_of: dict) -> None:
    acc = emit("const", "i32", value=0)
    for c, v in zip(codes, x, strict=True):
        acc = emit("dp4a", "i32", acc, c, v)


def _unpacked(emit: Emit, codes: list[Value], x: list[Value], bytes_of: dict) -> None:
    def byte(word: Value, k: int, signed: bool) -> Value:
        key = (word, k, signed)
        if key not in bytes_of:
            bytes_of[key] = (_signed_byte if signed else _unsigned_byte)(emit, word, k)
        return bytes_of[key]

    acc = emit("const", "i32", value=0)
    for c, v in zip(codes, x, strict=True):
        for k in range(4):
            product = emit("mul", "i32", byte(c, k, False), byte(v, k, True))
            acc = emit("add", "i32", acc, product)


def _unsigned_byte(emit: Emit, word: Value, k: int) -> Value:
    if k:
        word = emit("shr", "u32", word, emit("const", "u32", value=8 * k))
    if k < 3:
        word = emit("and", "u32", word, emit("const", "u32", value=0xFF))
    return emit("cast", "i32", word, to="i32")


def _signed_byte(emit: Emit, word: Value, k: int) -> Value:
    """Move the byte to the top, then shift its sign down."""
    word = emit("bitcast", "i32", word, to="i32")
    if k < 3:
        word = emit("shl", "i32", word, emit("const", "i32", value=24 - 8 * k))
    return emit("shr", "i32", word, emit("const", "i32", value=24))


def _pairs(emit: Emit, acc: Value, a: Value, b: Value) -> None:
    """A bf16 is the upper half of the same f32."""
    for half in (_low_half, _high_half):
        acc = emit("fma", "f32", half(emit, a), half(emit, b), acc)


def _low_half(emit: Emit, word: Value) -> Value:
    return _as_f32(emit, emit("shl", "u32", word, emit("const", "u32", value=16)))


def _high_half(emit: Emit, word: Value) -> Value:
    return _as_f32(emit, emit("and", "u32", word, emit("const", "u32", value=0xFFFF0000)))


def _as_f32(emit: Emit, word: Value) -> Value:
    return emit("bitcast", "f32", word, to="f32")
