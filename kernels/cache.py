"""Appending keys and values to a full cache.

Keys lie as [Hkv, P // WARP, D, WARP], so that the lanes of attention, one key each, read neighbors;
values as [Hkv, P, D]. P is the capacity in positions, R the number of rows of the rotary tables.
"""

from iron import WARP, In, InOut, K, T, dim, f32, group, kernel, lanes, step
from rope import table_row

CACHED = [{"T": "f32", "K": k} for k in ("f32", "f16", "bf16")]
CACHED += [{"T": t, "K": t} for t in ("f16", "bf16")]


@kernel(grid=("Hkv", "rows"), group=32, types=CACHED, where=["2 * half <= D", "P % WARP == 0"],
        bytes="rows * Hkv * D * 16", flops="6 * rows * Hkv * half")  # fmt: skip
def rope_kv_append(
    k: In[T, "rows", "Hkv", "D"],
    v: In[T, "rows", "Hkv", "D"],
    cos: In[f32, "R", "half"],
    sin: In[f32, "R", "half"],
    kc: InOut[K, "Hkv", "P // WARP", "D", "WARP"],
    vc: InOut[K, "Hkv", "P", "D"],
):
    """Store rotated k and v at step.pos + row; drop rows beyond step.rows and what does not fit."""
    head, row, half = group.id(0), group.id(1), dim("half")
    position = step.pos + row
    if row >= step.rows or position >= dim("P"):
        return
    at, bad = table_row(dim("R"))
    tile, column = position // WARP, position % WARP
    for i in lanes(half):
        c, s = cos[at, i] + bad, sin[at, i] + bad
        a, b = f32(k[row, head, i]), f32(k[row, head, half + i])
        kc[head, tile, i, column] = K(a * c - b * s)
        kc[head, tile, half + i, column] = K(b * c + a * s)
    for i in lanes(2 * half, dim("D")):
        kc[head, tile, i, column] = K(f32(k[row, head, i]))
    for i in lanes(dim("D")):
        vc[head, position, i] = K(f32(v[row, head, i]))
