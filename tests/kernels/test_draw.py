"""The last kernel of a token: Philox, argmax, the draw, its counts; whole chains by chi-square."""

import numpy as np
import pytest
from draw import philox

from iron import In, Out, interp, parse, u32
from iron.lang import REGISTRY, kernel
from iron.passes import lower
from support import sampling
from support.chain import run_chain
from support.launch import instance, out_token, run_kernel, step_words
from support.rand import integers, normal

SIZES = [1, 5, 31, 32, 33, 576, 2048, 4097]
PROMPT = np.uint32(0x80000000)
NAN, INF = np.nan, np.inf

# Salmon et al., "Parallel random numbers: as easy as 1, 2, 3": known answers of philox4x32-10.
KNOWN = [
    ([0] * 6, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 6, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def draw(machine, x, counts=None, **step):
    """(token, counts after) of one draw; next and the step block must agree."""
    got = run_chain(machine, x, counts, **step)
    assert got["next"].tolist() == [out_token(got)]
    return out_token(got), got["counts"]


@pytest.mark.parametrize(("words", "want"), KNOWN)
def test_philox_gives_the_known_answers(words, want):
    def philox_words(at: In[u32, 6], out: Out[u32, 4]):
        out[0], out[1], out[2], out[3] = philox(at[0], at[1], at[2], at[3], at[4], at[5])

    spec = kernel(grid=1)(philox_words)
    del REGISTRY[spec.name]
    out = np.zeros(4, np.uint32)
    func = lower(parse.instance(spec, {}, {}), "cpu", "TypeCheck")
    interp.run(func, {"at": np.array(words, np.uint32), "out": out})
    assert out.tolist() == want
    assert sampling.philox(words[:4], words[4:]) == want


@pytest.mark.parametrize(("seed", "index"), [(0, 0), (0, 1), (1, 0), (2**63 + 12345, 2**32 - 1)])
def test_the_number_drawn_is_that_of_seed_and_index(machine, seed, index):
    n = 4096  # equal weights: the token is the top twelve bits of the number
    step = {"seed_lo": seed & 0xFFFFFFFF, "seed_hi": seed >> 32, "draw": index}
    token, _ = draw(machine, np.zeros(n), **step)
    assert token == int(sampling.uniform(seed, index) * n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("scale", [0.1, 3, 100])
def test_the_token_is_where_the_distribution_function_passes_the_number(machine, n, scale):
    x = normal((n,), scale=scale)
    edges = np.concatenate([[0], np.cumsum(sampling.softmax(x))])
    for index in range(8):
        token, _ = draw(machine, x, seed_lo=7, draw=index)
        u = sampling.uniform(7, index)
        # f32 sums may move an edge by a hair.
        assert edges[token] - 1e-6 <= u <= edges[token + 1] + 1e-6


@pytest.mark.parametrize("n", [32769, 49152, 128256])
def test_draws_from_large_vocabularies(device, n):
    x = normal((n,), scale=3)
    edges = np.concatenate([[0], np.cumsum(sampling.softmax(x))])
    for index in range(50):
        token, _ = draw(device, x, draw=index)
        u = sampling.uniform(0, index)
        assert edges[token] - 1e-6 <= u <= edges[token + 1] + 1e-6
    assert draw(device, x, temperature=0)[0] == int(np.argmax(x))


@pytest.mark.parametrize("n", SIZES)
def test_temperature_zero_takes_the_lowest_id_of_the_largest(machine, n):
    x = integers((n,), 0, 5).astype(np.float32)
    assert draw(machine, x, temperature=0)[0] == int(np.argmax(x))


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize(
    ("x", "want"),
    [
        ([-INF, -INF, 3, -INF, -INF], 2),
        ([NAN, NAN, -1e30, NAN, NAN], 2),
        ([0, 1, INF, 3e38, NAN], 2),
        ([-3e38, 3e38, 0, 0, 0], 1),
        ([-INF] * 5, -1),
        ([NAN] * 5, -1),
        ([NAN, -INF], -1),
        ([-INF], -1),
        ([-200.0], 0),
    ],
    ids=str,
)
def test_what_is_drawn_of_extreme_logits(machine, x, want, temperature):
    for index in range(4):
        token, counts = draw(machine, x, temperature=temperature, draw=index)
        assert token == want
        assert counts.tolist() == [int(i == want) for i in range(len(x))]


def test_dropped_tokens_are_never_drawn_and_all_others_are(machine):
    x = np.full(700, -INF)
    x[[3, 64, 65, 699]] = 0
    drawn = {draw(machine, x, seed_lo=3, draw=i)[0] for i in range(60)}
    assert drawn == {3, 64, 65, 699}


def test_draw_counts_the_token_and_keeps_the_prompt_bit(machine):
    counts = np.array([PROMPT, PROMPT | np.uint32(4), 7], np.uint32)
    token, after = draw(machine, [0, 9, 0], counts, temperature=0)
    assert token == 1 and after.tolist() == [PROMPT, PROMPT | np.uint32(5), 7]


def test_a_step_that_does_not_sample_changes_nothing(machine):
    got = run_chain(machine, normal((33,)), sample=0, out_token=9)
    assert got["next"] == [-7] and out_token(got) == 9 and not got["counts"].any()


def test_count_prompt_marks_each_token_of_the_vocabulary(machine):
    ids = np.array([4, 0, 4, -1, 5, 2**31 - 1, 3] * 7, np.int32)
    counts = np.array([1, 2, 3, PROMPT | np.uint32(4), 5], np.uint32)
    got = run_kernel(machine, "count_prompt", tensors={"ids": ids, "counts": counts})["counts"]
    marked = [PROMPT | np.uint32(1), 2, 3, PROMPT | np.uint32(4), PROMPT | np.uint32(5)]
    assert got.tolist() == marked


# -- chains ----------------------------------------------------------------------------------------

CHAINS = [
    {},
    {"temperature": 0.5},
    {"temperature": 2.0},
    {"top_k": 7},
    {"top_p": 0.8},
    {"min_p": 0.2},
    {"top_k": 20, "top_p": 0.9},
    {"top_k": 20, "min_p": 0.1, "temperature": 1.5},
    {"top_p": 0.9, "min_p": 0.05},
    {"top_k": 25, "top_p": 0.95, "min_p": 0.02, "temperature": 0.8},
    {"repetition": 1.4, "presence": 0.5, "frequency": 0.3, "top_k": 25, "top_p": 0.9},
]


def chain64(logits, counts, step):
    """The distribution that the chain must have, in float64."""
    times, in_prompt = counts & np.uint32(2**31 - 1), counts >= PROMPT
    names = ("repetition", "presence", "frequency", "temperature")
    options = {k: v for k, v in step.items() if k in names}
    x = sampling.penalize(logits[-1], times, in_prompt, **options)
    keep = sampling.order(x)[: step.get("top_k") or len(x)]
    x = np.where(np.isin(np.arange(len(x)), keep), x, -INF)
    keep = sampling.order(x)[: sampling.top_p_size(x, step.get("top_p", 1))]
    x = np.where(np.isin(np.arange(len(x)), keep), x, -INF)
    p = sampling.softmax(x)
    p = np.where(p >= step.get("min_p", 0) * p.max(), p, 0)
    return p / p.sum()


def draws(device, state, step, count):
    """Tokens of `count` draws of one request, over buffers made once."""
    func = instance("sample_draw")
    ranges = {}
    for name in [*(p.name for p in func.params), "step"]:
        array = np.ascontiguousarray(state[name])
        buffer = device.allocate(array.nbytes)
        buffer.write(array.tobytes())
        ranges[name] = (buffer, 0, array.nbytes)
    *tensors, block = ranges.values()
    counts = state["counts"].tobytes()
    tokens = np.zeros(count, np.int32)
    for index in range(count):
        words = step_words({**step, "seed_lo": 11, "seed_hi": 5, "draw": index})
        block[0].write(words.tobytes())
        ranges["counts"][0].write(counts)  # each draw is that of the same step
        device.run(func.symbol, tensors, [], list(state["logits"].shape), block)
        tokens[index] = np.frombuffer(ranges["next"][0].read(0, 4), np.int32)[0]
    return tokens


@pytest.mark.parametrize("step", CHAINS, ids=lambda s: "-".join(f"{k}{v}" for k, v in s.items()))
def test_draws_follow_the_distribution_of_the_chain(device, step):
    n = 50
    logits = normal((2, n), scale=1.5)
    counts = integers((n,), 0, 3, "u32") | np.where(np.arange(n) % 3 == 0, PROMPT, np.uint32(0))
    want = chain64(logits, counts, step)
    state = run_chain(device, logits, counts.copy(), until="sample_masses", **step)
    state["step"] = step_words(step)
    seen = np.bincount(draws(device, state, step, 20000), minlength=n)
    assert ((seen > 0) <= (want > 0)).all()
    assert abs(sampling.chi_square_z(seen, want)) < 4
