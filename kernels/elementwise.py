"""Elementwise kernels. A group takes 1024 values of one row."""

from iron import In, Out, T, dim, exp, f32, group, kernel, lanes

FLOATS = {"T": ["f32", "f16", "bf16"]}
CHUNK = 1024
GRID = ("ceildiv(n, 1024)", "rows")


@kernel(grid=GRID, group=256, types=FLOATS, flops="rows * n")
def add(x: In[T, "rows", "n"], y: In[T, "rows", "n"], out: Out[T, "rows", "n"]):
    """out = x + y."""
    row, start = group.id(1), group.id(0) * CHUNK
    for i in lanes(start, min(start + CHUNK, dim("n"))):
        out[row, i] = x[row, i] + y[row, i]


@kernel(grid=GRID, group=256, types=FLOATS, flops="rows * n")
def add_bias(x: In[T, "rows", "n"], bias: In[T, "n"], out: Out[T, "rows", "n"]):
    """out = x + bias, the same bias for every row."""
    row, start = group.id(1), group.id(0) * CHUNK
    for i in lanes(start, min(start + CHUNK, dim("n"))):
        out[row, i] = x[row, i] + bias[i]


@kernel(grid=GRID, group=256, types=FLOATS, flops="4 * rows * n")
def silu_mul(gate: In[T, "rows", "n"], up: In[T, "rows", "n"], out: Out[T, "rows", "n"]):
    """out = silu(gate) * up with silu(g) = g / (1 + exp(-g)); computed in f32, rounded once."""
    row, start = group.id(1), group.id(0) * CHUNK
    for i in lanes(start, min(start + CHUNK, dim("n"))):
        g = f32(gate[row, i])
        out[row, i] = T(g / (1.0 + exp(-g)) * f32(up[row, i]))
