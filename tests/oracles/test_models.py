"""Models against what the reference recorded: tiny checkpoints of each kind, and the real one."""

import numpy as np
import pytest

import butter
from support.oracle import assert_close, recorded
from support.smollm2 import gguf_path
from support.tiny import VARIANTS, checkpoint
from support.tolerances import MAX_MEAN_KL


@pytest.fixture(scope="module")
def smollm2():
    with butter.Model.load(gguf_path(), device="cpu") as model:
        yield model


@pytest.fixture(scope="module")
def exact_smollm2():
    with butter.Model.load(gguf_path(), device="cpu", dtype="f32") as model:
        yield model


@pytest.mark.parametrize("name", VARIANTS)
def test_tiny_logits_match_the_reference(name, tmp_path):
    with butter.Model.load(checkpoint(name, tmp_path), device="cpu", dtype="f32") as model:
        for prompt in recorded(name).prompts:
            got = model.logits(prompt.ids)
            assert_close(got[prompt.positions], prompt.logits, op="logits", dtype="f32")
            assert got.argmax(axis=-1).tolist() == prompt.argmax.tolist()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("dispatch", ["eager", "argument_buffers", "icb"])
def test_tiny_greedy_tokens_match_the_reference(name, dispatch, tmp_path):
    record = recorded(name)
    path = checkpoint(name, tmp_path)
    with butter.Model.load(path, device="cpu", dtype="f32", dispatch=dispatch) as model:
        result = model.generate(
            record.greedy_prompt, temperature=0, max_tokens=len(record.greedy), ignore_eos=True
        )
    assert list(result.tokens) == record.greedy


def test_smollm2_tokens_are_those_of_the_reference(smollm2):
    capital, *_ = recorded("smollm2").prompts
    assert smollm2.tokenizer.encode("The capital of France is") == capital.ids


def test_exact_smollm2_logits_match_the_reference(exact_smollm2):
    for prompt in recorded("smollm2").prompts:
        got = exact_smollm2.logits(prompt.ids)
        assert_close(got[prompt.positions], prompt.logits, op="logits_smollm2", dtype="f32")
        assert got.argmax(axis=-1).tolist() == prompt.argmax.tolist()


def test_exact_smollm2_greedy_tokens_match_the_reference(exact_smollm2):
    record = recorded("smollm2")
    result = exact_smollm2.generate(
        record.greedy_prompt, temperature=0, max_tokens=len(record.greedy), ignore_eos=True
    )
    assert list(result.tokens) == record.greedy


def test_fast_smollm2_is_close_to_the_reference(smollm2):
    kl = [prompt.kl_at_least(smollm2.logits(prompt.ids)) for prompt in recorded("smollm2").prompts]
    assert np.concatenate(kl).mean() <= MAX_MEAN_KL
