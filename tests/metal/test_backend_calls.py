"""How many calls of an encoder a token takes in each mode."""

import pytest
from backend import Software, total

import butter
from support.affine import write_pair
from support.tiny import checkpoint

PROMPT = [1, 5, 9]


@pytest.fixture(scope="module")
def software():
    return Software()


@pytest.fixture(scope="module")
def per_token(software):
    """By model and mode: how often a token makes each call."""
    known = {}

    def count(path, mode):
        with butter.Model.load(path, device="metal", dispatch=mode, prewarm=False) as model:
            few, many = (calls(software, model, tokens) for tokens in (4, 14))
        return {name: (n - few[name]) / 10 for name, n in many.items()}

    def counts(path, mode):
        if (path.name, mode) not in known:
            known[path.name, mode] = count(path, mode)
        return known[path.name, mode]

    return counts


def calls(software, model, tokens):
    software.reset()
    model.generate(PROMPT, max_tokens=tokens, temperature=0)
    return software.counts()


def test_argument_buffers_take_a_fifth_of_the_calls_for_4_bit_weights(per_token, tmp_path):
    path, _ = write_pair(tmp_path, 4, 32)
    assert total(per_token(path, "argument_buffers")) <= total(per_token(path, "eager")) / 5


def test_argument_buffers_add_little_to_two_calls_for_each_launch(per_token, tmp_path):
    """A launch takes a pipeline and a dispatch, a layer a bind, and the step four calls."""
    path = checkpoint("bf16_sharded", tmp_path)  # of three layers
    calls, launch = per_token(path, "argument_buffers"), "compute dispatchThreadgroups"
    assert total(calls) <= 2 * total(calls, launch) + 3 + 4
    # Neighbors that differ in their arguments alone share a launch: q, k and v; gate and up.
    assert total(calls, launch) <= total(per_token(path, "eager"), launch) - 3 * 3
    assert total(calls, "compute setBuffer") <= 3
    assert total(calls, "compute setBytes") == 0


def test_an_indirect_command_buffer_takes_a_hundredth_of_the_calls(
    per_token, tmp_path, monkeypatch
):
    monkeypatch.setenv("SOFTMETAL_FAMILY", "9")  # M3; see the next test for older ones
    path = checkpoint("bf16_sharded", tmp_path)
    calls = per_token(path, "icb")
    assert total(calls) == 3
    assert total(calls, "indirect") == 0
    assert total(calls) <= total(per_token(path, "eager")) / 100


def test_an_older_gpu_touches_each_pipeline_of_an_indirect_command_buffer(per_token, tmp_path):
    calls = per_token(checkpoint("f32", tmp_path), "icb")
    assert 5 < total(calls, "compute setComputePipelineState:") < 20
