"""Row normalizations."""

from iron import Const, In, Out, T, dim, f32, group, kernel, lanes, rsqrt

FLOATS = {"T": ["f32", "f16", "bf16"]}


@kernel(grid="rows", group=256, types=FLOATS)
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
