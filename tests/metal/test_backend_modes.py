"""The same programs in the three dispatch modes, and the same tokens as on the CPU."""

import numpy as np
import pytest
from backend import MODES, metal

import butter
from butter import _native
from butter.step import step_words
from native.chain import Chain, greedy_words, random_words
from support.affine import write_pair
from support.oracle import assert_close
from support.tiny import checkpoint, prompts

VARIANTS = ["f32", "bf16", "attention_bias"]
TOKENS = 12


@pytest.fixture(scope="module")
def device():
    return metal()


@pytest.fixture(scope="module")
def chain(device):
    return Chain(device)


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_a_chain_of_tokens_is_the_oracles(chain, mode, ahead):
    loop = _native.DecodeLoop(chain.plan.prepare(mode), [], 1000, ahead=ahead)
    chain.reset(7)
    loop.start(greedy_words(), 0, 20, 0)
    assert list(loop) == chain.greedy(7, 20)
    assert chain.steps_run() == 20


def test_random_tokens_are_those_of_the_cpu(chain):
    seen = set()
    for owner in (chain, Chain(_native.open_device("cpu"))):
        for mode in MODES:
            loop = _native.DecodeLoop(owner.plan.prepare(mode), [], 1000)
            owner.reset(7)
            loop.start(random_words(5), 0, 20, 0)
            seen.add(tuple(loop.run(100)))
    assert len(seen) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_dynamic_dim_follows_its_word_of_the_step(device, mode):
    """Groups beyond the step's rows may write spare rows, but no row is lost."""
    rows_word = butter.manifest.manifest().step["rows"][0]
    p = _native.Program(device, 8)
    memory = device.allocate(8 * 64 * 4)
    values = np.arange(8 * 64, dtype=np.float32)
    memory.write(values)
    x = p.buffer(memory, 0, values.nbytes, "f32")
    out = p.activation(values.nbytes, "f32")
    p.dispatch("add__f32", [x, x, out], dims=[8, 64], dynamic={0: rows_word})
    p.keep(out)
    replay = p.finish().prepare(mode)
    for rows in (3, 8, 1):
        replay.run(step_words(rows=rows), [])
        got = np.frombuffer(replay.read(out), np.float32)
        np.testing.assert_array_equal(got[: 64 * rows], 2 * values[: 64 * rows])


@pytest.mark.parametrize("name", VARIANTS)
def test_a_tiny_llama_gives_the_tokens_of_the_cpu_in_each_mode(name, device, tmp_path):
    path, prompt = checkpoint(name, tmp_path), prompts()[2]
    # With an f16 cache, sums that differ in the last bit could round to different neighbors.
    with butter.Model.load(path, device="cpu", exact=True) as model:
        tokens = greedy(model, prompt)
        logits = model.logits(prompt)
    for mode in MODES:
        with butter.Model.load(
            path, device="metal", dispatch=mode, exact=True, prewarm=False
        ) as model:
            assert greedy(model, prompt) == tokens, mode
            assert_close(model.logits(prompt), logits, op="logits", dtype="f32")


def test_4_bit_weights_give_the_tokens_of_the_cpu_in_each_mode(device, tmp_path):
    path, _ = write_pair(tmp_path, 4, 32)
    prompt = prompts()[1]
    with butter.Model.load(path, device="cpu") as model:
        tokens = greedy(model, prompt)
    for mode in MODES:
        with butter.Model.load(path, device="metal", dispatch=mode, prewarm=False) as model:
            assert greedy(model, prompt) == tokens, mode


def greedy(model, prompt):
    return model.generate(prompt, max_tokens=TOKENS, temperature=0).tokens
