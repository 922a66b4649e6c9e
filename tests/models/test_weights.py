"""Checkpoints that do not fit their config, or hold what is not a number."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import butter
from butter.errors import UnsupportedError, WeightError
from support.tiny import checkpoint


@pytest.fixture
def path(tmp_path):
    return checkpoint("f32", tmp_path)


def edit(path, change):
    """Rewrite the weights after `change(tensors)`."""
    file = path / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


def load(path, **options):
    with butter.Model.load(path, device="cpu", **options) as model:
        return model.logits([1, 5, 9])


def test_missing_keys_are_listed(path):
    def drop(tensors):
        del tensors["model.layers.0.mlp.up_proj.weight"]
        del tensors["model.norm.weight"]

    edit(path, drop)
    with pytest.raises(WeightError, match=r"2 missing: .*layers\.0\.mlp\.up_proj.*model\.norm"):
        load(path)


def test_surplus_keys_are_listed(path):
    edit(path, lambda tensors: tensors.update(extra=np.zeros(3, np.float32)))
    with pytest.raises(WeightError, match="1 that the model does not use: extra"):
        load(path)


def test_all_problems_come_in_one_message(path):
    def spoil(tensors):
        del tensors["model.norm.weight"]
        tensors["extra"] = np.zeros(3, np.float32)
        tensors["lm_head.weight"] = np.zeros((2, 2), np.float32)

    edit(path, spoil)
    with pytest.raises(WeightError, match=r"1 missing.*1 wrong: lm_head.*\(2, 2\).*1 that"):
        load(path)


def test_a_wrong_dtype_is_named(path):
    name = "model.layers.1.mlp.up_proj.weight"
    edit(path, lambda tensors: tensors.update({name: tensors[name].astype(np.int32)}))
    with pytest.raises(WeightError, match=rf"{name}: got I32, need f32, f16, bf16"):
        load(path)


@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.0.self_attn.k_proj.weight"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(path, name, value):
    def spoil(tensors):
        tensors[name].reshape(-1)[5] = value

    edit(path, spoil)
    with pytest.raises(WeightError, match=rf"{name}: value 5 of"):
        load(path)


def test_stored_rotary_frequencies_are_passed_over(path):
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    edit(path, lambda tensors: tensors.update({name: np.ones(8, np.float32)}))
    load(path)


def test_a_tied_table_that_is_stored_twice_is_passed_over(tmp_path):
    path = checkpoint("tied", tmp_path)
    table = "model.embed_tokens.weight"
    edit(path, lambda tensors: tensors.update({"lm_head.weight": tensors[table]}))
    load(path)


@pytest.mark.parametrize(
    "change,error",
    [
        ({"model_type": "bert", "architectures": ["BertModel"]}, "known: LlamaForCausalLM"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "known: LlamaForCausalLM"),
        ({"model_type": "mistral"}, "got model_type 'mistral' with architectures"),
        ({"sliding_window": 4}, "sliding_window: got 4, need null"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types: got"),
        ({"num_experts": 8}, "num_experts: got 8, need null or 0"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping: got 30.0"),
        ({"residual_multiplier": 0.22}, "residual_multiplier: got 0.22, need null or 1"),
        ({"hidden_act": "gelu"}, "hidden_act: got 'gelu'"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config: got 'gptq'"),
    ],
)
def test_what_no_family_runs_is_refused_by_name(path, change, error):
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UnsupportedError, match=error):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"sliding_window": 4096, "use_sliding_window": False},
        {"layer_types": ["full_attention"] * 2},
        {"num_experts": 0, "logits_scaling": 1.0, "attn_logit_softcapping": None},
    ],
)
def test_fields_of_other_families_that_change_nothing_are_passed_over(path, change):
    want = load(path)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | change))
    assert np.array_equal(load(path), want)


def test_an_embedding_at_an_odd_address_loads(path):
    """The header's length decides where data begins; pages are then not aligned for f32."""
    file = path / "model.safetensors"
    want = load(path)
    raw = file.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    file.write_bytes((size + 1).to_bytes(8, "little") + raw[8 : 8 + size] + b" " + raw[8 + size :])
    assert np.array_equal(load(path), want)


def test_options_are_immutable():
    from butter.engine import Options

    assert replace(Options(), dtype="f32").is_exact
    assert not Options().is_exact
