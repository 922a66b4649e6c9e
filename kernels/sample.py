"""The sampling chain on one row of logits: penalize, top-k, top-p, min-p, draw.

`work` holds a logit per token; a filter sets what it drops to -inf. Each filter sees the distribution that the one
before it left, so renormalization needs no pass of its own. A token at -inf is never drawn; NaN counts as -inf.
Filters do nothing when they are off, when the temperature is 0, or when step.sample is 0.

The row is cut into at most 1024 blocks. Each kernel first takes the maximum of every block into group memory; a pass
that looks for tokens above a threshold then skips nearly all of them.
"""

from iron import (
    In,
    InOut,
    Out,
    barrier,
    bitcast,
    dim,
    exp,
    f32,
    group,
    i32,
    inline,
    kernel,
    lanes,
    log,
    mulhi,
    select,
    shared,
    step,
    u32,
    unroll,
    warp,
    warps,
)  # fmt: skip

BLOCKS = 1024
GENERATED = 0x7FFFFFFF  # bits of a count: how often the token was generated
PROMPT = 0x80000000  # and whether it is in the prompt
INF = float("inf")
COLDEST = (
    2.0**-60
)  # lower temperatures count as this one, so that logits / temperature stays finite


# -- shared steps ----------------------------------------------------------------------------------


@inline
def rank(x):
    """Order of floats as order of u32: equal zeros are equal, NaN is below -inf."""
    bits = bitcast(u32, x + 0.0)  # -0 + 0 = 0
    flipped = bits ^ select(bits >= PROMPT, u32(0xFFFFFFFF), u32(PROMPT))
    return flipped if x == x else u32(0)


@inline
def unrank(r):
    return bitcast(f32, r ^ select(r >= PROMPT, u32(PROMPT), u32(0xFFFFFFFF)))


@inline
def block_size(n):
    """A multiple of 32 that cuts n tokens into at most BLOCKS blocks."""
    return (n + (BLOCKS * 32 - 1)) // (BLOCKS * 32) * 32


