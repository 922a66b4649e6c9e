"""The tile layout of quantized matrices, shared by every kernel that reads or writes it.

Rows are interleaved by WARP: lane l of tile t is row t*WARP + l, and one load fills all lanes:

    codes  u32 [tiles, k // G, G*bits // 32, WARP]     scales, biases  f16 [tiles, k // G, WARP]

A group of G codes is read as G // 4 words of four codes in order. With 8 bits they are the stored
words; with 4 bits a stored word holds two of them: word w in its low nibbles and word w + G // 8 in
its high ones. The value of a code is code*scale + bias; with SYM it is (code - 2**(bits-1)) * scale
and no biases exist.
"""

from iron import array, f32, inline, lane, prefetch, u32, unroll

# One instance per format in use: MLX affine, Q6_K (groups of 16), Q4_0 and Q8_0 (symmetric).
FORMATS = [{"bits": b, "G": g, "SYM": 0} for b in (4, 8) for g in (32, 64, 128)]
FORMATS += [{"bits": 8, "G": 16, "SYM": 0}]
FORMATS += [{"bits": b, "G": 32, "SYM": 1} for b in (4, 8)]

AHEAD = 8  # groups; 2 KiB of 4-bit codes: about what memory delivers in its own latency


@inline
def code_words(codes, tile, b, bits, G):
    """The G // 4 words of group b, one row per lane."""
    words = array(u32, G // 4)
    for w in unroll(G * bits // 32):
        prefetch(codes, tile, b + AHEAD, w, 0)
        word = codes[tile, b, w, lane()]
        if bits == 4:
            words[w] = word & 0x0F0F0F0F
            words[w + G // 8] = (word >> 4) & 0x0F0F0F0F
        else:
            words[w] = word
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
def decoded(word, j, bits, scale, bias):
    """The value of byte j of a word; a 4-bit code is the low nibble of its byte."""
    return f32((word >> (8 * j)) & (15 if bits == 4 else 255)) * scale + bias
