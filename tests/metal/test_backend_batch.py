"""Several sequences in each step on Metal: every row brings what it brings alone, in each mode."""

import numpy as np
import pytest
from backend import MODES, metal

import butter
from butter import _native
from native.chains import ROWS, SEEDS, STARTS, Chains, drain, words
from support.tiny import checkpoint, prompts

TOKENS = 6
GREEDY = {"temperature": 0, "ignore_eos": True, "max_tokens": TOKENS}


@pytest.fixture(scope="module")
def chains():
    return Chains(metal())


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_those_of_the_cpu(chains, mode):
    brought = []
    for owner in (chains, Chains(_native.open_device("cpu"))):
        owner.reset(STARTS)
        loop = owner.loop(mode)
        for row, seed in enumerate(SEEDS):
            loop.start(row, words(seed), 0, 5 + 4 * row)
        brought.append(drain(loop))
    assert brought[0] == brought[1]


@pytest.mark.parametrize("mode", MODES)
def test_an_idle_row_draws_nothing(chains, mode):
    chains.reset(STARTS)
    loop = chains.loop(mode)
    loop.start(1, words(5), 0, 4)
    brought, _ = drain(loop)
    assert list(brought) == [1]
    left = chains.next.array("i32", [ROWS])
    assert left[[0, 2]].tolist() == [STARTS[0], STARTS[2]]
    counts = np.array(chains.counts.array("u32", [ROWS, chains.table.shape[0]]))
    assert counts.sum(axis=1).tolist() == [0, 4, 0]


@pytest.mark.parametrize("mode", MODES)
def test_a_model_answers_several_prompts_as_each_alone(mode, tmp_path):
    metal()
    path = checkpoint("f32", tmp_path)
    asked = prompts()[:3]
    with butter.Model.load(
        path, device="metal", dtype="f32", dispatch=mode, max_context=128, prewarm=False
    ) as model:
        together = model.generate_batch(asked, **GREEDY)
        alone = [model.generate(p, **GREEDY).tokens for p in asked]
        # Two rows, so that the third prompt takes up one that has ended.
        limits = {**GREEDY, "max_tokens": [2, TOKENS, 3]}
        again = model.generate_batch(asked, rows=2, **limits)
    assert [r.tokens for r in together] == alone
    assert [r.tokens for r in again] == [alone[0][:2], alone[1], alone[2][:3]]
