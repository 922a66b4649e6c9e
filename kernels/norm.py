"""Row normalizations, alone and fused with what stands around them in a decoder block."""

from iron import (
    Const, In, Out, T, dim, f32, group, i8, i32, kernel, lanes, rsqrt, shared, warp, warps,
)  # fmt: skip
from quantize import QB, WARPS, magnitude, quantize_block

FLOATS = {"T": ["f32", "f16", "bf16"]}


@kernel(grid="rows", group=256, types=FLOATS, flops="4 * rows * n")
def rms_norm(x: In[T, "rows", "n"], w: In[T, "n"], out: Out[T, "rows", "n"], eps: Const[f32]):
    """out = w * x / sqrt(mean(x**2) + eps). One group per row; the sum is kept in f32."""
    row, n = group.id(0), dim("n")

    total = f32(0)
    for i in lanes(n):
        v = f32(x[row, i])
        total += v * v
    scale = rsqrt(group.sum(total) / n + eps)

    for i in lanes(n):
        # Round before the weight, as the reference does; the order shows in bf16.
        out[row, i] = w[i] * T(f32(x[row, i]) * scale)


@kernel(grid="rows", group=256, types=FLOATS, flops="5 * rows * n")
def add_rms_norm(
    x: In[T, "rows", "n"],
    r: In[T, "rows", "n"],
    w: In[T, "n"],
    sum: Out[T, "rows", "n"],
    out: Out[T, "rows", "n"],
    eps: Const[f32],
):
    """sum = x + r, out = rms_norm(sum)."""
    row, n = group.id(0), dim("n")

    total = f32(0)
    for i in lanes(n):
        s = x[row, i] + r[row, i]
        sum[row, i] = s
        total += f32(s) * f32(s)
    scale = rsqrt(group.sum(total) / n + eps)

    for i in lanes(n):
        out[row, i] = w[i] * T(f32(x[row, i] + r[row, i]) * scale)


@kernel(grid="rows", group=32 * WARPS, types=FLOATS, statics=QB, where="n % QB == 0",
        flops="8 * rows * n")  # fmt: skip
def rms_norm_quantize(
    x: In[T, "rows", "n"],
    w: In[T, "n"],
    q: Out[i8, "rows", "n"],
    qs: Out[f32, "rows", "n // QB"],
    qm: Out[f32, "rows", "n // QB"],
    eps: Const[f32],
):
    """The int8 form of rms_norm(x)."""
    row, n = group.id(0), dim("n")

    total = f32(0)
    for i in lanes(n):
        v = f32(x[row, i])
        total += v * v
    scale = rsqrt(group.sum(total) / n + eps)

    line = shared(f32, WARPS, QB)
    for block in warps(n // QB):
        peak = i32(0)
        for j in lanes(QB):
            i = block * QB + j
            v = f32(w[i] * T(f32(x[row, i]) * scale))
            line[warp.id(), j] = v
            peak = max(peak, magnitude(v))
        quantize_block(line, peak, q, qs, qm, row, block)


@kernel(grid="rows", group=32 * WARPS, types=FLOATS, statics=QB, where="n % QB == 0",
        flops="9 * rows * n")  # fmt: skip
def add_rms_norm_quantize(
    x: In[T, "rows", "n"],
    r: In[T, "rows", "n"],
    w: In[T, "n"],
    sum: Out[T, "rows", "n"],
    q: Out[i8, "rows", "n"],
    qs: Out[f32, "rows", "n // QB"],
    qm: Out[f32, "rows", "n // QB"],
    eps: Const[f32],
):
    """sum = x + r, and the int8 form of rms_norm(sum)."""
    row, n = group.id(0), dim("n")

    total = f32(0)
    for i in lanes(n):
        s = x[row, i] + r[row, i]
        sum[row, i] = s
        total += f32(s) * f32(s)
    scale = rsqrt(group.sum(total) / n + eps)

    line = shared(f32, WARPS, QB)
    for block in warps(n // QB):
        peak = i32(0)
        for j in lanes(QB):
            i = block * QB + j
            v = f32(w[i] * T(f32(x[row, i] + r[row, i]) * scale))
            line[warp.id(), j] = v
            peak = max(peak, magnitude(v))
        quantize_block(line, peak, q, qs, qm, row, block)
