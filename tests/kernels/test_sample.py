"""Filters of the sampling chain: exact sets against float64."""

import numpy as np
import pytest

from support import sampling
from support.chain import kept, run_chain
from support.oracle import assert_close
from support.rand import integers, normal

SIZES = [1, 5, 31, 32, 33, 576, 2048, 4097]
PROMPT = np.uint32(0x80000000)
NAN, INF = np.nan, np.inf
BLOCK = 32  # tokens of a block of these sizes


def finite(ids: set[int], x) -> set[int]:
    """Without what is as good as dropped."""
    return {i for i in ids if np.asarray(x)[i] > -INF}


# -- penalties -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.7},
        {"repetition": 1.3},
        {"presence": 0.5, "frequency": 0.25},
        {"repetition": 1.1, "presence": -0.5, "frequency": 0.1, "temperature": 1.7, "bias": True},
        {"bias": True, "temperature": 0},
    ],
    ids=lambda o: "-".join(o) or "off",
)
def test_penalties_follow_their_order(machine, n, options):
    logits = normal((3, n), scale=5)
    times = integers((n,), 0, 4, "u32")
    in_prompt = integers((n,), 0, 2, "u32", seed=1).astype(bool)
    bias = normal((n,), seed=2)
    counts = times | np.where(in_prompt, PROMPT, np.uint32(0))
    step = {k: v for k, v in options.items() if k != "bias"} | {"use_bias": "bias" in options}
    want = sampling.penalize(
        logits[-1], times, in_prompt, **{**options, "bias": bias if "bias" in options else None}
    )
    for place in (0, 7, 31):  # one token of each block at a time: its largest
        seen = np.full_like(logits, -INF)
        seen[:, place::BLOCK] = logits[:, place::BLOCK]
        tops = run_chain(machine, seen, counts, bias, until="sample_tops", **step)["tops"]
        here = want[place::BLOCK]
        assert_close(tops[: len(here)], here, op="penalize", dtype="f32")


def test_nan_is_never_and_unused_bias_is_ignored(machine):
    logits, bias = np.array([[NAN, 1, INF, -INF, 5]]), np.full(5, NAN, np.float32)
    state = run_chain(machine, logits, bias=bias, temperature=0.5)
    assert state["tops"].tolist() == [INF] and state["masses"].tolist() == [1]
    logits[0, 2] = NAN
    state = run_chain(machine, logits, bias=bias, temperature=0.5)
    assert state["tops"].tolist() == [10]
    assert_close(state["masses"], [1 + np.exp(-8)], op="penalize", dtype="f32")


def test_the_coldest_temperatures_overflow_nothing(machine):
    state = run_chain(machine, [1e4, 9999, -1e4, 0, 3], temperature=1e-38)
    assert np.isfinite(state["tops"]).all() and state["next"] == [0] and state["masses"] == [1]


# -- top-k -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("k", [1, 2, 5, 40, 1000, 4096])
def test_top_k_keeps_the_k_largest(machine, n, k):
    x = normal((n,), scale=5)
    assert kept(machine, x, top_k=k) == sampling.top_k(x, k)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 100])
@pytest.mark.parametrize(
    "x",
    [
        [1, 2, 3, 4, 5],
        [5, 5, 5, 5, 5],
        [1, 5, 1, 5, 1],
        [0.0, -0.0, 0.0, -1, 1],
        [-1, -2, -3, -4, -5],
        [INF, 1, INF, -INF, 0],
        [-INF, -INF, 3, -INF, -INF],
        [3e38, -3e38, 1e-45, -1e-45, 0],
        [NAN, 2, NAN, 1, 0],
    ],
    ids=str,
)
def test_top_k_of_five_tokens(machine, x, k):
    got = kept(machine, x, top_k=k)
    assert finite(got, x) == finite(sampling.top_k(np.array(x), k), x)


@pytest.mark.parametrize("k", [1, 31, 32, 33, 700, 1999])
def test_ties_at_the_border_of_top_k_go_to_the_lowest_ids(machine, k):
    x = integers((2000,), 0, 3).astype(np.float32)
    assert kept(machine, x, top_k=k) == sampling.top_k(x, k)


