"""What the ops without memory mean, on numpy numbers or arrays of one number per lane.

f16 and bf16 live in float32 and are rounded after every op; small integers live in their own type
and wrap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .names import FLOATS

CARRIER: dict[str, Any] = {
    "f32": np.float32, "f16": np.float32, "bf16": np.float32, "bool": np.bool_,
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "i32": np.int32, "u32": np.uint32,
}  # fmt: skip


def number(x: Any, dtype: str) -> Any:
    """A Python or numpy number as a value of `dtype`; floats are rounded, integers wrap."""
    if dtype in FLOATS:
        return rounded(np.float64(x), dtype)
    if dtype == "bool":
        return np.bool_(x)
    return np.asarray(int(x) & 0xFFFFFFFFFFFFFFFF, np.uint64).astype(CARRIER[dtype])[()]


def rounded(x: Any, dtype: str) -> Any:
    """The nearest value of a float type, ties to even; overflow gives infinity."""
    if dtype == "f16":
        return np.asarray(x).astype(np.float16).astype(np.float32)[()]
    x = np.asarray(x).astype(np.float32)[()]
    return bf16_value(bf16_bits(x)) if dtype == "bf16" else x


def bf16_bits(x: Any) -> Any:
    """float32 to the 16 bits of the nearest bf16."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    near = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint32(0x7FC0), near).astype(np.uint16)[()]


def bf16_value(bits: Any) -> Any:
    """bf16 bit patterns as f32."""
    return (np.asarray(bits, np.uint32) << np.uint32(16)).view(np.float32)[()]


BINARY: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shl": np.left_shift, "shr": np.right_shift, "mod": np.mod,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
    "land": np.logical_and, "lor": np.logical_or,
}  # fmt: skip

UNARY: dict[str, Any] = {
    "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "floor": np.floor, "ceil": np.ceil, "rint": np.rint,
}  # fmt: skip


def binary(kind: str, dtype: str, a: Any, b: Any) -> Any:
    """`dtype` is that of both operands. A min or max with a NaN is NaN here, open on devices."""
    divide = np.true_divide if dtype in FLOATS else np.floor_divide
    result = divide(a, b) if kind == "div" else BINARY[kind](a, b)
    return (
        rounded(result, dtype) if dtype in ("f16", "bf16") and result.dtype != np.bool_ else result
    )


def unary(kind: str, dtype: str, x: Any) -> Any:
    """Float functions are computed in double and rounded once; devices may be off by a few ulp."""
    if kind == "lnot":
        return np.logical_not(x)
    if dtype in FLOATS:
        return rounded(UNARY[kind](np.asarray(x, np.float64)), dtype)
    return UNARY[kind](x)


def fma(dtype: str, a: Any, b: Any, c: Any) -> Any:
    """a*b + c, rounded once: the product is exact in double, its sum with c is rounded to odd."""
    a, b, c = (np.asarray(v, np.float64) for v in (a, b, c))
    p = a * b
    s = p + c
    t = s - p
    lost = (p - (s - t)) + (c - t)
    even = (s.view(np.int64) & 1) == 0
    odd = np.nextafter(s, np.where(lost > 0, np.inf, -np.inf))
    return rounded(np.where((lost != 0) & even & np.isfinite(s), odd, s), dtype)


def mulhi(a: Any, b: Any) -> Any:
    """The upper half of a product of two u32."""
    wide = np.asarray(a, np.uint64) * np.asarray(b, np.uint64)
    return (wide >> np.uint64(32)).astype(np.uint32)[()]


def cast(x: Any, source: str, to: str) -> Any:
    """Float to integer truncates toward zero and saturates, NaN gives 0; devices may differ there.

    An integer becomes f16 or bf16 by way of f32. Integers wrap.
    """
    if to in FLOATS:
        return rounded(np.asarray(x).astype(np.float32)[()], to)
    if to == "bool":
        return np.not_equal(x, 0)
    if source in FLOATS:
        info = np.iinfo(CARRIER[to])
        whole = np.trunc(
            np.nan_to_num(np.asarray(x, np.float64), nan=0.0, posinf=2.0**40, neginf=-(2.0**40))
        )
        return np.clip(whole, info.min, info.max).astype(np.int64).astype(CARRIER[to])[()]
    return np.asarray(x).astype(CARRIER[to])[()]


def bitcast(x: Any, to: str) -> Any:
    """f32, i32 and u32 share their 32 bits."""
    return np.asarray(x).view(CARRIER[to])[()]


def unpack(word: Any, dtype: str) -> list[Any]:
    """The four bytes of a word, lowest first, as int32."""
    word = np.asarray(word, np.uint32)
    parts = [(word >> np.uint32(8 * k)).astype(np.uint8) for k in range(4)]
    return [p.view(CARRIER[dtype]).astype(np.int32)[()] for p in parts]


def dp4a(acc: Any, codes: Any, x: Any) -> Any:
    """acc plus four products: unsigned bytes of `codes` times signed bytes of `x`; wraps."""
    for c, v in zip(unpack(codes, "u8"), unpack(x, "i8"), strict=True):
        acc = acc + c * v
    return acc


def dot_bf16(acc: Any, a: Any, b: Any) -> Any:
    """acc plus the products of the low halves, then of the high halves, as bf16."""
    for shift, keep in ((16, 0xFFFFFFFF), (0, 0xFFFF0000)):
        x, y = (
            bitcast(np.asarray(w, np.uint32) << np.uint32(shift) & np.uint32(keep), "f32")
            for w in (a, b)
        )
        acc = fma("f32", x, y, acc)
    return acc


# -- across lanes: x is [warps, lanes of a warp] --------------------------------------------------

COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def tree(how: str, dtype: str, x: Any) -> Any:
    """Reduce the last axis by halves; for devices the order of a float sum is open.

    f16 and bf16 are summed in f32 and rounded once.
    """
    while x.shape[-1] > 1:
        half = (x.shape[-1] + 1) // 2
        low, high = x[..., :half].copy(), x[..., half:]
        low[..., : high.shape[-1]] = COMBINE[how](low[..., : high.shape[-1]], high)
        x = low
    return rounded(x[..., 0], dtype) if dtype in FLOATS else x[..., 0]


def scan_sum(dtype: str, x: Any) -> Any:
    """Inclusive prefix sums along the last axis, by doubling."""
    x, shift = x.copy(), 1
    while shift < x.shape[-1]:
        x = np.concatenate([x[..., :shift], x[..., shift:] + x[..., :-shift]], axis=-1)
        shift *= 2
    return rounded(x, dtype) if dtype in FLOATS else x
