"""Different ways to the same tokens: where wrong results hide."""

import numpy as np
import pytest

import butter
from support.oracle import assert_close
from support.rand import integers
from support.tiny import VOCAB, checkpoint

MODES = ["eager", "argument_buffers", "icb"]
PROMPT = [1, *integers((40,), 3, VOCAB, seed=5).tolist()]
GREEDY = {"temperature": 0, "ignore_eos": True}


def prompt(count: int) -> list[int]:
    return [1, *integers((count - 1,), 3, VOCAB, seed=count).tolist()] if count > 1 else [1]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return checkpoint("bf16", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def model(path):
    with butter.Model.load(path, device="cpu", max_context=4200) as model:
        yield model


@pytest.fixture(scope="module")
def expected(path):
    """Tokens of the plainest way: one thread, eager."""
    with butter.Model.load(path, device="cpu", threads=1) as model:
        greedy = model.generate(PROMPT, max_tokens=24, **GREEDY).tokens
        drawn = model.generate(PROMPT, max_tokens=24, temperature=1.0, top_k=40, seed=3).tokens
    return greedy, drawn


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dispatch", MODES)
def test_modes_and_threads_give_identical_tokens(dispatch, threads, path, expected):
    with butter.Model.load(path, device="cpu", dispatch=dispatch, threads=threads) as model:
        greedy = model.generate(PROMPT, max_tokens=24, **GREEDY).tokens
        drawn = model.generate(PROMPT, max_tokens=24, temperature=1.0, top_k=40, seed=3).tokens
    assert (greedy, drawn) == expected


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 1.2, "seed": 11}])
def test_single_steps_equal_the_loop(model, sampling):
    whole = model.generate(PROMPT, max_tokens=12, ignore_eos=True, **sampling).tokens
    if "seed" in sampling:  # each request starts its draws anew, so only the first one is equal
        assert model.generate(PROMPT, max_tokens=1, ignore_eos=True, **sampling).tokens == whole[:1]
        return
    tokens = list(PROMPT)
    for _ in range(12):
        tokens += model.generate(tokens, max_tokens=1, ignore_eos=True, **sampling).tokens
    assert tokens[len(PROMPT) :] == whole


@pytest.mark.parametrize("count", [1, 31, 32, 33, 512, 4097])
def test_a_split_prompt_equals_the_whole_one(model, count):
    ids = prompt(count)
    whole = model.generate(ids, max_tokens=8, **GREEDY)
    with model.session() as session:
        if count > 1:
            session.logits(ids[: count // 3 or 1])
        rest = ids[len(session.tokens) :]
        split = session.generate(rest, max_tokens=8, **GREEDY)
    assert split.tokens == whole.tokens


@pytest.mark.parametrize("split", [1, 4, 8, 31, 32, 33])
def test_cached_logits_equal_one_pass(model, split):
    whole = model.logits(PROMPT)
    with model.session() as session:
        parts = [session.logits(PROMPT[:split]), session.logits(PROMPT[split:])]
    assert_close(np.concatenate(parts), whole, op="logits", dtype="f32")


def test_the_decoded_token_is_the_argmax_of_the_logits(model):
    logits = model.logits(PROMPT)
    first = model.generate(PROMPT, max_tokens=1, **GREEDY).tokens
    assert first == [int(logits[-1].argmax())]


def test_a_request_is_not_changed_by_the_one_before(model):
    before = model.generate(PROMPT, max_tokens=8, **GREEDY).tokens
    model.generate(prompt(100), max_tokens=20, temperature=2.0, repetition_penalty=1.3)
    assert model.generate(PROMPT, max_tokens=8, **GREEDY).tokens == before


def test_a_session_equals_a_cold_run(model):
    with model.session() as session:
        first = session.generate(PROMPT, max_tokens=8, **GREEDY).tokens
        second = session.generate([7, 8, 9], max_tokens=8, **GREEDY)
    cold = model.generate([*PROMPT, *first, 7, 8, 9], max_tokens=8, **GREEDY)
    assert second.tokens == cold.tokens
    # All but the last token of the first answer was read already.
    assert second.stats.reused_tokens == len(PROMPT) + 8 - 1


def test_dynamic_rope_reads_a_growing_text_anew(tmp_path):
    path = checkpoint("rope_dynamic", tmp_path)
    ids = prompt(100)
    with butter.Model.load(path, device="cpu") as model:
        cold = model.generate(ids, max_tokens=8, **GREEDY).tokens
        with model.session() as session:
            session.logits(ids[:50])
            assert session.generate(ids[50:], max_tokens=8, **GREEDY).tokens == cold
