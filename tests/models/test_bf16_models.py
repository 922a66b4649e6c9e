"""bf16 weights on a CPU that multiplies pairs of bf16: activations are rounded in products."""

import numpy as np
import pytest
from butter._native import open_device

import butter
from support.oracle import assert_close
from support.tiny import checkpoint

IDS = [1, 5, 9, 2, 6, 5, 3, 5, 8, 77, 300]
GREEDY = {"temperature": 0, "max_tokens": 12, "ignore_eos": True}


@pytest.fixture
def path(tmp_path):
    if not open_device("cpu").has_bf16_dot:
        pytest.skip("this CPU has no products of bf16 pairs")
    return checkpoint("wide", tmp_path)


def answers(path, **options):
    with butter.Model.load(path, device="cpu", **options) as model:
        return model.logits(IDS), model.generate(IDS, **GREEDY).tokens


def test_rounded_activations_stay_close_to_exact_ones(path):
    fast, exact = answers(path)[0], answers(path, exact=True)[0]
    assert not np.array_equal(fast, exact)
    assert_close(fast, exact, op="logits_rounded", dtype="f32")


def test_threads_modes_and_cuts_give_the_same_bits(path):
    logits, tokens = answers(path, threads=1)
    for options in ({"threads": 3}, {"dispatch": "eager"}, {"dispatch": "argument_buffers"}):
        got = answers(path, **options)
        assert np.array_equal(got[0], logits) and got[1] == tokens
    with butter.Model.load(path, device="cpu") as model:
        session = model.session()
        parts = [session.logits(IDS[:4]), session.logits(IDS[4:5]), session.logits(IDS[5:])]
    np.testing.assert_array_equal(np.concatenate(parts), logits)