# -- top-p -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("scale", [0.1, 1, 5, 50])
@pytest.mark.parametrize("p", [1e-6, 0.1, 0.5, 0.9, 0.95, 0.999])
def test_top_p_keeps_the_smallest_set_that_reaches_p(machine, n, scale, p):
    x = normal((n,), scale=scale)
    got = kept(machine, x, top_p=p)
    assert got == sampling.top_k(x, len(got)) and got
    # f32 sums of n weights decide what float64 may decide otherwise a hair from the border.
    low, high = (sampling.top_p_size(x, p * (1 + side * 1e-5)) for side in (-1, 1))
    assert low <= len(got) <= high


@pytest.mark.parametrize(
    ("x", "p", "want"),
    [
        ([0, 0, 0, 0], 0.5, {0, 1}),  # four equal weights: two reach a half exactly
        ([0, 0, 0, 0], 0.51, {0, 1, 2}),
        ([0, 0, 0, 0], 1e-9, {0}),
        ([0, 0, 0, 0], 0.0, {0}),
        ([0, 0, 0, 0], -1.0, {0}),
        ([0, 0, 0, 0], 1.0, {0, 1, 2, 3}),
        ([0, 0, 0, 0], 2.0, {0, 1, 2, 3}),
        ([1, 9, 9, 1, 0], 0.4, {1}),
        ([1, 9, 9, 1, 0], 0.6, {1, 2}),
        ([INF, 1, INF, 2, 3], 0.7, {0, 2}),
        ([INF, 1, INF, 2, 3], 0.3, {0}),
        ([-INF, 4, -INF, -INF, 4], 0.4, {1}),
        ([-INF, 4, -INF, -INF, 4], 0.99, {1, 4}),
        ([-3e38, 3e38, 0, 1, 2], 0.9999999, {1}),
        ([7], 0.5, {0}),
    ],
    ids=str,
)
def test_top_p_of_few_tokens(machine, x, p, want):
    assert kept(machine, x, top_p=p) == want


@pytest.mark.parametrize("p", [0.05, 0.3, 0.77])
def test_ties_at_the_border_of_top_p_go_to_the_lowest_ids(machine, p):
    x = integers((2000,), 0, 3).astype(np.float32)
    got = kept(machine, x, top_p=p)
    low, high = (sampling.top_p_size(x, p * (1 + side * 1e-5)) for side in (-1, 1))
    assert got == sampling.top_k(x, len(got)) and low <= len(got) <= high


def test_top_p_sees_what_top_k_left(machine):
    x = np.log(np.array([0.4, 0.3, 0.2, 0.05, 0.05], np.float32))
    # Of the two, 0.4/0.7 = 0.571: alone enough for 0.55, though 0.4 is not.
    assert kept(machine, x, top_k=2, top_p=0.55) == {0}
    assert kept(machine, x, top_p=0.55) == {0, 1}
    assert kept(machine, x, top_k=2, top_p=0.6) == {0, 1}


@pytest.mark.parametrize("k", [10, 700, 1500])
@pytest.mark.parametrize("p", [0.2, 0.6, 0.99])
@pytest.mark.parametrize("share", [0, 0.3])
def test_filters_join_where_many_logits_are_equal(machine, k, p, share):
    x = integers((2000,), 0, 4).astype(np.float32)
    order = sampling.order(x)[:k]
    stays = order[: sampling.top_p_size(x[order], p)]
    want = set(stays[np.exp(x[stays] - 3.0) >= share].tolist())
    got = kept(machine, x, top_k=k, top_p=p, min_p=share)
    assert len(got ^ want) <= 1  # at the border sums of f32 decide
    assert got == sampling.top_k(x, len(got))


def test_a_search_that_passes_through_zero_counts_zeros_once(machine):
    x = np.array([-0.25, -0.125, 0.0, -0.0], np.float32)[integers((4097,), 0, 4)]
    got = kept(machine, x, top_p=0.95)
    low, high = (sampling.top_p_size(x, 0.95 * (1 + side * 1e-5)) for side in (-1, 1))
    assert got == sampling.top_k(x, len(got)) and low <= len(got) <= high


