"""Matrix times many rows: the sums of gemv.py in their order, every weight used for several rows.

The x axis of the grid walks the rows, so neighbouring groups meet the same weights while they are
in the cache.
"""

from iron import (
    WARP, In, Out, T, W, array, dim, dot_u8i8, f16, f32, group, kernel, lane, lanes, u32, unroll,
    warps,
)  # fmt: skip
from gemv import DENSE, QUANTIZED
from packing import FORMATS, code_word, code_words, decoded, group_bias

ROWS, COLS = 3, 4  # a tile of 12 sums, 4 weights and 1 input fits 16 vector registers but for one
BATCH = 4  # rows that share one decoding of the weights


@kernel(
    grid=("ceildiv(rows, 3)", "ceildiv(n, 4)"), group=32, types=DENSE, cpu={"T": "f32"},
    flops="2 * rows * n * k",
)  # fmt: skip
def gemm(x: In[T, "rows", "k"], w: In[W, "n", "k"], out: Out[T, "rows", "n"]):
    """Lanes share the columns; a tile of 3 rows by 4 outputs per group."""
    r0, c0, n, rows = group.id(0) * ROWS, group.id(1) * COLS, dim("n"), dim("rows")

    row, col = array(u32, ROWS), array(u32, COLS)
    for r in unroll(ROWS):
        row[r] = min(r0 + r, rows - 1)
    for c in unroll(COLS):
        col[c] = min(c0 + c, n - 1)
    total = array(f32, ROWS * COLS)
    for i in lanes(dim("k")):
        v = array(f32, COLS)
        for c in unroll(COLS):
            v[c] = f32(w[col[c], i])
        for r in unroll(ROWS):
            u = f32(x[row[r], i])
            for c in unroll(COLS):
                total[r * COLS + c] += v[c] * u

    for r in unroll(ROWS):
        for c in unroll(COLS):
            s = group.sum(total[r * COLS + c])
            if r0 + r < rows and c0 + c < n:
                out[r0 + r, c0 + c] = T(s)


@kernel(
    grid=("ceildiv(rows, 4)", "ceildiv(n, WARP)"), group=128, types=QUANTIZED, cpu={"T": "f32"},
    statics=FORMATS, where="k % G == 0", flops="2 * rows * n * k",
)  # fmt: skip
def gemm_q(
    x: In[T, "rows", "k"],
    codes: In[u32, "ceildiv(n, WARP)", "k // G", "G * bits // 32", "WARP"],
    scales: In[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
    biases: In[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
    out: Out[T, "rows", "n"],
):
    """Exact activations, as gemv_q."""
    r0, tile, rows = group.id(0) * BATCH, group.id(1), dim("rows")

    row = array(u32, BATCH)
    for r in unroll(BATCH):
        row[r] = min(r0 + r, rows - 1)
    total = array(f32, BATCH * 4)
    for b in warps(dim("k") // G):
        scale = f32(scales[tile, b, lane()])
        bias = group_bias(scales, biases, tile, b, bits, SYM)
        for w in range(G // 4):
            word = code_word(codes, tile, b, w, lane(), bits, G)
            for j in unroll(4):
                value = decoded(word, j, scale, bias)
                for r in unroll(BATCH):
                    total[4 * r + j] += value * f32(x[row[r], b * G + 4 * w + j])

    at = tile * WARP + lane()
    for r in unroll(BATCH):
        even, odd = total[4 * r] + total[4 * r + 1], total[4 * r + 2] + total[4 * r + 3]
        s = group.across_warps_sum(even + odd)
        if at < dim("n") and r0 + r < rows:
            out[r0 + r, at] = T(s)


@kernel(
    grid=("ceildiv(rows, 4)", "ceildiv(n, WARP)"), group=128, types=QUANTIZED, cpu={"T": "f32"},
    statics=FORMATS, where="k % G == 0", flops="2 * rows * n * k",
)  # fmt: skip
def gemm_qi8(
    xq: In[u32, "rows", "k // 4"],
    qs: In[f32, "rows", "k // min(G, 32)"],
    qm: In[f32, "rows", "k // min(G, 32)"],
    codes: In[u32, "ceildiv(n, WARP)", "k // G", "G * bits // 32", "WARP"],
    scales: In[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
    biases: In[f16, "ceildiv(n, WARP)", "k // G", "WARP"],
    out: Out[T, "rows", "n"],
):
    """int8 activations, as gemv_qi8."""
    r0, tile, rows = group.id(0) * BATCH, group.id(1), dim("rows")
    block = min(G, 32)

    row = array(u32, BATCH)
    for r in unroll(BATCH):
        row[r] = min(r0 + r, rows - 1)
    total, shift = array(f32, BATCH), array(f32, BATCH)
    for b in warps(dim("k") // G):
        scale = f32(scales[tile, b, lane()])
        bias = group_bias(scales, biases, tile, b, bits, SYM)
        words = code_words(codes, tile, b, bits, G)
        for r in unroll(BATCH):
            x = array(u32, G // 4)
            for w in unroll(G // 4):
                x[w] = xq[row[r], b * (G // 4) + w]
            s, m = f32(0), f32(0)
            for p in unroll(G // block):
                lo, hi = p * block // 4, (p + 1) * block // 4
                s += f32(dot_u8i8(words[lo:hi], x[lo:hi], bits)) * qs[row[r], b * (G // block) + p]
                m += qm[row[r], b * (G // block) + p]
            total[r] += s * scale
            shift[r] += m * bias

    at = tile * WARP + lane()
    for r in unroll(BATCH):
        s = group.across_warps_sum(total[r] + shift[r])
        if at < dim("n") and r0 + r < rows:
            out[r0 + r, at] = T(s)
