"""The sampling chain on one row of logits: penalize, top-k, top-p, min-p; then a draw (draw.py).

`work` holds a logit per token; a filter sets what it drops to -inf. Each filter sees the
distribution that the one before it left, so renormalization needs no pass of its own. NaN counts
as -inf. Filters do nothing when off, when the temperature is 0, or when step.sample is 0.
"""

from iron import (
    In, InOut, Out, ceil, dim, f32, group, kernel, lanes, log, shared, step, u32, unroll,
)  # fmt: skip
from ranking import (
    BLOCKS, REACH, block_tops, blocks_of, count_equal, count_from, end_of_equals, keep, mass_from,
    masses_from, rank, unrank, weight,
)  # fmt: skip

GENERATED = 0x7FFFFFFF  # of a count: how often generated; the top bit says: in the prompt
CHUNK = 4096
COLDEST = 2.0**-60  # lower temperatures count as this one, so that quotients stay finite
INF = float("inf")
STEPS = 3  # thresholds that one pass of top-p tries


@kernel(grid="ceildiv(V, 4096)", group=256, bytes="12 * V", flops="8 * V")
def sample_penalize(
    logits: In[f32, "rowsL", "V"], counts: In[u32, "V"], bias: In[f32, "V"], work: Out[f32, "V"]
):
    """work = the last row of logits with penalties, bias and temperature, in this order.

    Repetition divides a positive logit and multiplies a negative one, for tokens of prompt or
    output. Presence is subtracted once from tokens of the output, frequency once per occurrence.
    bias counts if step.use_bias is set. Temperature 0 does not divide. NaN becomes -inf.
    """
    start, row = group.id(0) * CHUNK, dim("rowsL") - 1
    end = min(start + CHUNK, dim("V"))
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
    """Keep the step.top_k largest logits, of equal ones at the border the lowest ids.

    0 and V or more keep all. The border is found by bisection over ranks, first among the largest
    logits of the blocks, which bound it from below.
    """
    k = step.top_k
    if step.sample == 0 or step.temperature == 0.0 or k == 0 or k >= dim("V"):
        return
    tops = shared(f32, BLOCKS)
    high = rank(block_tops(work, tops))

    _, blocks = blocks_of(dim("V"))
    low, top = rank(f32(-INF)), high
    for _ in range(32):
        if k <= blocks and low < top:
            mid = top - (top - low) // 2
            count = u32(0)
            for b in lanes(blocks):
                count += u32(tops[b] >= unrank(mid))
            if group.sum(count) >= k:
                low = mid
            else:
                top = mid - 1

    # At least k logits rank at or above `low`, fewer than k above `high`.
    for _ in range(32):
        if low < high:
            mid = high - (high - low) // 2
            count = count_from(work, tops, unrank(mid))
            if count >= k:
                low = mid
            if count <= k:
                high = mid if count == k else mid - 1

    level, end = unrank(low), dim("V")
    from_level = count_from(work, tops, level)
    if from_level > k:
        ties = count_equal(work, tops, level, end)
        end = end_of_equals(work, tops, level, ties - (from_level - k))
    keep(work, level, end)


@kernel(grid=1, group=1024, bytes="12 * V")
def sample_top_p(work: InOut[f32, "V"]):
    """Keep the smallest set of likeliest tokens whose mass is at least step.top_p; 1 keeps all.

    The token that crosses the border stays, so one always does. Of equally likely tokens at the
    border as many stay as are needed, lowest ids first. Sums are f32.
    """
    p = step.top_p
    if step.sample == 0 or step.temperature == 0.0 or not (p < 1.0):
        return
    tops = shared(f32, BLOCKS)
    top = block_tops(work, tops)
    if top == -INF:
        return
    total = mass_from(work, tops, top - REACH, top)
    target = total * p

    # Even if all V tokens stood just below this logit, they would not make up 1 - p.
    floor = top + log(total * (1.0 - p) / dim("V"))
    high = rank(top)
    low = min(rank(floor), high)
    for _ in range(16):  # 4**16 = 2**32
        if low < high:
            width = (high - low) // (STEPS + 1) + 1
            mass = masses_from(work, tops, low, width, top, STEPS)
            reached = u32(0)
            for j in unroll(STEPS):
                reached += u32(mass[j] >= target and low + (j + 1) * width <= high)
            low += reached * width
            high = min(high, low + width - 1)

    level, end = unrank(low), dim("V")
    ties = count_equal(work, tops, level, end)
    if ties > 1:
        missing = target - mass_from(work, tops, unrank(low + 1), top)
        wanted = min(max(ceil(missing / weight(level, top)), 1.0), f32(ties))
        end = end_of_equals(work, tops, level, u32(wanted))
    keep(work, level, end)


@kernel(grid=1, group=1024, bytes="12 * V")
def sample_min_p(work: InOut[f32, "V"]):
    """Drop tokens less likely than step.min_p times the likeliest, which stays. 0 keeps all."""
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