@inline
def block_tops(work, tops):
    """tops[b] = rank of the largest logit of block b; returns the largest rank of all."""
    n = dim("V")
    size = block_size(n)
    best = u32(0)
    for b in warps((n + size - 1) // size):
        top = f32(-INF)
        for i in lanes(b * size, min(b * size + size, n)):
            x = work[i]
            top = x if x > top else top
        top = warp.max(top)
        tops[b] = rank(top)
        best = max(best, rank(top))
    barrier()
    return group.max(best)


@inline
def weight(x, top):
    """exp(x - top) without inf - inf; 0 for NaN."""
    return 1.0 if x == top else (exp(x - top) if x < top else 0.0)


@inline
def count_from(work, tops, floor):
    """How many tokens rank at or above `floor`."""
    n = dim("V")
    size = block_size(n)
    count = u32(0)
    for b in warps((n + size - 1) // size):
        if tops[b] >= floor:
            for i in lanes(b * size, min(b * size + size, n)):
                count += u32(rank(work[i]) >= floor)
    return group.sum(count)


@inline
def count_equal_before(work, tops, level, end):
    """How many of the first `end` tokens have exactly this rank."""
    n = dim("V")
    size = block_size(n)
    count = u32(0)
    for b in warps((n + size - 1) // size):
        if tops[b] >= level:
            for i in lanes(b * size, min(b * size + size, n)):
                count += u32(rank(work[i]) == level and i < end)
    return group.sum(count)


@inline
def mass_from(work, tops, floor, top):
    """Total weight of the tokens that rank at or above `floor`."""
    n = dim("V")
    size = block_size(n)
    mass = f32(0)
    for b in warps((n + size - 1) // size):
        if tops[b] >= floor:
            for i in lanes(b * size, min(b * size + size, n)):
                x = work[i]
                mass += weight(x, top) if rank(x) >= floor else 0.0
    return group.sum(mass)


@inline
def first_equals(work, tops, level, wanted):
    """The smallest end such that `wanted` tokens before it have this rank: ties go to the lowest ids."""
    low, high = u32(0), dim("V")
    for _ in range(32):
        if low < high:
            mid = low + (high - low) // 2
            if count_equal_before(work, tops, level, mid) >= wanted:
                high = mid
            else:
                low = mid + 1
    return low


@inline
def keep(work, tops, level, end):
    """Drop every token that ranks below `level`, or at it with an id from `end` on."""
    n = dim("V")
    size = block_size(n)
    for b in warps((n + size - 1) // size):
        for i in lanes(b * size, min(b * size + size, n)):
            x = work[i]
            r = rank(x)
            work[i] = x if r > level or (r == level and i < end) else -INF


# -- the chain -------------------------------------------------------------------------------------


@kernel(grid="ceildiv(V, 4096)", group=256, flops="8 * V")
def sample_penalize(
    logits: In[f32, "rowsL", "V"], counts: In[u32, "V"], bias: In[f32, "V"], work: Out[f32, "V"]
):
    """work = the last row of logits with penalties, bias and temperature, in this order.

    Repetition divides a positive logit and multiplies a negative one, for tokens of prompt or output. Presence is
    subtracted once from tokens of the output, frequency once per occurrence. bias counts if step.use_bias is set.
    Temperature 0 does not divide. NaN becomes -inf.
    """
    start, row = group.id(0) * 4096, dim("rowsL") - 1
    end = min(start + 4096, dim("V"))
    divisor = max(step.temperature, COLDEST) if step.temperature > 0.0 else 1.0
    repetition, presence, frequency = step.repetition, step.presence, step.frequency
    if repetition != 1.0 or presence != 0.0 or frequency != 0.0 or step.use_bias != 0:
        for i in lanes(start, end):
            x, seen = logits[row, i], counts[i]
            times = seen & GENERATED
            penalized = x / repetition if x > 0.0 else x * repetition
            x = penalized if seen != 0 else x
            x = x - (presence + frequency * f32(times) if times != 0 else 0.0)
            if step.use_bias != 0:
                x = x + bias[i]
            work[i] = x / divisor if x == x else -INF
    else:
        for i in lanes(start, end):
            x = logits[row, i]
            work[i] = x / divisor if x == x else -INF


@kernel(grid=1, group=1024, bytes="12 * V")
def sample_top_k(work: InOut[f32, "V"]):
    """Keep the step.top_k largest logits; of equal ones at the border the lowest ids. 0 and V or more keep all.

    The border is found by bisection on ranks, first among the maxima of the blocks, which bound it from below.
    """
    k = step.top_k
    if step.sample == 0 or step.temperature == 0.0 or k == 0 or k >= dim("V"):
        return
    tops = shared(u32, BLOCKS)
    high = block_tops(work, tops)

    n = dim("V")
    blocks = (n + block_size(n) - 1) // block_size(n)
    low, top = u32(0), high
    for _ in range(32):
        if k <= blocks and low < top:
            mid = top - (top - low) // 2
            count = u32(0)
            for b in lanes(blocks):
                count += u32(tops[b] >= mid)
            if group.sum(count) >= k:
                low = mid
            else:
                top = mid - 1

    # At least k tokens rank at or above `low`, fewer than k above `high`.
    for _ in range(32):
        if low < high:
            mid = high - (high - low) // 2
            count = count_from(work, tops, mid)
            if count >= k:
                low = mid
            if count <= k:
                high = mid if count == k else mid - 1

    above = count_from(work, tops, low + 1)
    end = n
    if count_from(work, tops, low) > k:
        end = first_equals(work, tops, low, k - above)
    keep(work, tops, low, end)


@kernel(grid=1, group=1024, bytes="12 * V")
def sample_top_p(work: InOut[f32, "V"]):
    """Keep the smallest set of most probable tokens whose mass is at least step.top_p; 1 or more keeps all.

    The token that crosses the border stays, so one always does. Of equally probable tokens at the border as many
    stay as are needed, lowest ids first. Sums are f32.
    """
    p = step.top_p
    if step.sample == 0 or step.temperature == 0.0 or not (p < 1.0):
        return
    tops = shared(u32, BLOCKS)
    high = block_tops(work, tops)
    top = unrank(high)
    total = mass_from(work, tops, rank(f32(-INF)) + 1, top)
    target = total * p

    # Even if all V tokens stood just below this logit, they would not make up 1 - p.
    floor = top + log(total * (1.0 - p) / dim("V"))
    low = min(rank(floor), high)
    for _ in range(32):
        if low < high:
            mid = high - (high - low) // 2
            if mass_from(work, tops, mid, top) >= target:
                low = mid
            else:
                high = mid - 1

    end = dim("V")
    ties = count_equal_before(work, tops, low, end)
    if ties > 1:
        above = mass_from(work, tops, low + 1, top)
        wanted = u32(
            min(max((target - above) / weight(unrank(low), top) + 0.999999, 1.0), f32(ties))
        )
        end = first_equals(work, tops, low, wanted)
    keep(work, tops, low, end)


@kernel(grid=1, group=1024, bytes="12 * V")
def sample_min_p(work: InOut[f32, "V"]):
    """Drop the tokens less probable than step.min_p times the likeliest, which always stays. 0 keeps all."""
    share = step.min_p
    if step.sample == 0 or step.temperature == 0.0 or not (share > 0.0):
        return
    best = f32(-INF)
    for i in lanes(dim("V")):
        best = work[i] if work[i] > best else best
    best = group.max(best)
    border = log(share)
    for i in lanes(dim("V")):
        x = work[i]
        work[i] = x if x == best or x - best >= border else -INF


@inline
def philox(c0, c1, c2, c3, k0, k1):
    """Philox4x32-10: four random words from a counter and a key (Salmon et al., SC 2011)."""
    for _ in unroll(10):
        low0, high0 = c0 * 0xD2511F53, mulhi(c0, u32(0xD2511F53))
        low1, high1 = c2 * 0xCD9E8D57, mulhi(c2, u32(0xCD9E8D57))
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + 0x9E3779B9, k1 + 0xBB67AE85
    return c0, c1, c2, c3


@inline
def argmax(work):
    """The id of the largest logit, the lowest of equals; V if every logit is -inf or NaN."""
    best, at = f32(-INF), dim("V")
    for i in lanes(dim("V")):
        x = work[i]
        at = i if x > best else at
        best = x if x > best else best
    largest = group.max(best)
    return group.min(at if best == largest else dim("V"))


@inline
def categorical(work, sums):
    """Inverse of the distribution function, in the order of ids, at one uniform number of [0, 1).

    The sum over a block is taken in another order than the walk through it, so rounding can let the walk end without
    a hit; then the last token with any weight is taken.
    """
    n = dim("V")
    size = block_size(n)
    blocks = (n + size - 1) // size
    top = f32(-INF)
    for i in lanes(n):
        top = work[i] if work[i] > top else top
    top = group.max(top)
    for b in warps(blocks):
        mass = f32(0)
        for i in lanes(b * size, min(b * size + size, n)):
            mass += weight(work[i], top)
        sums[b] = warp.sum(mass)
    barrier()
    total = f32(0)
    for b in range(blocks):
        total += sums[b]

    word, _, _, _ = philox(step.draw, u32(0), u32(0), u32(0), step.seed_lo, step.seed_hi)
    target = f32(word >> 8) * 2.0**-24 * total

    before, block, rest, found = f32(0), u32(0), f32(0), u32(0)
    for b in range(blocks):
        mass = sums[b]
        if found == 0 and mass > 0.0:
            block, rest = b, target - before
            found = u32(before + mass > target)
        before += mass

    token, walked, found = n, f32(0), u32(0)
    for i in range(block * size, min(block * size + size, n)):
        w = weight(work[i], top)
        walked += w
        if found == 0 and w > 0.0:
            token = i
            found = u32(walked > rest)
    return token if top > -INF else n


@kernel(grid=1, group=1024, bytes="12 * V")
def sample_draw(work: In[f32, "V"], next: InOut[i32, 1], counts: InOut[u32, "V"]):
    """Choose the token: next[0] and step.out_token, and one more in counts.

    Temperature 0 takes the largest logit, the lowest id among equals. Otherwise the token is drawn from softmax(work)
    with a uniform number that depends on (seed, draw) alone: the upper 24 bits of the first word of Philox4x32-10 with
    key (seed_lo, seed_hi) and counter (draw, 0, 0, 0). If every logit is -inf or NaN the token is -1 and counts stay.
    """
    if step.sample == 0:
        return
    sums = shared(f32, BLOCKS)
    token = dim("V")
    if step.temperature > 0.0:
        token = categorical(work, sums)
    else:
        token = argmax(work)
    known = token < dim("V")
    place = token if known else u32(0)
    before = counts[place]
    barrier()  # all lanes have read the count before one of them changes it
    counts[place] = before + u32(known)
    chosen = i32(token) if known else i32(-1)
    next[0] = chosen
    step.out_token = chosen


@kernel(grid=1, group=256, bytes="12 * rows")
def count_prompt(ids: In[i32, "rows"], counts: InOut[u32, "V"]):
    """Mark the tokens of a prompt in counts; ids outside the vocabulary are passed over."""
    for r in lanes(dim("rows")):
        token = ids[r]
        if token >= 0 and u32(token) < dim("V"):
            counts[u32(token)] = counts[u32(token)] | PROMPT
