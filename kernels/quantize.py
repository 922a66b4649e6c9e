"""Activations to int8, block by block, for products with quantized weights.

A block of QB values becomes codes q in [-127, 127], a scale qs = max|x| / 127 and qm = qs * sum(q).
A value that is not finite makes the scale of its block not finite, so it cannot get lost.
"""

from iron import (
    In, Out, T, bitcast, dim, exp, f32, group, i8, i32, inline, kernel, lanes, rint, select, shared,
    warp, warps,
)  # fmt: skip

FLOATS = {"T": ["f32", "f16", "bf16"]}
QB = {"QB": [16, 32]}
WARPS = 8  # of a group on a GPU
CHUNK = 1024  # values per group: enough to pay for a task, few enough to spread one row
GRID = ("ceildiv(n, 1024)", "rows")
TINY = 1e-30  # below it 127 / max|x| could overflow; such blocks get codes of 0


@inline
def magnitude(x):
    """|x| as an integer: the order is kept and NaN comes out largest; a float max may lose it."""
    return bitcast(i32, abs(x))


@inline
def quantize_block(line, peak, q, qs, qm, row, block):
    """Store one block: its values are line[warp.id()], `peak` each lane's largest magnitude."""
    top = bitcast(f32, warp.max(peak))
    inverse = select(top > TINY, 127.0 / top, 0.0)
    total = i32(0)
    for j in lanes(QB):
        code = i32(rint(line[warp.id(), j] * inverse))
        q[row, block * QB + j] = i8(code)
        total += code
    scale = top / 127.0
    qs[row, block] = scale
    qm[row, block] = scale * f32(warp.sum(total))


@kernel(grid=GRID, group=32 * WARPS, types=FLOATS, statics=QB, where="n % QB == 0",
        flops="4 * rows * n")  # fmt: skip
def quantize_rows(
    x: In[T, "rows", "n"],
    q: Out[i8, "rows", "n"],
    qs: Out[f32, "rows", "n // QB"],
    qm: Out[f32, "rows", "n // QB"],
):
    """q = rint(x / qs). One warp per block."""
    row, first = group.id(1), group.id(0) * (CHUNK // QB)
    line = shared(f32, WARPS, QB)
    for b in warps(min(CHUNK // QB, dim("n") // QB - first)):
        block = first + b
        peak = i32(0)
        for j in lanes(QB):
            v = f32(x[row, block * QB + j])
            line[warp.id(), j] = v
            peak = max(peak, magnitude(v))
        quantize_block(line, peak, q, qs, qm, row, block)


@kernel(grid=GRID, group=32 * WARPS, types=FLOATS, statics=QB, where="n % QB == 0",
        flops="8 * rows * n")  # fmt: skip
def silu_mul_quantize(
    gate: In[T, "rows", "n"],
    up: In[T, "rows", "n"],
    q: Out[i8, "rows", "n"],
    qs: Out[f32, "rows", "n // QB"],
    qm: Out[f32, "rows", "n // QB"],
):
    """The int8 form of silu(gate) * up, without the rounding to T that silu_mul would do."""
    row, first = group.id(1), group.id(0) * (CHUNK // QB)
    line = shared(f32, WARPS, QB)
    for b in warps(min(CHUNK // QB, dim("n") // QB - first)):
        block = first + b
        peak = i32(0)
        for j in lanes(QB):
            g = f32(gate[row, block * QB + j])
            v = g / (1.0 + exp(-g)) * f32(up[row, block * QB + j])
            line[warp.id(), j] = v
            peak = max(peak, magnitude(v))
        quantize_block(line, peak, q, qs, qm, row, block)
