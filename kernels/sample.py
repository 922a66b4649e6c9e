"""The sampling chain on one row of logits: what the filters keep of it, and its mass.

Penalties and temperature make the logits (penalty.py). Top-k, top-p and min-p each keep what is
above a level, so together they are one level and, among logits equal to it, an end of their ids.
Each filter sees the distribution that the one before it left. NaN counts as -inf. Filters do
nothing when off or when the temperature is 0; if step.sample is 0 no kernel does anything.
"""

from iron import (
    In, Out, ceil, dim, exp, f32, group, inline, kernel, lanes, log, shared, step, u32, warp, warps,
)  # fmt: skip
from penalty import divisor, penalized, tempered
from ranking import (
    LIST, REACH, blocks_of, end_of_equals, equals_of, rank, search, tally, unrank, weight,
)  # fmt: skip

INF = float("inf")
SHARE = 16  # blocks of one group
GRID = "ceildiv(V, ceildiv(V, 32768) * 32 * 16)"
FIRST = 32  # blocks whose largest logits top-p looks at first


@inline
def share_of(group_id):
    """(first block of a group, end, tokens per block)."""
    size, blocks = blocks_of(dim("V"))
    return group_id * SHARE, min(group_id * SHARE + SHARE, blocks), size


@inline
def has_top_k():
    return step.top_k != 0 and step.top_k < dim("V")


@kernel(grid=GRID, group=256, bytes="4 * V", flops="2 * V")
def sample_tops(
    logits: In[f32, "rowsL", "V"],
    counts: In[u32, "V"],
    bias: In[f32, "V"],
    tops: Out[f32, "ceildiv(V, ceildiv(V, 32768) * 32)"],
    sums: Out[f32, "ceildiv(V, ceildiv(V, 32768) * 32)"],
):
    """The largest of each block of the last row, after penalties and temperature.

    sums[b] is the sum of exp(x - tops[b]) over the block if top-p is on; 0 if top-k keeps no more
    tokens than there are blocks, since they are added up fast.
    """
    if step.sample == 0:
        return
    n, row = dim("V"), (logits, counts, bias, tops)
    _, blocks = blocks_of(n)
    first, end, size = share_of(group.id(0))
    is_small = step.top_k != 0 and step.top_k <= blocks
    is_summed = step.temperature > 0.0 and step.top_p < 1.0 and not is_small
    for b in warps(first, end):
        top = f32(-INF)
        for i in lanes(b * size, min(b * size + size, n)):
            x = penalized(row, i)
            top = x if x > top else top
        top = warp.max(top) / divisor()  # quotients have the order of what is divided
        tops[b] = top
        total = f32(0)
        if is_summed:
            for i in lanes(b * size, min(b * size + size, n)):
                total += weight(tempered(row, i), top)
        sums[b] = warp.sum(total)


@inline
def top_k(row, listed, bounds, top):
    """Keep the step.top_k largest logits, of equal ones at the border the lowest ids.

    Returns what the search found, how many of the equal ones stay and the end of their ids.
    """
    k, end = step.top_k, dim("V")
    _, blocks = blocks_of(end)
    # Spread evenly, 6k/5 logits above a level would lie in so many blocks.
    share = 1.0 - exp(f32(k) * -1.2 / f32(blocks))
    guess = min(k, u32(f32(blocks) * share) + 1)
    found = search(row, listed, bounds, k, guess, top, False)
    low, above, _held, _extent, _is_whole = found
    ties = equals_of(row, listed, found, top)
    stay = min(k - above, ties)
    if stay < ties and unrank(low) > -INF:
        end = end_of_equals(row, unrank(low), stay)
    return found, stay, end


