"""What a request's sampling options do to a whole model."""

import numpy as np
import pytest

import butter
from support.tiny import checkpoint

PROMPT = [1, 5, 9, 2, 6, 5, 3, 5, 8]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = checkpoint("f32", tmp_path_factory.mktemp("tiny"))
    with butter.Model.load(path, device="cpu") as model:
        yield model


def sample(model, **options):
    return model.generate(PROMPT, **{"max_tokens": 20, "ignore_eos": True, **options})


def test_two_unseeded_runs_differ(model):
    first, second = sample(model, temperature=1.5), sample(model, temperature=1.5)
    assert first.seed != second.seed
    assert first.tokens != second.tokens


def test_a_reported_seed_repeats_the_run(model):
    first = sample(model, temperature=1.5, top_p=0.9)
    assert sample(model, temperature=1.5, top_p=0.9, seed=first.seed).tokens == first.tokens


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}])
def test_the_tightest_filter_is_greedy(model, options):
    greedy = sample(model, temperature=0).tokens
    assert sample(model, temperature=1.0, seed=4, **options).tokens == greedy


def test_a_bias_forbids_and_forces(model):
    greedy = sample(model, temperature=0).tokens
    forbidden = sample(model, temperature=0, logit_bias={greedy[0]: -100.0}).tokens
    assert greedy[0] not in forbidden
    assert set(sample(model, temperature=0, logit_bias={77: 100.0}).tokens) == {77}
    # The bias of one request must not reach the next.
    assert sample(model, temperature=0).tokens == greedy


def test_a_penalty_ends_repetition(model):
    options = {"temperature": 0, "max_tokens": 60}
    plain = sample(model, **options).tokens
    penalized = sample(model, frequency_penalty=100.0, **options).tokens
    assert len(set(penalized)) == len(penalized)
    assert len(set(plain)) < len(plain)
    assert sample(model, **options).tokens == plain


def test_the_repetition_penalty_sees_the_prompt(model):
    changed = 0
    for first in range(3, 13):
        prompt = list(range(first, first + 200))
        logits = model.logits(prompt)[-1].astype(np.float64)
        plain = int(logits.argmax())
        seen = logits[prompt]
        logits[prompt] = np.where(seen > 0, seen / 50, seen * 50)
        got = model.generate(
            prompt, temperature=0, repetition_penalty=50.0, max_tokens=1, ignore_eos=True
        )
        assert got.tokens == [int(logits.argmax())]
        changed += plain != got.tokens[0]
    assert changed > 0  # else the test has shown nothing
