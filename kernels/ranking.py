"""Steps of the sampling kernels: finding thresholds in one row of logits.

The row is cut into at most 1024 blocks. The largest logit of each is kept in group memory; a pass
that looks for tokens above a threshold then skips nearly all blocks. Every pass is made by one
group, a block at a time per warp. V is the number of tokens.
"""

from iron import (
    array, barrier, bitcast, dim, exp, f32, group, inline, lanes, select, u32, unroll, warp, warps,
)  # fmt: skip

BLOCKS = 1024
INF = float("inf")
SIGN = 0x80000000
REACH = 104.0  # exp of less than -REACH is 0


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
def weight(x, top):
    """exp(x - top) without inf - inf; 0 for NaN."""
    return 1.0 if x == top else (exp(x - top) if x < top else 0.0)


@inline
def blocks_of(n):
    """(tokens per block, blocks): a multiple of 32, so that few lanes idle."""
    size = (n + (BLOCKS * 32 - 1)) // (BLOCKS * 32) * 32
    return size, (n + size - 1) // size


@inline
def block_tops(work, tops):
    """tops[b] = the largest logit of block b; returns the largest of all. NaN is passed over."""
    n = dim("V")
    size, blocks = blocks_of(n)
    best = f32(-INF)
    for b in warps(blocks):
        top = f32(-INF)
        for i in lanes(b * size, min(b * size + size, n)):
            x = work[i]
            top = x if x > top else top
        top = warp.max(top)
        tops[b] = top
        best = top if top > best else best
    barrier()
    return group.max(best)


@inline
def count_from(work, tops, floor):
    """How many logits are at least `floor`."""
    n = dim("V")
    size, blocks = blocks_of(n)
    count = u32(0)
    for b in warps(blocks):
        if tops[b] >= floor:
            for i in lanes(b * size, min(b * size + size, n)):
                count += u32(work[i] >= floor)
    return group.sum(count)


@inline
def count_equal(work, tops, level, end):
    """How many of the first `end` logits are `level`."""
    n = dim("V")
    size, blocks = blocks_of(n)
    count = u32(0)
    for b in warps(blocks):
        if tops[b] >= level:
            for i in lanes(b * size, min(b * size + size, n)):
                count += u32(work[i] == level and i < end)
    return group.sum(count)


@inline
def end_of_equals(work, tops, level, wanted):
    """The smallest end with `wanted` logits of this level before it: ties go to the lowest ids."""
    low, high = u32(0), dim("V")
    for _ in range(32):
        if low < high:
            mid = low + (high - low) // 2
            if count_equal(work, tops, level, mid) >= wanted:
                high = mid
            else:
                low = mid + 1
    return low


@inline
def mass_from(work, tops, floor, top):
    """The sum of the weights of all logits that are at least `floor`."""
    n = dim("V")
    size, blocks = blocks_of(n)
    mass = f32(0)
    for b in warps(blocks):
        if tops[b] >= floor:
            for i in lanes(b * size, min(b * size + size, n)):
                x = work[i]
                mass += weight(x, top) if x >= floor else 0.0
    return group.sum(mass)


@inline
def masses_from(work, tops, low, width, top, steps):
    """mass_from of the ranks low + width, low + 2*width, …: one exp serves `steps` thresholds."""
    n = dim("V")
    size, blocks = blocks_of(n)
    floor, mass = array(f32, steps), array(f32, steps)
    for j in unroll(steps):
        floor[j] = unrank(low + (j + 1) * width)
    for b in warps(blocks):
        if tops[b] >= floor[0]:
            for i in lanes(b * size, min(b * size + size, n)):
                x = work[i]
                w = weight(x, top)
                for j in unroll(steps):
                    mass[j] += w if x >= floor[j] else 0.0
    for j in unroll(steps):
        mass[j] = group.sum(mass[j])
    return mass


@inline
def keep(work, level, end):
    """Drop every logit below `level`, and those equal to it from id `end` on."""
    for i in lanes(dim("V")):
        x = work[i]
        work[i] = x if x > level or (x == level and i < end) else -INF
