"""MLX-quantized folders against the same values stored plainly."""

import json

import pytest
from safetensors.numpy import load_file, save_file

import butter
from butter.errors import UnsupportedError, WeightError
from support.affine import ODD, write_pair
from support.oracle import assert_close, kl_divergence
from support.tolerances import MAX_MEAN_KL

IDS = [1, 5, 9, 2, 6, 5, 3, 5, 8]


def logits(path, **options):
    with butter.Model.load(path, device="cpu", **options) as model:
        return model.logits(IDS)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("group", [32, 64, 128])
def test_logits_equal_those_of_the_decoded_weights(bits, group, tmp_path):
    coded, plain = write_pair(tmp_path, bits, group)
    want = logits(plain, exact=True)
    assert_close(logits(coded, exact=True), want, op="logits", dtype="f32")
    assert kl_divergence(want, logits(coded)).mean() <= MAX_MEAN_KL


def test_a_layer_may_be_quantized_in_its_own_way(tmp_path):
    coded, plain = write_pair(tmp_path, 4, 64, odd=(8, 32))
    assert_close(logits(coded, exact=True), logits(plain, exact=True), op="logits", dtype="f32")


@pytest.mark.parametrize("wrong", [{"bits": 4.0}, {"group_size": 64.0}])
def test_sizes_that_are_no_integers_are_refused(wrong, tmp_path):
    coded, _ = write_pair(tmp_path, 4, 64)
    edit(coded, {"bits": 4, "group_size": 64} | wrong)
    with pytest.raises(UnsupportedError, match="in groups of"):
        logits(coded)


def test_an_override_for_no_matrix_is_refused(tmp_path):
    coded, _ = write_pair(tmp_path, 4, 64)
    edit(coded, {"bits": 4, "group_size": 64, "model.layers.9.mlp.up_proj": {"bits": 8}})
    with pytest.raises(UnsupportedError, match="groups of None"):
        logits(coded)
    other = {"bits": 8, "group_size": 64}
    edit(coded, {"bits": 4, "group_size": 64, "model.layers.9.mlp.up_proj": other})
    with pytest.raises(WeightError, match=r"1 quantization overrides for no matrix: .*layers\.9"):
        logits(coded)


@pytest.mark.parametrize(
    "setting,text",
    [
        ({"bits": 7, "group_size": 64}, "7 bits in groups of 64, need 2, 3, 4"),
        ({"bits": 4, "group_size": 64, "mode": "mxfp4"}, "mode: got 'mxfp4'"),
        ({"bits": 8, "group_size": 64}, r"got codes .*need .* for 8 bits"),
        ({"bits": 4, "group_size": 32}, "scales f16"),
    ],
)
def test_a_config_that_does_not_fit_the_codes_is_refused(setting, text, tmp_path):
    coded, _ = write_pair(tmp_path, 4, 64)
    edit(coded, setting)
    with pytest.raises((UnsupportedError, WeightError), match=text):
        logits(coded)


@pytest.mark.parametrize("part", ["scales", "biases"])
def test_missing_parts_are_named(part, tmp_path):
    coded, _ = write_pair(tmp_path, 4, 64)
    tensors = load_file(coded / "model.safetensors")
    del tensors[f"{ODD}.{part}"]
    save_file(tensors, coded / "model.safetensors")
    with pytest.raises(WeightError, match=rf"1 wrong: {ODD}.weight: its {part} are missing"):
        logits(coded)


def edit(path, quantization):
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "quantization": quantization}))
