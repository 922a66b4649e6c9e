"""Rows of an embedding table. An id outside the vocabulary gives NaN and never a stray read."""

from iron import In, Out, T, W, WARP, dim, f16, f32, group, i32, kernel, lanes, u32
from packing import FORMATS, code_word

DENSE = [{"T": "f32", "W": w} for w in ("f32", "f16", "bf16")]
DENSE += [{"T": t, "W": t} for t in ("f16", "bf16")]
CHUNK = 1024
GRID = ("ceildiv(n, 1024)", "rows")
NAN = float("nan")


@kernel(grid=GRID, group=256, types=DENSE, bytes="rows * (n * 8 + 4)")
def gather(table: In[W, "vocab", "n"], ids: In[i32, "rows"], out: Out[T, "rows", "n"]):
    """out[row] = table[ids[row]]."""
    row, start = group.id(1), group.id(0) * CHUNK
    token = ids[row]
    known = token >= 0 and u32(token) < dim("vocab")
    place = u32(token) if known else u32(0)
    for i in lanes(start, min(start + CHUNK, dim("n"))):
        v = f32(table[place, i])
        out[row, i] = T(v if known else NAN)


@kernel(
    grid=GRID, group=256, types={"T": ["f32", "f16", "bf16"]}, statics=FORMATS, where="n % G == 0",
    bytes="rows * (n * bits // 8 + n // G * 4 + n * 4 + 4)", flops="2 * rows * n",
)  # fmt: skip
def gather_q(
    codes: In[u32, "ceildiv(vocab, WARP)", "n // G", "G * bits // 32", "WARP"],
    scales: In[f16, "ceildiv(vocab, WARP)", "n // G", "WARP"],
    biases: In[f16, "ceildiv(vocab, WARP)", "n // G", "WARP"],
    ids: In[i32, "rows"],
    out: Out[T, "rows", "n"],
):
    """Rows of a table in the tile layout of packing.py."""
    row, start = group.id(1), group.id(0) * CHUNK
    token = ids[row]
    known = token >= 0 and u32(token) < dim("vocab")
    place = u32(token) if known else u32(0)
    tile, column = place // WARP, place % WARP
    for i in lanes(start, min(start + CHUNK, dim("n"))):
        g, c = i // G, i % G
        code = code_word(codes, tile, g, c // 4, column, bits, G) >> (c % 4 * 8) & 255
        scale = f32(scales[tile, g, column])
        if SYM:
            v = (f32(code) - (1 << bits) // 2) * scale
        else:
            v = f32(code) * scale + f32(biases[tile, g, column])
        out[row, i] = T(v if known else NAN)
