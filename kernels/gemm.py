"""Matrix times many rows: the sums of gemv.py in their order, every weight used for several rows.

The x axis of the grid walks the rows, so neighbouring groups meet the same weights while they are
in the cache.
"""

from iron import (
    WARP, In, Out, T, W, array, dim, dot_u8i8, f16, f32, group, i32, kernel, lane, lanes, prefetch,
    u32, unroll, warps,
)  # fmt: skip
from gemv import DENSE, QUANTIZED, SUMS
from packing import AHEAD, FORMATS, code_word, decoded, group_bias

ROWS, COLS = 2, 2  # times SUMS sums; larger tiles were slower with 16 vector registers
BATCH = 4  # rows that share one decoding of the weights
PART = 4  # words that are decoded at once: with more, 16 vector registers do not suffice


@kernel(
    grid=("ceildiv(rows, 2)", "ceildiv(n, 4)"), group=32, types=DENSE, cpu={"T": "f32"},
    flops="2 * rows * n * k",
)  # fmt: skip
def gemm(x: In[T, "rows", "k"], w: In[W, "n", "k"], out: Out[T, "rows", "n"]):
    """Lanes share the columns; a group makes two tiles of 2 rows by 2 outputs."""
    r0, first, k = group.id(0) * ROWS, group.id(1) * 2 * COLS, dim("k")
    n, rows, whole = dim("n"), dim("rows"), k // (SUMS * WARP) * (SUMS * WARP)

    row, col = array(u32, ROWS), array(u32, COLS)
    for r in unroll(ROWS):
        row[r] = min(r0 + r, rows - 1)
    for c0 in range(first, min(first + 2 * COLS, n), COLS):
        for c in unroll(COLS):
            col[c] = min(c0 + c, n - 1)
        total, rest = array(f32, ROWS * COLS * SUMS), array(f32, ROWS * COLS)
        for start in range(0, whole, SUMS * WARP):
            for j in unroll(SUMS):
                i = start + j * WARP + lane()
                v = array(f32, COLS)
                for c in unroll(COLS):
                    # Two streams are more than the hardware fetches ahead across rows.
                    if j % 2 == 0:
                        prefetch(w, col[c] + COLS, start + j * WARP)
                    v[c] = f32(w[col[c], i])
                for r in unroll(ROWS):
                    u = f32(x[row[r], i])
                    for c in unroll(COLS):
                        total[(r * COLS + c) * SUMS + j] += v[c] * u
        for i in lanes(whole, k):
            for c in unroll(COLS):
                z = f32(w[col[c], i])
                for r in unroll(ROWS):
                    rest[r * COLS + c] += z * f32(x[row[r], i])

        for r in unroll(ROWS):
            for c in unroll(COLS):
                at = (r * COLS + c) * SUMS
                pairs = (total[at] + total[at + 1]) + (total[at + 2] + total[at + 3])
                s = group.sum(pairs + rest[r * COLS + c])
                if lane() == 0 and r0 + r < rows and c0 + c < n:
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
        for w in unroll(G * bits // 32):
            prefetch(codes, tile, b + AHEAD, w, 0)
        s, m = array(f32, BATCH), array(f32, BATCH)
        for p in unroll(G // block):
            dot = array(i32, BATCH)
            for first in unroll(p * block // 4, (p + 1) * block // 4, PART):
                words = array(u32, PART)
                for w in unroll(PART):
                    words[w] = code_word(codes, tile, b, first + w, lane(), bits, G)
                for r in unroll(BATCH):
                    x = array(u32, PART)
                    for w in unroll(PART):
                        x[w] = xq[row[r], b * (G // 4) + first + w]
                    dot[r] += dot_u8i8(words, x, bits)
            for r in unroll(BATCH):
                s[r] += f32(dot[r]) * qs[row[r], b * (G // block) + p]
                m[r] += qm[row[r], b * (G // block) + p]
        scale = f32(scales[tile, b, lane()])
        bias = group_bias(scales, biases, tile, b, bits, SYM)
        for r in unroll(BATCH):
            total[r] += s[r] * scale
            shift[r] += m[r] * bias

    at = tile * WARP + lane()
    for r in unroll(BATCH):
        s = group.across_warps_sum(total[r] + shift[r])
        if at < dim("n") and r0 + r < rows:
            out[r0 + r, at] = T(s)
