"""Rotary position embedding, half layout: channel i of a head turns with channel i + half.

cos and sin are tables over absolute positions, made when the program is recorded, so that every
scaling of the frequencies is the same kernel. Row r of a step is at position step.pos + r.
"""

from iron import In, Out, T, dim, f32, group, inline, kernel, lanes, step

NAN = float("nan")


@inline
def table_row(positions):
    """(row of the tables, 0 or NaN to add): beyond the tables the result is NaN, no stray read."""
    position = step.pos + group.id(1)
    return min(position, positions - 1), 0.0 if position < positions else NAN


@kernel(
    grid=("heads", "rows"), group=32, types={"T": ["f32", "f16", "bf16"]}, where="2 * half <= D",
    bytes="8 * rows * (heads * D + half)", flops="6 * rows * heads * half",
)  # fmt: skip
def rope(
    x: In[T, "rows", "heads", "D"],
    cos: In[f32, "P", "half"],
    sin: In[f32, "P", "half"],
    out: Out[T, "rows", "heads", "D"],
):
    """Turn the first 2*half channels of every head; copy the rest. Rounded once, from f32."""
    head, row, half = group.id(0), group.id(1), dim("half")
    at, bad = table_row(dim("P"))
    for i in lanes(half):
        c, s = cos[at, i] + bad, sin[at, i] + bad
        a, b = f32(x[row, head, i]), f32(x[row, head, half + i])
        out[row, head, i] = T(a * c - b * s)
        out[row, head, half + i] = T(b * c + a * s)
    for i in lanes(2 * half, dim("D")):
        out[row, head, i] = x[row, head, i]
