"""Stored quantized matrices to the tile layout of packing.py, once at load.

GGUF block formats: https://github.com/ggml-org/ggml, docs/gguf.md. `raw` is the file's bytes as u16
and `half` the same bytes as f16; `order[r]` is the stored row that becomes row r. One block of one
tile per group, one row per lane. Rows beyond n, which only fill the last tile, get scale 0.
"""

from iron import (
    WARP, In, Out, T, array, dim, f16, f32, group, i32, inline, kernel, lane, u16, u32, unroll,
)  # fmt: skip

from packing import WIDTHS

TILES = "ceildiv(n, WARP)"


@inline
def source_row(order, tile, n):
    """The stored row of this lane; the last one stands in beyond the end."""
    return order[min(tile * WARP + lane(), n - 1)]


@inline
def pair(raw, row, at):
    """Two neighbouring halves as one word."""
    return u32(raw[row, at]) | (u32(raw[row, at + 1]) << 16)


@inline
def is_row(tile, n):
    return tile * WARP + lane() < n


@kernel(grid=("k // 32", TILES), group=32, where="k % 32 == 0")
def repack_q4_0(
    raw: In[u16, "stored", "k // 32 * 9"],
    half: In[f16, "stored", "k // 32 * 9"],
    order: In[u32, "n"],
    codes: Out[u32, "ceildiv(n, WARP)", "k // 32", 4, "WARP"],
    scales: Out[f16, "ceildiv(n, WARP)", "k // 32", "WARP"],
):
    """Q4_0: f16 d, 16 bytes; value = (code - 8) * d: bits 4, G 32, SYM."""
    b, tile, n = group.id(0), group.id(1), dim("n")
    row = source_row(order, tile, n)
    scales[tile, b, lane()] = half[row, b * 9] if is_row(tile, n) else f16(0)
    for w in range(4):
        codes[tile, b, w, lane()] = pair(raw, row, b * 9 + (1 + 2 * w))


@kernel(grid=("k // 32", TILES), group=32, where="k % 32 == 0")
def repack_q4_1(
    raw: In[u16, "stored", "k // 32 * 10"],
    half: In[f16, "stored", "k // 32 * 10"],
    order: In[u32, "n"],
    codes: Out[u32, "ceildiv(n, WARP)", "k // 32", 4, "WARP"],
    scales: Out[f16, "ceildiv(n, WARP)", "k // 32", "WARP"],
    biases: Out[f16, "ceildiv(n, WARP)", "k // 32", "WARP"],
):
    """Q4_1: f16 d, f16 m, 16 bytes; value = code*d + m: bits 4, G 32."""
    b, tile, n = group.id(0), group.id(1), dim("n")
    row = source_row(order, tile, n)
    scales[tile, b, lane()] = half[row, b * 10] if is_row(tile, n) else f16(0)
    biases[tile, b, lane()] = half[row, b * 10 + 1] if is_row(tile, n) else f16(0)
    for w in range(4):
        codes[tile, b, w, lane()] = pair(raw, row, b * 10 + (2 + 2 * w))


@kernel(grid=("k // 32", TILES), group=32, where="k % 32 == 0")
def repack_q8_0(
    raw: In[u16, "stored", "k // 32 * 17"],
    half: In[f16, "stored", "k // 32 * 17"],
    order: In[u32, "n"],
    codes: Out[u32, "ceildiv(n, WARP)", "k // 32", 8, "WARP"],
    scales: Out[f16, "ceildiv(n, WARP)", "k // 32", "WARP"],
):
    """Q8_0: f16 d, 32 signed bytes; value = q*d: bits 8, G 32, SYM, code = q + 128."""
    b, tile, n = group.id(0), group.id(1), dim("n")
    row = source_row(order, tile, n)
    scales[tile, b, lane()] = half[row, b * 17] if is_row(tile, n) else f16(0)
    for w in range(8):
        codes[tile, b, w, lane()] = pair(raw, row, b * 17 + (1 + 2 * w)) ^ 0x80808080


