"""Steps of the sampling kernels: finding the logit at which a filter cuts one row.

The row is cut into at most 1024 blocks whose largest logits are known, so that a look for logits
above a level skips nearly all blocks. What lies between the bounds of a search moves to group
memory as soon as it fits there. V is the number of tokens; `row` is (logits, counts, bias, tops).
"""

from iron import (
    WARP, array, barrier, bitcast, dim, exp, f32, group, inline, lanes, num_warps, select,
    shared, u32, unroll, warp, warps,
)  # fmt: skip
from penalty import tempered

BLOCKS = 1024
LIST = 2048  # logits that a search keeps in group memory
GUESSES = 5  # at a level that bounds a search
ROUNDS = 4  # passes over the row before the next try to list what is left
INF = float("inf")
NAN = float("nan")
SIGN = 0x80000000
REACH = 104.0  # exp of less than -REACH is 0
STEPS = 3  # levels that one pass tries


@inline
def rank(x):
    """The order of floats as one of u32; equal zeros are equal."""
    bits = bitcast(u32, x + 0.0)  # -0 + 0 = 0
    return bits ^ select(bits >= SIGN, u32(0xFFFFFFFF), u32(SIGN))


@inline
def unrank(r):
    """The float of a rank."""
    return bitcast(f32, r ^ select(r >= SIGN, u32(SIGN), u32(0xFFFFFFFF)))


@inline
def unrank_below(r):
    """The largest float of this rank or less. -0 has a rank of its own, but equals 0: one less."""
    return unrank(r - u32(r == SIGN - 1))


@inline
def weight(x, top):
    """exp(x - top) without inf - inf; 0 for NaN."""
    return 1.0 if x == top else (exp(x - top) if x < top else 0.0)


@inline
def blocks_of(n):
    """(tokens per block, blocks): a multiple of 32, so that few lanes idle."""
    size = (n + (BLOCKS * 32 - 1)) // (BLOCKS * 32) * 32
    return size, (n + size - 1) // size


@inline
def tops_of(row):
    _a, _b, _c, tops = row
    return tops


@inline
def kth_top(tops, k, high):
    """A rank that the largest logits of k blocks reach, so k logits at least; few more do.

    `high` is that of the largest logit of all. The rank of -inf if there are fewer blocks.
    """
    _, blocks = blocks_of(dim("V"))
    low = rank(f32(-INF))
    for _ in range(32):
        if k <= blocks and low < high:
            mid = high - (high - low) // 2
            level, count = unrank(mid), u32(0)
            for b in lanes(blocks):
                count += u32(tops[b] >= level)
            count = group.sum(count)
            if count >= k:
                low = mid
            if count <= k:
                high = mid if count == k else mid - 1
    return low


@inline
def gather(row, listed, floor, ceiling):
    """Lists the logits from floor to ceiling: (where the list ends, 1 if all fit, else 0).

    Each warp fills a part of the list of its own; what it leaves free is NaN.
    """
    tops = tops_of(row)
    n = dim("V")
    size, blocks = blocks_of(n)
    room = LIST // num_warps()
    filled = warp.id() * room
    limit = filled + room
    barrier()
    for j in lanes(LIST):
        listed[j] = f32(NAN)
    barrier()
    for b in warps(blocks):
        if tops[b] >= floor and filled <= limit:
            for start in range(b * size, min(b * size + size, n), WARP):
                x = f32(NAN)
                for i in lanes(start, min(start + WARP, n)):
                    x = tempered(row, i)
                hit = u32(x >= floor and x <= ceiling)
                if warp.max(hit) != 0:
                    at = filled + warp.scan_sum(hit) - hit
                    if hit != 0 and at < limit:
                        listed[at] = x
                    filled += warp.sum(hit)
    barrier()
    fits = u32(group.max(u32(filled > limit)) == 0)
    return group.max(min(filled, limit)), fits


@inline
def tallies(row, place, low, width, high, top, steps, by_mass):
    """Of the ranks low + width, low + 2*width, …: how many logits, or what mass, lie between each
    and `high`. Looks into the list, or the row where `place` has none."""
    listed, end = place
    floor, total = array(f32, steps), array(f32 if by_mass else u32, steps)
    for j in unroll(steps):
        floor[j] = unrank(low + (j + 1) * width)
    ceiling = unrank_below(high)
    if listed == 0:
        n, tops = dim("V"), tops_of(row)
        size, blocks = blocks_of(n)
        for b in warps(blocks):
            if tops[b] >= floor[0]:
                part = array(f32 if by_mass else u32, steps)  # fewer roundings in a row
                for i in lanes(b * size, min(b * size + size, n)):
                    x = tempered(row, i)
                    w = weight(x, top) if by_mass else u32(1)
                    for j in unroll(steps):
                        part[j] += w if x >= floor[j] and x <= ceiling else 0
                for j in unroll(steps):
                    total[j] += part[j]
    else:
        for i in lanes(end):
            x = listed[i]
            w = weight(x, top) if by_mass else u32(1)
            for j in unroll(steps):
                total[j] += w if x >= floor[j] and x <= ceiling else 0
    for j in unroll(steps):
        total[j] = group.sum(total[j])
    return total