@inline
def top_p(row, listed, bounds, top, mass, stay, end):
    """Keep the smallest set of likeliest tokens whose mass is at least step.top_p of `mass`.

    The token that crosses the border stays, so one always does. Of equally likely tokens at the
    border as many stay as are needed, lowest ids first. Sums are f32. `stay` tokens of the lowest
    rank are still there, those before `end`. Returns a rank and the new end.
    """
    least, high, held, extent = bounds
    n, target = dim("V"), mass * step.top_p
    # Even if all V tokens stood just below this logit, they would not make up 1 - p.
    floor = rank(top + log(mass * (1.0 - step.top_p) / n))
    low = max(least, min(floor, high))
    found = search(row, listed, (low, high, f32(0), held, extent), target, u32(FIRST), top, True)
    low, above, _held, _extent, _is_whole = found
    ties = stay
    if low != least:
        ties, end = equals_of(row, listed, found, top), n
    level = unrank(low)
    if ties > 1 and level > -INF:
        needed = max(ceil((target - above) / weight(level, top)), 1.0)
        if needed < f32(ties):
            end = end_of_equals(row, level, u32(needed))
    return low, end


@inline
def min_p(low, high, top):
    """The lowest rank, at least `low`, that is close enough to that of the likeliest token."""
    gap = log(step.min_p)
    for _ in range(32):
        if low < high:
            mid = low + (high - low) // 2
            x = unrank(mid)
            if x == top or x - top >= gap:
                high = mid
            else:
                low = mid + 1
    return low


@kernel(grid=1, group=1024, bytes="V // 4")
def sample_border(
    logits: In[f32, "rowsL", "V"],
    counts: In[u32, "V"],
    bias: In[f32, "V"],
    tops: In[f32, "ceildiv(V, ceildiv(V, 32768) * 32)"],
    sums: In[f32, "ceildiv(V, ceildiv(V, 32768) * 32)"],
    span: Out[f32, 2],
    end: Out[u32, 1],
):
    """span = (largest logit, level). Filters keep what is above the level, or equal before end.

    top_k of 0, and of V or more, keeps all; so does top_p of 1 or more. min_p drops tokens less
    likely than this share of the likeliest, which stays; 0 keeps all.
    """
    if step.sample == 0:
        return
    n, row = dim("V"), (logits, counts, bias, tops)
    _, blocks = blocks_of(n)
    top = f32(-INF)
    for b in lanes(blocks):
        top = max(top, tops[b])
    top = group.max(top)

    low, high, kept = rank(f32(-INF)), rank(top), n
    if step.temperature > 0.0 and top > -INF:
        listed = shared(f32, LIST)
        held, extent, stay = u32(0), u32(0), n
        if has_top_k():
            bounds = (low, high, u32(0), held, extent)
            found, stay, kept = top_k(row, listed, bounds, top)
            low, _above, is_held, extent, is_whole = found
            held = is_held * is_whole  # then the list serves top-p too
        if step.top_p < 1.0:
            mass = f32(0)
            if has_top_k():
                mass = tally(row, (listed, held, extent), low + 1, high, top, True)
                mass += f32(stay) * weight(unrank(low), top)
            else:
                for b in lanes(blocks):
                    mass += sums[b] * weight(tops[b], top)
                mass = group.sum(mass)
            low, kept = top_p(row, listed, (low, high, held, extent), top, mass, stay, kept)
        if step.min_p > 0.0:
            nearer = min_p(low, high, top)
            kept = kept if nearer == low else n
            low = nearer
    span[0], span[1], end[0] = top, unrank(low), kept


@kernel(grid=GRID, group=256, bytes="4 * V", flops="20 * V")
def sample_masses(
    logits: In[f32, "rowsL", "V"],
    counts: In[u32, "V"],
    bias: In[f32, "V"],
    tops: In[f32, "ceildiv(V, ceildiv(V, 32768) * 32)"],
    span: In[f32, 2],
    end: In[u32, 1],
    masses: Out[f32, "ceildiv(V, ceildiv(V, 32768) * 32)"],
):
    """masses[b] = the sum of exp(x - largest) over what is kept of a block. Not if greedy."""
    if step.sample == 0 or step.temperature == 0.0:
        return
    n, row = dim("V"), (logits, counts, bias, tops)
    top, level, kept = span[0], span[1], end[0]
    first, last, size = share_of(group.id(0))
    for b in warps(first, last):
        mass = f32(0)
        if tops[b] >= max(level, top - REACH):
            for i in lanes(b * size, min(b * size + size, n)):
                x = tempered(row, i)
                mass += weight(x, top) if x > level or (x == level and i < kept) else 0.0
        masses[b] = warp.sum(mass)
