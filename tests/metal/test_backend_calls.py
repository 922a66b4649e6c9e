"""How many calls of an encoder a token takes in each mode."""

import pytest
from backend import Software

import butter
from support.affine import write_pair
from support.tiny import checkpoint

PROMPT = [1, 5, 9]


@pytest.fixture(scope="module")
def software():
    return Software()


def per_token(software, path, mode, prefix="compute"):
    with butter.Model.load(path, device="metal", dispatch=mode) as model:
        counts = []
        for tokens in (4, 14):
            before = software.calls(prefix)
            model.generate(PROMPT, max_tokens=tokens, temperature=0)
            counts.append(software.calls(prefix) - before)
    return (counts[1] - counts[0]) / 10


def test_argument_buffers_take_a_fifth_of_the_calls_for_4_bit_weights(software, tmp_path):
    path, _ = write_pair(tmp_path, 4, 32)
    eager = per_token(software, path, "eager")
    assert per_token(software, path, "argument_buffers") <= eager / 5


def test_argument_buffers_bind_once_per_layer(software, tmp_path):
    path = checkpoint("bf16_sharded", tmp_path)
    assert per_token(software, path, "argument_buffers", "compute setBuffer") <= 3
    assert per_token(software, path, "argument_buffers", "compute setBytes") == 0


def test_an_indirect_command_buffer_takes_a_hundredth_of_the_calls(software, tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTMETAL_FAMILY", "9")  # M3; see the next test for older ones
    path = checkpoint("bf16_sharded", tmp_path)
    eager = per_token(software, path, "eager")
    assert per_token(software, path, "icb") <= eager / 100
    assert per_token(software, path, "icb", "indirect") == 0


def test_an_older_gpu_touches_each_pipeline_of_an_indirect_command_buffer(software, tmp_path):
    path = checkpoint("f32", tmp_path)
    touched = per_token(software, path, "icb", "compute setComputePipelineState:")
    assert 5 < touched < 20
