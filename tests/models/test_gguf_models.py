"""GGUF models against the same weights as a safetensors folder."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import butter
from butter.config import gguf_row_permutation
from butter.errors import WeightError
from native import files
from native.files import ARRAY, GF32, I32, STRING, U32
from support.gguf_blocks import BLOCKS, decode, random_blocks
from support.oracle import assert_close, kl_divergence
from support.rand import integers, normal
from support.tiny import weight_shapes
from support.tiny_tokenizer import VOCAB, build, write_tokenizer
from support.tolerances import MAX_MEAN_KL

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCAB,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "eos_token_id": 2,
}
IDS = [1, *integers((20,), 3, VOCAB, seed=9).tolist()]
PARTS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    stem, kind = name.rsplit(".", 1)
    if stem.startswith("model.layers."):
        _, _, layer, part = stem.split(".", 3)
        return f"blk.{layer}.{PARTS[part]}.{kind}"
    return f"{PARTS[stem]}.{kind}"


def stored(name, shape, kind):
    """(type id, bytes as in the file, values as in the checkpoint) of one weight."""
    seed = sum(name.encode())
    if len(shape) == 1:
        values = (1 + normal(shape, "f64", seed, scale=0.1)).astype(np.float32)
        return 0, values.tobytes(), values
    if kind in ("F32", "F16"):
        dtype = {"F32": np.float32, "F16": np.float16}[kind]
        rows = normal(shape, "f64", seed, scale=shape[1] ** -0.5).astype(dtype)
        values = rows.astype(np.float32)
    else:
        rows = random_blocks(kind, *shape, seed)
        values = decode(kind, rows, shape[1])
    order = gguf_row_permutation(name, CONFIG)
    number = {"F32": 0, "F16": 1}.get(kind) if kind in ("F32", "F16") else BLOCKS[kind].id
    return number, rows.tobytes(), values if order is None else values[order]


def metadata():
    vocab = sorted(build().get_vocab().items(), key=lambda item: item[1])
    merges = json.loads(build().to_str())["model"]["merges"]
    numbers = {
        "block_count": 2, "context_length": 128, "embedding_length": 256,
        "feed_forward_length": 512, "attention.head_count": 4, "attention.head_count_kv": 2,
        "rope.dimension_count": 64, "vocab_size": VOCAB,
    }  # fmt: skip
    pairs = [files.pair("general.architecture", STRING, "llama")]
    pairs += [files.pair(f"llama.{k}", U32, v) for k, v in numbers.items()]
    pairs += [
        files.pair("llama.attention.layer_norm_rms_epsilon", GF32, 1e-5),
        files.pair("tokenizer.ggml.model", STRING, "gpt2"),
        files.pair("tokenizer.ggml.pre", STRING, "gpt-2"),
        files.pair("tokenizer.ggml.tokens", ARRAY, (STRING, [t for t, _ in vocab])),
        files.pair("tokenizer.ggml.token_type", ARRAY, (I32, [3] * 3 + [1] * (VOCAB - 3))),
        files.pair("tokenizer.ggml.merges", ARRAY, (STRING, [" ".join(m) for m in merges])),
        files.pair("tokenizer.ggml.bos_token_id", U32, 1),
        files.pair("tokenizer.ggml.eos_token_id", U32, 2),
    ]
    return pairs


def write_pair(folder, kind, spoil=None):
    """A .gguf file and a folder with the same values; returns both paths."""
    infos, data, tensors = [], b"", {}
    for name, shape in weight_shapes(CONFIG).items():
        number, raw, tensors[name] = stored(name, shape, kind)
        if spoil == name:
            raw = b"\xff" * len(raw)
        infos.append(files.info(gguf_name(name), list(shape[::-1]), number, len(data)))
        data += raw + b"\0" * (-len(raw) % 32)
    gguf = folder / f"{kind}.gguf"
    gguf.write_bytes(files.gguf_file(metadata(), infos, data))
    plain = folder / kind
    plain.mkdir()
    save_file(tensors, plain / "model.safetensors")
    (plain / "config.json").write_text(json.dumps(CONFIG))
    write_tokenizer(plain)
    return gguf, plain


@pytest.mark.parametrize("kind", ["F32", "F16", *BLOCKS])
def test_gguf_logits_equal_those_of_the_decoded_weights(kind, tmp_path):
    gguf, plain = write_pair(tmp_path, kind)
    with butter.Model.load(plain, device="cpu", exact=True) as model:
        want = model.logits(IDS)
        tokens = model.generate(IDS, temperature=0, max_tokens=8, ignore_eos=True).tokens
    with butter.Model.load(gguf, device="cpu", exact=True) as model:
        assert_close(model.logits(IDS), want, op="logits", dtype="f32")
        assert model.tokenizer.encode("the capital") == build().encode("the capital").ids
        got = model.generate(IDS, temperature=0, max_tokens=8, ignore_eos=True).tokens
    assert got == tokens


@pytest.mark.parametrize("kind", list(BLOCKS))
def test_fast_products_stay_near_the_exact_ones(kind, tmp_path):
    gguf, _ = write_pair(tmp_path, kind)
    with butter.Model.load(gguf, device="cpu", exact=True) as model:
        want = model.logits(IDS)
    with butter.Model.load(gguf, device="cpu") as model:
        got = model.logits(IDS)
    assert kl_divergence(want, got).mean() <= MAX_MEAN_KL
    assert not np.array_equal(got, want)


def test_a_scale_that_is_not_finite_is_refused(tmp_path):
    name = "model.layers.1.mlp.up_proj.weight"
    gguf, _ = write_pair(tmp_path, "Q8_0", spoil=name)
    with pytest.raises(WeightError, match=rf"{name}: value 0 of"):
        butter.Model.load(gguf, device="cpu", prewarm=False)
