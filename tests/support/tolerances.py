"""How far each result may be from its oracle: one table by (op, dtype), with the reason.

|got - want| <= absolute + relative * |want|. `dtype` is that of the output; sums are kept in f32
whatever the dtype, so for f16 and bf16 the rounding of the stored result decides.
"""

from typing import NamedTuple


class Tolerance(NamedTuple):
    absolute: float
    relative: float
    reason: str


def _rows(op: str, reason: str, **by_dtype: tuple[float, float]):
    return {(op, dtype): Tolerance(*limits, reason) for dtype, limits in by_dtype.items()}


# One unit in the last place, half of which is a correctly rounded result's error.
_F32, _F16, _BF16 = 2.0**-23, 2.0**-10, 2.0**-7

_EXACT = "moves bits, computes nothing"
_ONE = "one rounding of the stored result"
_SUM = "f32 sum of n unit terms, in another order than the reference; then one rounding"
_DOT = "f32 dot product of unit vectors, n <= 8192; then one rounding"
_SOFTMAX = "our exp is good to 2 ulp; the weights sum to one, so errors do not grow with n"

TABLE: dict[tuple[str, str], Tolerance] = {
    **_rows("copy", _EXACT, f32=(0, 0), f16=(0, 0), bf16=(0, 0), i32=(0, 0), u32=(0, 0)),
    **_rows("embed", _EXACT, f32=(0, 0), f16=(0, 0), bf16=(0, 0)),
    **_rows(
        "embed_q",
        "code * scale + bias in f32, one rounding each, which cancel near zero",
        f32=(2e-6, 2 * _F32),
        f16=(1e-4, 2 * _F16),
        bf16=(1e-4, 2 * _BF16),
    ),
    **_rows("add", _ONE, f32=(1e-7, _F32), f16=(1e-4, _F16), bf16=(1e-3, _BF16)),
    **_rows(
        "silu_mul",
        "exp and a division in f32; then one rounding",
        f32=(1e-6, 8 * _F32),
        f16=(1e-4, 2 * _F16),
        bf16=(1e-3, 2 * _BF16),
    ),
    **_rows("rms_norm", _SUM, f32=(2e-6, 16 * _F32), f16=(1e-3, 2 * _F16), bf16=(8e-3, 2 * _BF16)),
    **_rows(
        "int8_scale",
        "the largest of a block, rounded to the type, over 127",
        f32=(1e-9, 32 * _F32),
        f16=(1e-6, 2 * _F16),
        bf16=(1e-5, 2 * _BF16),
    ),
    **_rows(
        "int8_code",
        "half a step; for narrow types also what rounding to the type moves 127 steps",
        f32=(0.501, 0),
        f16=(0.501, 2 * _F16),
        bf16=(0.501, 2 * _BF16),
    ),
    **_rows("int8_sum", "one product of an exact sum", f32=(1e-12, _F32)),
    **_rows(
        "rope",
        "sine and cosine of an f32 angle: at position p the angle is off by p ulp",
        f32=(1e-3, 1e-4),
        f16=(3e-3, 2 * _F16),
        bf16=(2e-2, 2 * _BF16),
    ),
    **_rows("softmax", _SOFTMAX, f32=(1e-6, 1e-5), f16=(1e-4, 2 * _F16), bf16=(1e-3, 2 * _BF16)),
    **_rows("penalize", "five roundings of values below 40", f32=(4e-6, 8 * _F32)),
    **_rows("gemv", _DOT, f32=(2e-4, 1e-5), f16=(5e-3, 2 * _F16), bf16=(5e-2, 2 * _BF16)),
    **_rows("gemm", _DOT, f32=(2e-4, 1e-5), f16=(5e-3, 2 * _F16), bf16=(5e-2, 2 * _BF16)),
    **_rows("sdpa", _SOFTMAX, f32=(2e-5, 1e-5), f16=(2e-3, 2 * _F16), bf16=(1e-2, 2 * _BF16)),
    **_rows(
        "logits",
        "two layers of f32 sums against the reference's order of summation",
        f32=(5e-5, 5e-5),
        f16=(5e-5, 5e-5),
        bf16=(5e-5, 5e-5),
    ),
    **_rows(
        "logits_smollm2",
        "30 layers of f32 sums over weights dequantized to equal values",
        f32=(2e-3, 0),
    ),
    **_rows(
        "logits_rounded",
        "two layers whose products take activations rounded to 8 bits; logits have deviation 1",
        f32=(0.08, 0),
    ),
    **_rows(
        "record",
        "a live reference on another CPU or release sums in another order",
        f32=(2e-5, 2e-5),
    ),
    **_rows(
        "record_smollm2",
        "the same through 30 layers; the record is rounded to 2**-12",
        f32=(1e-3, 0),
    ),
}


def tolerance(op: str, dtype: str) -> Tolerance:
    """The limits of `op` on `dtype`; an op without a row must get one, with its reason."""
    try:
        return TABLE[op, dtype]
    except KeyError:
        ops = sorted({name for name, _ in TABLE})
        raise KeyError(
            f"no tolerance for {(op, dtype)}; add a row to tests/support/tolerances.py; ops: {ops}"
        ) from None


MAX_MEAN_KL = 5e-3
"""Nats per position that fast mode may cost: int8 activations, rounded to 1/127 of their block."""
