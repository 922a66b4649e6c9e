"""The last kernel of a token: argmax or a draw, and the counts that penalties need."""

from iron import (
    In, InOut, barrier, dim, f32, group, i32, inline, kernel, lanes, mulhi, step, u32,
    unroll,
)  # fmt: skip
from penalty import tempered
from ranking import blocks_of, tops_of, weight

INF = float("inf")
PROMPT = 0x80000000  # the bit of a count that says: in the prompt


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
def uniform():
    """The step's number of [0, 1): 24 bits of Philox at counter (draw, 0, 0, 0), keyed by seed."""
    zero = u32(0)
    word, _, _, _ = philox(step.draw, zero, zero, zero, step.seed_lo, step.seed_hi)
    return f32(word >> 8) * 2.0**-24


@inline
def argmax(row, top):
    """The id of the largest logit, the lowest of equals; V if every logit is -inf or NaN."""
    n, tops = dim("V"), tops_of(row)
    size, blocks = blocks_of(n)
    block = blocks
    for b in lanes(blocks):
        block = min(block, b if tops[b] == top else blocks)
    start = group.min(block) * size
    best, at = f32(-INF), n
    for i in lanes(start, min(start + size, n)):
        x = tempered(row, i)
        at = i if x > best else at
        best = x if x > best else best
    largest = group.max(best)
    return group.min(at if best == largest else n)


@inline
def categorical(row, masses, kept, u):
    """The id at which the distribution function, in the order of ids, passes u; V if none can.

    The sum over a block is taken in another order than the walk through it, so rounding can end
    the walk without a hit; then the last token with any weight is taken.
    """
    level, end, top = kept
    n = dim("V")
    size, blocks = blocks_of(n)
    total = f32(0)
    for b in range(blocks):
        total += masses[b]
    target = u * total

    before, block, rest, found = f32(0), u32(0), f32(0), u32(0)
    for b in range(blocks):
        mass = masses[b]
        if found == 0 and mass > 0.0:
            block, rest = b, target - before
            found = u32(before + mass > target)
        before += mass

    token, walked, found = n, f32(0), u32(0)
    for i in range(block * size, min(block * size + size, n)):
        x = tempered(row, i)
        w = weight(x, top) if x > level or (x == level and i < end) else 0.0
        walked += w
        if found == 0 and w > 0.0:
            token = i
            found = u32(walked > rest)
    return token if top > -INF else n


@kernel(grid=1, group=1024, bytes="8 * V // 64")
def sample_draw(
    logits: In[f32, "rowsL", "V"],
    bias: In[f32, "V"],
    tops: In[f32, "ceildiv(V, ceildiv(V, 32768) * 32)"],
    span: In[f32, 2],
    end: In[u32, 1],
    masses: In[f32, "ceildiv(V, ceildiv(V, 32768) * 32)"],
    next: InOut[i32, 1],
    counts: InOut[u32, "V"],
):
    """Choose the token: it goes to next[0] and step.out_token, and is counted.

    Temperature 0 takes the largest logit, the lowest id among equals. Otherwise the token is drawn
    from what the filters kept with a number that depends on seed and draw alone. If every logit is
    -inf or NaN the token is -1 and counts stay. If step.sample is 0 nothing happens.
    """
    if step.sample == 0:
        return
    row = (logits, counts, bias, tops)
    top, level = span[0], span[1]
    token = dim("V")
    if step.temperature > 0.0:
        token = categorical(row, masses, (level, end[0], top), uniform())
    else:
        token = argmax(row, top)
    known = token < dim("V")
    place = token if known else u32(0)
    before = counts[place]
    barrier()  # all lanes have read the counts before one of them changes one
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
