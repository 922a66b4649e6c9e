"""Matrix times one vector (or a few, one group each): out[row, j] = sum_i w[j, i] * x[row, i]."""

from iron import (
    WARP, In, Out, T, W, array, dim, dot_u8i8, f16, f32, group, kernel, lane, lanes, u32, unroll,
    warps,
)  # fmt: skip
from packing import FORMATS, code_word, code_words, decoded, group_bias

DENSE = [{"T": "f32", "W": w} for w in ("f32", "f16", "bf16")]
DENSE += [{"T": t, "W": t} for t in ("f16", "bf16")]
QUANTIZED = {"T": ["f32", "f16", "bf16"]}
ROWS = 4  # of w per group, one after the other: memory is read in one ascending stream
SUMS = 4  # of one row: they hide the latency of the multiply-add


@kernel(
    grid=("ceildiv(n, 4)", "rows"), group=32, types=DENSE, cpu={"T": "f32"},
    flops="2 * rows * n * k",
)  # fmt: skip
def gemv(x: In[T, "rows", "k"], w: In[W, "n", "k"], out: Out[T, "rows", "n"]):
    """Lanes share the columns; sums are kept in f32."""
    first, row, k = group.id(0) * ROWS, group.id(1), dim("k")
    whole = k // (SUMS * WARP) * (SUMS * WARP)
    for j in range(first, min(first + ROWS, dim("n"))):
        total = array(f32, SUMS)
        for start in range(0, whole, SUMS * WARP):
            for c in unroll(SUMS):
                i = start + c * WARP + lane()
                total[c] += f32(w[j, i]) * f32(x[row, i])
        rest = f32(0)
        for i in lanes(whole, k):
            rest += f32(w[j, i]) * f32(x[row, i])
        s = group.sum((total[0] + total[1]) + (total[2] + total[3]) + rest)
        if lane() == 0:
            out[row, j] = T(s)


@kernel(
    grid=("ceildiv(n, WARP)", "rows"), group=128, types=QUANTIZED, cpu={"T": "f32"},
    statics=FORMATS, where="k % G == 0", flops="2 * rows * n * k",
)  # fmt: skip
def gemv_q(
    x: In[T, "rows", "k"],
    codes: In[u32, "ceildiv(n, WARP)", "k // G", "G * bits // 32", "WARP"],
    scales: In[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
    biases: In[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
    out: Out[T, "rows", "n"],
):
    """Exact: weights are decoded to f32 and meet the activations unrounded. One row per lane."""
    tile, row = group.id(0), group.id(1)

    total = array(f32, 4)
    for b in warps(dim("k") // G):
        scale = f32(scales[tile, b, lane()])
        bias = group_bias(scales, biases, tile, b, bits, SYM)
        for w in range(G // 4):
            word = code_word(codes, tile, b, w, lane(), bits, G)
            for j in unroll(4):
                value = decoded(word, j, scale, bias)
                total[j] += value * f32(x[row, b * G + 4 * w + j])

    s = group.across_warps_sum((total[0] + total[1]) + (total[2] + total[3]))
    at = tile * WARP + lane()
    if at < dim("n"):
        out[row, at] = T(s)


@kernel(
    grid=("ceildiv(n, WARP)", "rows"), group=128, types=QUANTIZED, cpu={"T": "f32"},
    statics=FORMATS, where="k % G == 0", flops="2 * rows * n * k",
)  # fmt: skip
def gemv_qi8(
    xq: In[u32, "rows", "k // 4"],
    qs: In[f32, "rows", "k // min(G, 32)"],
    qm: In[f32, "rows", "k // min(G, 32)"],
    codes: In[u32, "ceildiv(n, WARP)", "k // G", "G * bits // 32", "WARP"],
    scales: In[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
    biases: In[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
    out: Out[T, "rows", "n"],
):
    """Fast: activations in int8 blocks (quantize.py).

    qs scales a block, qm is qs times the sum of its codes.
    """
    tile, row = group.id(0), group.id(1)
    block = min(G, 32)

    total, shift = f32(0), f32(0)
    for b in warps(dim("k") // G):
        words = code_words(codes, tile, b, bits, G)
        x = array(u32, G // 4)
        for w in unroll(G // 4):
            x[w] = xq[row, b * (G // 4) + w]
        s, m = f32(0), f32(0)
        for p in unroll(G // block):
            lo, hi = p * block // 4, (p + 1) * block // 4
            s += f32(dot_u8i8(words[lo:hi], x[lo:hi], bits)) * qs[row, b * (G // block) + p]
            m += qm[row, b * (G // block) + p]
        total += s * f32(scales[tile, b, lane()])
        shift += m * group_bias(scales, biases, tile, b, bits, SYM)

    s = group.across_warps_sum(total + shift)
    at = tile * WARP + lane()
    if at < dim("n"):
        out[row, at] = T(s)
