"""Scaled dot-product attention over a key-interleaved cache.

Keys lie as [Hkv, P // WARP, D, WARP]: WARP neighbouring keys share one load, so scores come out
one key per lane and the softmax needs no shuffles. Values lie as [Hkv, P, D]: there the lanes walk
D. Scores, softmax and sums are f32.
"""

from iron import (
    Const, In, K, Out, T, WARP, array, barrier, dim, exp, f32, group, inline, kernel, lane, lanes,
    prefetch, shared, step, u32, unroll, warp, warps,
)  # fmt: skip

CACHED = [{"T": "f32", "K": k} for k in ("f32", "f16", "bf16")]
CACHED += [{"T": t, "K": t} for t in ("f16", "bf16")]
CHUNK = 256  # keys whose scores are held at once
MAX_D = 256
LOWEST = -3.0e38  # below every score; stands for minus infinity without its NaNs


@inline
def score_tile(kc, hkv, tile, q, count, d_end):
    """Scores of WARP keys for `count` queries: [count] values.

    One tile at a time, so that memory is read in one ascending stream; the channels alternate
    between two sums, which hides the latency of the multiply-add.
    """
    even, odd = array(f32, count), array(f32, count)
    for d in range(0, d_end // 2 * 2, 2):
        prefetch(kc, hkv, tile + 4, d, 0)
        k0, k1 = f32(kc[hkv, tile, d, lane()]), f32(kc[hkv, tile, d + 1, lane()])
        for h in unroll(count):
            even[h] += q[h, d] * k0
            odd[h] += q[h, d + 1] * k1
    for d in range(d_end // 2 * 2, d_end):
        k0 = f32(kc[hkv, tile, d, lane()])
        for h in unroll(count):
            even[h] += q[h, d] * k0
    s = array(f32, count)
    for h in unroll(count):
        s[h] = even[h] + odd[h]
    return s


# Of a row so far: greatest score, sum of weights, factor for what was summed before.
TOP, MASS, SHRINK = 0, 1, 2


@inline
def chunk_softmax(score, soft, h, count):
    """Turn one row of scores into weights and bring `soft` up to date."""
    best = f32(LOWEST)
    for t in lanes(count):
        best = max(best, score[h, t])
    old = soft[h, TOP]
    new = max(old, group.max(best))
    part = f32(0)
    for t in lanes(count):
        s = score[h, t]
        p = exp(s - new) if s > LOWEST else f32(0)
        score[h, t] = p
        part += p
    total = soft[h, MASS] * exp(old - new) + group.sum(part)
    soft[h, TOP], soft[h, MASS], soft[h, SHRINK] = new, total, exp(old - new)


@inline
def add_values(sums, score, soft, vc, hkv, start, count, heads, d_end):
    """sums[h] = sums[h] * SHRINK + the weighted values of one chunk.

    Whole rows where registers suffice, so that memory is read in one ascending stream.
    """
    strips = 4 if heads <= 4 else 2
    whole = d_end // (strips * WARP) * (strips * WARP)
    for first in range(0, whole, strips * WARP):
        acc = array(f32, heads * strips)
        for t in warps(count):
            for c in unroll(strips):
                if c % 2 == 0:
                    prefetch(vc, hkv, start + t + 32, first + c * WARP)
                v = f32(vc[hkv, start + t, first + c * WARP + lane()])
                for h in unroll(heads):
                    acc[h * strips + c] += score[h, t] * v
        for h in unroll(heads):
            for c in unroll(strips):
                d = first + c * WARP + lane()
                part = group.across_warps_sum(acc[h * strips + c])
                if warp.id() == 0:
                    sums[h, d] = sums[h, d] * soft[h, SHRINK] + part

    for d in lanes(whole, d_end):
        rest = array(f32, heads)
        for t in range(count):
            v = f32(vc[hkv, start + t, d])
            for h in unroll(heads):
                rest[h] += score[h, t] * v
        for h in unroll(heads):
            sums[h, d] = sums[h, d] * soft[h, SHRINK] + rest[h]


@kernel(
    grid=("splits", "H // QH"), group=128, types=CACHED, cpu={"T": "f32"},
    statics={"QH": [1, 2, 3, 4, 5, 7, 8]},
    where=["H % Hkv == 0", "H // Hkv % QH == 0", "P % 64 == 0", "D <= 256"],
    # The capacity P says nothing of how much is read; parts are of about 256 keys.
    bytes="1024 * splits * Hkv * D", flops="1024 * splits * H * D",
)  # fmt: skip
def sdpa_decode(
    q: In[T, "H", "D"],
    kc: In[K, "Hkv", "P // WARP", "D", "WARP"],
    vc: In[K, "Hkv", "P", "D"],
    part: Out[f32, "splits", "H", "D"],
    stat: Out[f32, "splits", "H", 2],
    scale: Const[f32],
):
    """One row against the cache, the KV axis in `step.splits` parts.

    Of each part: sums not yet divided, and (max, sum). The QH query heads of a group share every
    key and value that is read.
    """
    split, head = group.id(0), group.id(1) * QH  # a core walks along the keys of one head
    if split >= step.splits:
        return
    hkv, d_end = head // (dim("H") // dim("Hkv")), dim("D")
    span = (step.kv_len + step.splits - 1) // step.splits
    span = (span + WARP - 1) // WARP * WARP
    first = split * span
    last = min(first + span, step.kv_len)

    query, score, sums = shared(f32, QH, MAX_D), shared(f32, QH, CHUNK), shared(f32, QH, MAX_D)
    soft = shared(f32, QH, 3)
    for h in range(QH):
        for d in lanes(d_end):
            query[h, d] = f32(q[head + h, d]) * scale
            sums[h, d] = f32(0)
        soft[h, TOP], soft[h, MASS] = f32(LOWEST), f32(0)
    barrier()

    for start in range(first, last, CHUNK):
        count = min(last - start, u32(CHUNK))
        for tile in warps((count + WARP - 1) // WARP):
            s = score_tile(kc, hkv, start // WARP + tile, query, QH, d_end)
            at = tile * WARP + lane()
            for h in unroll(QH):
                score[h, at] = s[h] if at < count else f32(LOWEST)
        barrier()
        for h in range(QH):
            chunk_softmax(score, soft, h, count)
        barrier()
        add_values(sums, score, soft, vc, hkv, start, count, QH, d_end)
        barrier()

    for h in range(QH):
        for d in lanes(d_end):
            part[split, head + h, d] = sums[h, d]
        stat[split, head + h, 0] = soft[h, TOP]
        stat[split, head + h, 1] = soft[h, MASS]


@kernel(grid="H", group=32, types={"T": ["f32", "f16", "bf16"]})
def sdpa_combine(
    part: In[f32, "splits", "H", "D"], stat: In[f32, "splits", "H", 2], out: Out[T, "H", "D"]
):
    """Join the parts of sdpa_decode: each weighs exp(its max - the overall max)."""
    head = group.id(0)
    top = f32(LOWEST)
    for s in range(step.splits):
        top = max(top, stat[s, head, 0])
    mass = f32(0)
    for s in range(step.splits):
        mass += stat[s, head, 1] * exp(stat[s, head, 0] - top)
    for d in lanes(dim("D")):
        acc = f32(0)
        for s in range(step.splits):
            acc += part[s, head, d] * exp(stat[s, head, 0] - top)
        out[head, d] = T(acc / mass)


ROWS = 4  # queries of one head that share every key and value


@kernel(
    grid=("ceildiv(rows, 4)", "H"), group=128, types=CACHED, cpu={"T": "f32"},
    where=["H % Hkv == 0", "P % 64 == 0", "D <= 256"],
    bytes="4 * rows * H * D", flops="2 * rows * H * P * D",
)  # fmt: skip
def sdpa_prefill(
    q: In[T, "rows", "H", "D"],
    kc: In[K, "Hkv", "P // WARP", "D", "WARP"],
    vc: In[K, "Hkv", "P", "D"],
    out: Out[T, "rows", "H", "D"],
    scale: Const[f32],
):
    """Causal attention of many rows, flash style: never more than CHUNK scores per row at once.

    Row r stands at position step.pos + r and sees the keys up to itself, which are in the cache.
    """
    r0, head = group.id(0) * ROWS, group.id(1)
    if r0 >= step.rows:
        return
    hkv, d_end = head // (dim("H") // dim("Hkv")), dim("D")
    last = min(step.pos + r0 + ROWS, step.pos + step.rows)

    query, score = shared(f32, ROWS, MAX_D), shared(f32, ROWS, CHUNK)
    sums, soft = shared(f32, ROWS, MAX_D), shared(f32, ROWS, 3)
    for r in range(ROWS):
        row = min(r0 + r, step.rows - 1)
        for d in lanes(d_end):
            query[r, d] = f32(q[row, head, d]) * scale
            sums[r, d] = f32(0)
        soft[r, TOP], soft[r, MASS] = f32(LOWEST), f32(0)
    barrier()

    for start in range(0, last, CHUNK):
        count = min(last - start, u32(CHUNK))
        for tile in warps((count + WARP - 1) // WARP):
            s = score_tile(kc, hkv, start // WARP + tile, query, ROWS, d_end)
            at = tile * WARP + lane()
            for r in unroll(ROWS):
                seen = start + at <= step.pos + r0 + r
                score[r, at] = s[r] if seen else f32(LOWEST)
        barrier()
        for r in range(ROWS):
            chunk_softmax(score, soft, r, count)
        barrier()
        add_values(sums, score, soft, vc, hkv, start, count, ROWS, d_end)
        barrier()

    for r in range(min(step.rows - r0, u32(ROWS))):
        for d in lanes(d_end):
            out[r0 + r, head, d] = T(sums[r, d] / soft[r, MASS])