@inline
def k_scale(raw, row, at, j):
    """The 6-bit (scale, minimum) of sub-block j of a Q4_K or Q5_K block.

    The twelve bytes that hold all of them start at half `at`.
    """
    low = u32(raw[row, at + j % 4 // 2]) >> (8 * (j % 2)) & 255  # bytes 0-3
    mid = u32(raw[row, at + 2 + j % 4 // 2]) >> (8 * (j % 2)) & 255  # bytes 4-7
    top = u32(raw[row, at + 4 + j % 4 // 2]) >> (8 * (j % 2)) & 255  # bytes 8-11
    if j < 4:
        scale, least = low & 63, mid & 63
    else:
        scale, least = (top & 15) | ((low >> 6) << 4), (top >> 4) | ((mid >> 6) << 4)
    return scale, least


@inline
def nibbles(word, high):
    """Four codes from the low or the high halves of four bytes."""
    return (word >> (4 * high)) & 0x0F0F0F0F


@kernel(grid=("k // 256", TILES), group=32, where="k % 256 == 0")
def repack_q4_k(
    raw: In[u16, "stored", "k // 256 * 72"],
    half: In[f16, "stored", "k // 256 * 72"],
    order: In[u32, "n"],
    codes: Out[u32, "ceildiv(n, WARP)", "k // 32", 4, "WARP"],
    scales: Out[f16, "ceildiv(n, WARP)", "k // 32", "WARP"],
    biases: Out[f16, "ceildiv(n, WARP)", "k // 32", "WARP"],
):
    """Q4_K: f16 d, f16 dmin, 8 x 6-bit (scale, min), 128 bytes: bits 4, G 32.

    value = code*(d*sc) - dmin*m. Both factors are rounded to f16, which d and dmin already are.
    """
    b, tile, n = group.id(0), group.id(1), dim("n")
    row, base = source_row(order, tile, n), b * 72
    d = f32(half[row, base]) if is_row(tile, n) else f32(0)
    least = f32(half[row, base + 1]) if is_row(tile, n) else f32(0)
    for j in unroll(8):
        sc, m = k_scale(raw, row, base + 2, j)
        scales[tile, b * 8 + j, lane()] = f16(d * f32(sc))
        biases[tile, b * 8 + j, lane()] = f16(-(least * f32(m)))
        for w in range(4):
            at = base + (8 + j // 2 * 16 + 2 * w)
            low, high = nibbles(pair(raw, row, at), j % 2), nibbles(pair(raw, row, at + 8), j % 2)
            codes[tile, b * 8 + j, w, lane()] = low | (high << 4)


@kernel(grid=("k // 256", TILES), group=32, where="k % 256 == 0")
def repack_q5_k(
    raw: In[u16, "stored", "k // 256 * 88"],
    half: In[f16, "stored", "k // 256 * 88"],
    order: In[u32, "n"],
    codes: Out[u32, "ceildiv(n, WARP)", "k // 32", 5, "WARP"],
    scales: Out[f16, "ceildiv(n, WARP)", "k // 32", "WARP"],
    biases: Out[f16, "ceildiv(n, WARP)", "k // 32", "WARP"],
):
    """Q5_K: Q4_K with a fifth bit per code in 32 more bytes; kept as 8-bit codes: bits 8, G 32."""
    b, tile, n = group.id(0), group.id(1), dim("n")
    row, base = source_row(order, tile, n), b * 88
    d = f32(half[row, base]) if is_row(tile, n) else f32(0)
    least = f32(half[row, base + 1]) if is_row(tile, n) else f32(0)
    for j in unroll(8):
        sc, m = k_scale(raw, row, base + 2, j)
        scales[tile, b * 8 + j, lane()] = f16(d * f32(sc))
        biases[tile, b * 8 + j, lane()] = f16(-(least * f32(m)))
        fifth = u32(0)
        for w in unroll(8):
            fifth = fifth | (((pair(raw, row, base + (8 + 2 * w)) >> j) & 0x01010101) << w)
        codes[tile, b * 8 + j, 4, lane()] = fifth
        for w in range(4):
            at = base + (24 + j // 2 * 16 + 2 * w)
            low, high = nibbles(pair(raw, row, at), j % 2), nibbles(pair(raw, row, at + 8), j % 2)
            codes[tile, b * 8 + j, w, lane()] = low | (high << 4)


@inline
def signed_byte(raw, row, at, i):
    """Byte i of the halves that start at `at`, as a number of -128 to 127."""
    byte = u32(raw[row, at + i // 2]) >> (8 * (i % 2)) & 255
    return f32((i32(byte) ^ 128) - 128)


@kernel(grid=("k // 256", TILES), group=32, where="k % 256 == 0")
def repack_q6_k(
    raw: In[u16, "stored", "k // 256 * 105"],
    half: In[f16, "stored", "k // 256 * 105"],
    order: In[u32, "n"],
    codes: Out[u32, "ceildiv(n, WARP)", "k // 16", 3, "WARP"],
    scales: Out[f16, "ceildiv(n, WARP)", "k // 16", "WARP"],
    biases: Out[f16, "ceildiv(n, WARP)", "k // 16", "WARP"],
):
    """Q6_K: 128 bytes of low nibbles, 64 of high pairs, 16 signed scales, f16 d: bits 8, G 16.

    value = d*sc*(code - 32).
    """
    b, tile, n = group.id(0), group.id(1), dim("n")
    row, base = source_row(order, tile, n), b * 105
    d = f32(half[row, base + 104]) if is_row(tile, n) else f32(0)
    for g in unroll(16):
        part, quarter, odd = g // 8, g % 8 // 2, g % 2  # 128 codes, 32 of them, 16 of these
        scale = d * signed_byte(raw, row, base + 96, g)
        scales[tile, b * 16 + g, lane()] = f16(scale)
        biases[tile, b * 16 + g, lane()] = f16(scale * f32(-32))
        low, high = array(u32, 4), u32(0)
        for w in unroll(4):
            low_at = base + (part * 32 + quarter % 2 * 16 + odd * 8 + 2 * w)
            high_at = base + (64 + part * 16 + odd * 8 + 2 * w)
            low[w] = nibbles(pair(raw, row, low_at), quarter // 2)
            high = high | (((pair(raw, row, high_at) >> (2 * quarter)) & 0x03030303) << (2 * w))
        for w in unroll(2):
            codes[tile, b * 16 + g, w, lane()] = low[w] | (low[w + 2] << 4)
        codes[tile, b * 16 + g, 2, lane()] = high


AFFINE = [{"bits": b, "G": g} for b in WIDTHS for g in (32, 64, 128)]


@kernel(
    grid=("k // G", TILES), group=32, types={"T": ["f32", "f16", "bf16"]}, statics=AFFINE,
    where="k % G == 0",
)  # fmt: skip
def repack_affine(
    packed: In[u32, "n", "k * bits // 32"],
    scale: In[T, "n", "k // G"],
    bias: In[T, "n", "k // G"],
    codes: Out[u32, "ceildiv(n, WARP)", "k // G", "G * bits // 32", "WARP"],
    scales: Out[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
    biases: Out[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
):
    """MLX affine: codes in order from the low bits of each word; scales and biases per group.

    Scales and biases are rounded to f16.
    """
    b, tile, n = group.id(0), group.id(1), dim("n")
    row = min(tile * WARP + lane(), n - 1)
    scales[tile, b, lane()] = f16(f32(scale[row, b])) if is_row(tile, n) else f16(0)
    biases[tile, b, lane()] = f16(f32(bias[row, b])) if is_row(tile, n) else f16(0)
    if bits == 8:
        for w in range(G // 4):
            codes[tile, b, w, lane()] = packed[row, b * (G // 4) + w]
    if bits in (4, 5, 6):
        for w in range(G // 8):
            word = plane(packed, row, b * G, w, G // 8, 2, 0, bits)
            codes[tile, b, w, lane()] = word
    if bits in (2, 3, 6):
        for w in range(G // 16):
            word = plane(packed, row, b * G, w, G // 16, 4, 4 if bits == 6 else 0, bits)
            codes[tile, b, (G // 8 if bits == 6 else 0) + w, lane()] = word
    if bits in (3, 5):
        for w in range(G // 32):
            word = plane(packed, row, b * G, w, G // 32, 8, bits - 1, bits)
            codes[tile, b, (G // 8 if bits == 5 else G // 16) + w, lane()] = word


@inline
def plane(packed, row, start, w, apart, parts, low, bits):
    """Word w of a plane: bits `low`… of `parts` words of codes that lie `apart` words apart."""
    out = u32(0)
    for i in unroll(parts):
        for byte in unroll(4):
            code = plain_code(packed, row, start + 4 * (w + i * apart) + byte, bits)
            width = 8 // parts
            out = out | (((code >> low) & (2**width - 1)) << (8 * byte + i * width))
    return out


@inline
def plain_code(packed, row, c, bits):
    """Code c of a row stored as one stream of bits; it may straddle two words."""
    first = c * bits // 32
    last = dim("k") * bits // 32 - 1
    low = packed[row, first] >> (c * bits % 32)
    high = (packed[row, min(first + 1, last)] << 1) << (31 - c * bits % 32)
    return (low | high) & (2**bits - 1)