@inline
def tally(row, source, low, high, top, by_mass):
    """How many logits, or what mass, rank from low to high; from the list if it is held."""
    listed, held, end = source
    total = f32(0) if by_mass else u32(0)
    if held != 0:
        total = tallies(row, (listed, end), low - 1, 1, high, top, 1, by_mass)[0]
    else:
        total = tallies(row, (0, 0), low - 1, 1, high, top, 1, by_mass)[0]
    return total


@inline
def pinch(row, place, bounds, want, top, by_mass):
    """Narrows (low, high, tally above high) to a fourth."""
    low, high, above = bounds
    width = (high - low) // (STEPS + 1) + 1
    part = tallies(row, place, low, width, high, top, STEPS, by_mass)
    reached, over = u32(0), above
    for back in unroll(STEPS):
        j = STEPS - 1 - back
        is_reached = above + part[j] >= want and low + (j + 1) * width <= high
        reached += u32(is_reached)
        over = over if is_reached else above + part[j]
    low += reached * width
    return low, min(high, low + width - 1), over


@inline
def search(row, listed, bounds, want, guess, top, by_mass):
    """The highest rank that `want` logits, or logits of that mass, reach.

    `bounds` are (low, high, tally above high, held, end); if held is 1, the list up to `end` has
    all from low to high. Returns (rank, tally above it, held, end, is_whole); if is_whole is 1, the
    list has all from the rank on. At first the search is bounded by the largest logits of `guess`
    blocks, then of more, as long as the list has room for what is above them.
    """
    low, high, above, held, end = bounds
    tops, first = tops_of(row), rank(top)
    is_whole, guesses = held, u32(0)
    for _ in range(GUESSES + 16 // ROUNDS):
        if held == 0 and low < high:
            at = low
            if guesses < GUESSES:
                at = max(low, kth_top(tops, guess, first))
                guess = guess * 2
                guesses += 1
            else:
                for _turn in range(ROUNDS):
                    if low < high:
                        bounds = (low, high, above)
                        low, high, above = pinch(row, (0, 0), bounds, want, top, by_mass)
                at = low
            if at <= high and low < high:
                extent, fits = gather(row, listed, unrank(at), unrank_below(high))
                if fits == 0:
                    guesses = u32(GUESSES)
                else:
                    reach = above + tally(row, (listed, 1, extent), at, high, top, by_mass)
                    if reach >= want or at == low:
                        low, end, held, is_whole = at, extent, u32(1), u32(high == first)
                    else:
                        high, above = at - 1, reach
    for _turn in range(16):  # 4**16 = 2**32
        if held != 0 and low < high:
            bounds = (low, high, above)
            low, high, above = pinch(row, (listed, end), bounds, want, top, by_mass)
    return low, above, held, end, is_whole


@inline
def equals_of(row, listed, found, top):
    """How many logits have the rank that a search found."""
    low, _above, held, end, _is_whole = found
    return tally(row, (listed, held, end), low, low, top, False)


@inline
def end_of_equals(row, level, wanted):
    """The smallest end with `wanted` logits of this level before it: ties go to the lowest ids."""
    n, tops = dim("V"), tops_of(row)
    size, blocks = blocks_of(n)
    equals = shared(u32, BLOCKS)
    for b in warps(blocks):
        count = u32(0)
        if tops[b] >= level:
            for i in lanes(b * size, min(b * size + size, n)):
                count += u32(tempered(row, i) == level)
        equals[b] = warp.sum(count)
    barrier()
    before, block, missing = u32(0), u32(0), wanted
    for b in range(blocks):
        if before < wanted:
            block, missing = b, wanted - before
            before += equals[b]

    start = block * size
    low, high = start, min(start + size, n)
    for _ in range(32):
        if low < high:
            mid = low + (high - low) // 2
            count = u32(0)
            for i in lanes(start, mid):
                count += u32(tempered(row, i) == level)
            if group.sum(count) >= missing:
                high = mid
            else:
                low = mid + 1
    return low
