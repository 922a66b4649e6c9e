"""What each op means: the interpreter against numpy and exact arithmetic."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from iron import interp_ops as ops
from iron.errors import IronError
from support.kernels import OneOp
from support.rand import integers, normal

FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
INTS = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32,
    "u32": np.uint32,
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
UNARY = {
    "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "floor": np.floor, "ceil": np.ceil, "rint": np.rint,
}  # fmt: skip


def storage(x, dtype):
    """Bits as the interpreter returns them: bf16 as uint16."""
    x = np.asarray(x).astype((FLOATS | INTS)[dtype])
    return x.view(np.uint16) if dtype == "bf16" else x


def any_int(dtype, seed):
    info = np.iinfo(INTS[dtype])
    return integers((32,), 0, 2**32, "u32", seed).astype(np.int64).astype(INTS[dtype]), info


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", [*BINARY, "div"])
def test_float_arithmetic_rounds_once(kind, dtype):
    a, b = normal((32,), dtype, 1), normal((32,), dtype, 2)
    want = (BINARY | {"div": np.divide})[kind](a.astype(np.float64), b.astype(np.float64))
    got = OneOp(kind, [dtype] * 2, dtype).run(a, b)
    np.testing.assert_array_equal(got, storage(want, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", UNARY)
def test_float_functions_are_correctly_rounded(kind, dtype):
    x = normal((32,), dtype, 3)
    if kind in ("sqrt", "rsqrt", "log"):
        x = np.abs(x)
    want = UNARY[kind](x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(OneOp(kind, [dtype], dtype).run(x), storage(want, dtype))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("kind", BINARY)
def test_integers_wrap(kind, dtype):
    a, b = any_int(dtype, 1)[0], any_int(dtype, 2)[0]
    want = [BINARY[kind](int(x), int(y)) & 0xFFFFFFFF for x, y in zip(a, b, strict=True)]
    got = OneOp(kind, [dtype] * 2, dtype).run(a, b)
    np.testing.assert_array_equal(got, np.array(want, np.uint32).astype(INTS[dtype]))


@pytest.mark.parametrize("dtype", ["i32", "u32"])
def test_integer_division_floors(dtype):
    a, b = any_int(dtype, 1)[0], any_int(dtype, 2)[0] // 1000 | 1
    assert [int(x) // int(y) for x, y in zip(a, b, strict=True)] == list(
        OneOp("div", [dtype] * 2, dtype, floor=True).run(a, b)
    )
    assert [int(x) % int(y) for x, y in zip(a, b, strict=True)] == list(
        OneOp("mod", [dtype] * 2, dtype).run(a, b)
    )


@pytest.mark.parametrize("kind", ["div", "mod"])
def test_division_by_zero_is_an_error(kind):
    with pytest.raises(IronError, match="division by zero"):
        OneOp(kind, ["i32"] * 2, "i32").run(np.int32([1]), np.int32([0]))


@pytest.mark.parametrize("dtype", ["i32", "u32"])
def test_bits_and_shifts(dtype):
    a, b = any_int(dtype, 1)[0], any_int(dtype, 2)[0]
    n = integers((32,), 0, 32, dtype)
    for kind, fn in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
        np.testing.assert_array_equal(OneOp(kind, [dtype] * 2, dtype).run(a, b), fn(a, b))
    np.testing.assert_array_equal(OneOp("shl", [dtype] * 2, dtype).run(a, n), a << n)
    np.testing.assert_array_equal(OneOp("shr", [dtype] * 2, dtype).run(a, n), a >> n)
    with pytest.raises(IronError, match="shift"):
        OneOp("shl", [dtype] * 2, dtype).run(a, np.full(32, 32, INTS[dtype]))


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "u32"])
@pytest.mark.parametrize("kind", COMPARE)
def test_comparisons(kind, dtype):
    a, b = np.arange(32) % 3, np.arange(32) % 4
    got = OneOp(kind, [dtype] * 2, "bool").run(storage(a, dtype), storage(b, dtype))
    np.testing.assert_array_equal(got, COMPARE[kind](a, b))


def nearest_f32(x: Fraction) -> np.float32:
    """Exact rounding, ties to even."""
    near = np.float32(float(x))
    around = [np.nextafter(near, np.float32(s)) for s in (-np.inf, np.inf)] + [near]
    return min(around, key=lambda c: (abs(Fraction(float(c)) - x), int(c.view(np.uint32)) & 1))


def test_fma_rounds_once():
    a, b, c = (normal((32,), "f32", s) for s in (1, 2, 3))
    # 1 + 2**-24 is a tie in f32: what is far below decides, and double would have lost it.
    a[0], b[0], c[0] = 1 + 2**-12, 2**-60, 1 + 2**-23
    a[1], b[1], c[1] = 2**-24, 1 + 2**-23, 1
    a[2], b[2], c[2] = -(2.0**-24), 1 + 2**-23, 1
    got = OneOp("fma", ["f32"] * 3, "f32").run(a, b, c)
    a, b, c = ([Fraction(float(x)) for x in v] for v in (a, b, c))
    exact = [x * y + z for x, y, z in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(got, np.array([nearest_f32(x) for x in exact]))


def test_mulhi_is_the_upper_half():
    a, b = integers((32,), 0, 2**32, "u32", 1), integers((32,), 0, 2**32, "u32", 2)
    want = [int(x) * int(y) >> 32 for x, y in zip(a, b, strict=True)]
    assert OneOp("mulhi", ["u32"] * 2, "u32").run(a, b).tolist() == want


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("to", INTS)
def test_integer_casts_wrap(source, to):
    x, _ = any_int(source, 1)
    np.testing.assert_array_equal(OneOp("cast", [source], to, to=to).run(x), x.astype(INTS[to]))


@pytest.mark.parametrize("to", INTS)
def test_float_to_integer_truncates_and_saturates(to):
    x = np.float32([1.9, -1.9, 0.5, 1e20, -1e20, np.nan, np.inf, -np.inf])
    info = np.iinfo(INTS[to])
    want = [1, max(-1, info.min), 0, info.max, info.min, 0, info.max, info.min]
    assert OneOp("cast", ["f32"], to, to=to).run(x)[:8].tolist() == want


@pytest.mark.parametrize("to", ["f16", "bf16"])
def test_casts_to_half_types_round_to_even(to):
    x = np.float32([1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-9, 1 + 2**-11, 3e38, 65000, np.nan, -0.0])
    got = OneOp("cast", ["f32"], to, to=to).run(x)[:8]
    want = storage(x, to)
    nan = np.isnan(x)
    np.testing.assert_array_equal(got[~nan], want[~nan])
    back = got.view(ml_dtypes.bfloat16) if to == "bf16" else got
    assert np.isnan(back[nan].astype(np.float32)).all()


def test_every_bf16_and_f16_survives_a_round_trip():
    bits = np.arange(2**16, dtype=np.uint32).astype(np.uint16)
    finite = np.isfinite(bits.view(ml_dtypes.bfloat16).astype(np.float32))
    np.testing.assert_array_equal(ops.bf16_bits(ops.bf16_value(bits[finite])), bits[finite])
    x = bits.view(np.float16)[np.isfinite(bits.view(np.float16))]
    np.testing.assert_array_equal(ops.rounded(x.astype(np.float32), "f16").astype(np.float16), x)


def test_bitcast_keeps_bits():
    x = normal((32,), "f32")
    bits = x.view(np.uint32)
    np.testing.assert_array_equal(OneOp("bitcast", ["f32"], "u32", to="u32").run(x), bits)
    np.testing.assert_array_equal(OneOp("bitcast", ["u32"], "f32", to="f32").run(bits), x)


def test_packed_dot_products():
    codes, x = integers((4, 32), 0, 2**32, "u32", 1), integers((4, 32), 0, 2**32, "u32", 2)
    codes &= np.uint32(0x0F0F0F0F)
    c8 = codes.view(np.uint8).reshape(4, 32, 4).astype(np.int64)
    x8 = x.view(np.int8).reshape(4, 32, 4).astype(np.int64)
    got = OneOp("dot_u8i8", ["u32"] * 8, "i32", bits=4).run(*codes, *x)
    np.testing.assert_array_equal(got, (c8 * x8).sum(axis=(0, 2)))
    acc = integers((32,), -1000, 1000, "i32")
    got = OneOp("dp4a", ["i32", "u32", "u32"], "i32").run(acc, codes[0], x[0])
    np.testing.assert_array_equal(got, acc + (c8[0] * x8[0]).sum(axis=1))


def test_pairs_of_bf16_are_added_low_half_first():
    a, b = (integers((32,), 0, 2**32, "u32", seed) & np.uint32(0xBFFFBFFF) for seed in (1, 2))
    acc = integers((32,), -1000, 1000, "i32").astype(np.float32)
    halves = [[w << np.uint32(16), w & np.uint32(0xFFFF0000)] for w in (a, b)]
    low, high = (np.float64(x.view("f4")) * y.view("f4") for x, y in zip(*halves, strict=True))
    got = OneOp("dot_bf16", ["f32", "u32", "u32"], "f32").run(acc, a, b)
    np.testing.assert_array_equal(got, (np.float32(acc + low) + high).astype(np.float32))


def test_a_code_must_fit_its_bits():
    with pytest.raises(IronError, match="does not fit 4 bits"):
        OneOp("dot_u8i8", ["u32"] * 2, "i32", bits=4).run(np.uint32([0x10]), np.uint32([0]))
