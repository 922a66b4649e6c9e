"""The tile layout of quantized matrices, shared by every kernel that reads or writes it.

Rows are interleaved by WARP: lane l of tile t is row t*WARP + l, and one load fills all lanes:

    codes  u32 [tiles, k // G, G*bits // 32, WARP]     scales, biases  f16 [tiles, k // G, WARP]

A group of G codes is read as G // 4 words of four codes in order, one per byte. Codes of 8 bits are
stored as these words. Narrower ones are cut into planes, stored one after the other:

    bits   planes                      a stored word of a plane holds, from its low bits
    4      nibble                      nibble  words w and w + G // 8
    5      nibble, single              pair    words w + i * (G // 16), i = 0..3
    6      nibble, pair                single  words w + i * (G // 32), i = 0..7
    3      pair, single
    2      pair

The value of a code is code*scale + bias; with SYM it is (code - 2**(bits-1)) * scale and no biases
exist.
"""

from iron import array, f32, inline, lane, prefetch, u32, unroll

# One instance per format in use: MLX affine, Q6_K (groups of 16), Q4_0 and Q8_0 (symmetric).
WIDTHS = (2, 3, 4, 5, 6, 8)
FORMATS = [{"bits": b, "G": g, "SYM": 0} for b in WIDTHS for g in (32, 64, 128)]
FORMATS += [{"bits": 6, "G": 16, "SYM": 0}]
FORMATS += [{"bits": b, "G": 32, "SYM": 1} for b in (4, 8)]

AHEAD = 8  # groups; 16 and 32 were no faster


@inline
def code_word(codes, tile, b, w, at, bits, G):
    """Word w of group b of row `at` of a tile: four codes, one per byte."""
    if bits == 8:
        word = codes[tile, b, w, at]
    elif bits >= 4:
        word = (codes[tile, b, w % (G // 8), at] >> (w // (G // 8) * 4)) & 0x0F0F0F0F
    else:
        word = (codes[tile, b, w % (G // 16), at] >> (w // (G // 16) * 2)) & 0x03030303
    if bits == 6:
        high = codes[tile, b, G // 8 + w % (G // 16), at] >> (w // (G // 16) * 2)
        word = word | ((high & 0x03030303) << 4)
    if bits == 3 or bits == 5:
        first, place = (G // 8, 4) if bits == 5 else (G // 16, 2)
        high = codes[tile, b, first + w % (G // 32), at] >> (w // (G // 32))
        word = word | ((high & 0x01010101) << place)
    return word


@inline
def code_words(codes, tile, b, bits, G):
    """The G // 4 words of group b, one row per lane."""
    for w in unroll(G * bits // 32):
        prefetch(codes, tile, b + AHEAD, w, 0)
    words = array(u32, G // 4)
    for w in unroll(G // 4):
        words[w] = code_word(codes, tile, b, w, lane(), bits, G)
    return words


@inline
def group_bias(scales, biases, tile, b, bits, SYM):
    """What is added to code*scale."""
    if SYM:
        bias = f32(scales[tile, b, lane()]) * f32(-(2 ** (bits - 1)))
    else:
        bias = f32(biases[tile, b, lane()])
    return bias


@inline
def decoded(word, j, scale, bias):
    """The value of byte j of a word of codes."""
    return f32((word >> (8 * j)) & 255) * scale + bias