# -- min-p -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", [1e-6, 0.05, 0.1, 0.5, 0.99])
def test_min_p_keeps_what_is_close_enough_to_the_likeliest(machine, n, share):
    x = normal((n,), scale=3)
    got = kept(machine, x, min_p=share)
    ratio = np.exp(x.astype(np.float64) - x.max())
    assert set(np.flatnonzero(ratio > share * (1 + 1e-5)).tolist()) <= got
    assert got <= set(np.flatnonzero(ratio >= share * (1 - 1e-5)).tolist())


@pytest.mark.parametrize(
    ("x", "share", "want"),
    [
        ([1, 2, 3, 3, 2], 1.0, {2, 3}),
        ([1, 2, 3, 3, 2], 5.0, {2, 3}),
        ([1, 2, 3, 3, 2], 0.0, {0, 1, 2, 3, 4}),
        ([1, 2, 3, 3, 2], -1.0, {0, 1, 2, 3, 4}),
        ([INF, 3e38, INF, 0, 1], 0.1, {0, 2}),
        ([-INF, -INF, -2, -INF, -3], 0.1, {2, 4}),
        ([-INF, -INF, -INF, -INF, -INF], 0.1, set()),
    ],
    ids=str,
)
def test_min_p_of_five_tokens(machine, x, share, want):
    assert kept(machine, x, min_p=share) == want


# -- when filters stand back -----------------------------------------------------------------------

ALL = {"top_k": 3, "top_p": 0.1, "min_p": 0.9}


@pytest.mark.parametrize("step", [{}, {**ALL, "temperature": 0}], ids=["off", "greedy"])
def test_filters_that_are_off_keep_all(machine, step):
    assert len(kept(machine, normal((100,)), **step)) == 100


def test_a_step_that_does_not_sample_leaves_all_as_it_was(machine):
    state = run_chain(machine, normal((100,)), sample=0, **ALL)
    assert state["next"] == [-7] and not state["counts"].any()
    for name in ("tops", "sums", "span", "masses"):
        assert np.isnan(state[name]).all()  # the poison of launch.py


@pytest.mark.parametrize("step", [{"top_k": 2}, {"top_p": 0.1}, {"min_p": 0.5}, ALL], ids=str)
@pytest.mark.parametrize("x", [-INF, NAN], ids=str)
def test_filters_leave_nothing_of_nothing(machine, step, x):
    assert kept(machine, np.full(5, x), **step) == set()


# -- masses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("step", [{}, {"top_k": 40}, {"top_p": 0.7}, {"min_p": 0.1}], ids=str)
def test_masses_are_those_of_what_is_kept(machine, n, step):
    x = normal((n,), scale=2)
    masses = run_chain(machine, x, **step)["masses"]
    stays = np.isin(np.arange(n), list(kept(machine, x, **step)))
    weights = np.where(stays, np.exp(x.astype(np.float64) - x.max()), 0)
    want = np.add.reduceat(weights, np.arange(0, n, BLOCK))
    assert_close(masses, want, op="penalize", dtype="f32")


# -- vocabularies of real models -------------------------------------------------------------------


@pytest.mark.parametrize("n", [32768, 32769, 49152, 128256])
@pytest.mark.parametrize("k", [1, 40, 2000])
def test_top_k_of_large_vocabularies(device, n, k):
    x = normal((n,), scale=3)  # values of 19 bits: thousands of ties
    assert kept(device, x, top_k=k) == sampling.top_k(x, k)


@pytest.mark.parametrize("n", [32768, 32769, 49152, 128256])
@pytest.mark.parametrize(("scale", "p"), [(0.3, 0.5), (3, 0.9), (3, 0.999)])
def test_top_p_of_large_vocabularies(device, n, scale, p):
    x = normal((n,), scale=scale)
    got = kept(device, x, top_p=p)
    low, high = (sampling.top_p_size(x, p * (1 + side * 1e-5)) for side in (-1, 1))
    assert got == sampling.top_k(x, len(got)) and low <= len(got) <= high
