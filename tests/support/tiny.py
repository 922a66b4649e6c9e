"""Tiny random Llama-type checkpoints, equal to the byte wherever they are built.

`checkpoint(name, folder)` writes what a hub repository holds: config, generation config, tokenizer
and safetensors. One variant per feature, so that a failure names the feature.
"""

import hashlib
import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .rand import DTYPES, integers, normal
from .tiny_tokenizer import BOS, EOS, PAD, VOCAB, write_tokenizer

PROMPT_LENGTHS = (1, 9, 33, 72)

_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "pad_token_id": PAD,
}

_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


@dataclass(frozen=True)
class Variant:
    """One checkpoint: what differs from `_CONFIG`, and how it is written."""

    config: dict = field(default_factory=dict)
    dtype: str = "f32"
    nested_rope: bool = False  # rope_parameters of transformers 5, else flat keys
    shards: int = 1


VARIANTS: dict[str, Variant] = {
    "f32": Variant(),
    "f32_nested": Variant({"rope_theta": 500000.0}, nested_rope=True),
    "bf16": Variant(dtype="bf16"),
    "f16": Variant(dtype="f16"),
    "bf16_sharded": Variant({"num_hidden_layers": 3}, dtype="bf16", shards=3),
    "mha": Variant({"num_key_value_heads": 4}),
    "mqa": Variant({"num_key_value_heads": 1}),
    "tied": Variant({"tie_word_embeddings": True}),
    "tied_bf16": Variant({"tie_word_embeddings": True}, dtype="bf16", nested_rope=True),
    "attention_bias": Variant({"attention_bias": True}),
    "mlp_bias": Variant({"mlp_bias": True}),
    "head_dim": Variant({"head_dim": 32}),
    "odd_mlp": Variant({"intermediate_size": 173}),
    "wide": Variant(
        {"hidden_size": 128, "num_attention_heads": 8, "intermediate_size": 352}, dtype="bf16"
    ),
    "rope_llama3": Variant({"rope_scaling": _LLAMA3, "rope_theta": 500000.0}),
    "rope_llama3_nested": Variant({"rope_scaling": _LLAMA3}, nested_rope=True),
    "rope_linear": Variant({"rope_scaling": {"rope_type": "linear", "factor": 2.5}}),
    # The oldest spelling says "type".
    "rope_linear_old": Variant({"rope_scaling": {"type": "linear", "factor": 4.0}}),
    "rope_yarn": Variant({"rope_scaling": _YARN}),
    "rope_yarn_nested": Variant(
        {"rope_scaling": {**_YARN, "beta_fast": 16.0, "beta_slow": 2.0, "attention_factor": 1.1}},
        nested_rope=True,
    ),
    # The longest prompt passes max_position_embeddings, where dynamic scaling sets in.
    "rope_dynamic": Variant(
        {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}, "max_position_embeddings": 64}
    ),
}


def prompts() -> list[list[int]]:
    """The fixed prompts, each starting with BOS."""
    return [
        [BOS, *integers((n - 1,), 3, VOCAB, seed=n).tolist()] if n > 1 else [BOS]
        for n in PROMPT_LENGTHS
    ]


def checkpoint(name: str, folder, *, seed: int = 0) -> Path:
    """Write the checkpoint `name` into `folder`/`name` and return that path."""
    variant = VARIANTS[name]
    path = Path(folder) / name
    path.mkdir(parents=True, exist_ok=True)
    config = {**_CONFIG, **variant.config}
    _write_json(path / "config.json", _dialect(config, variant))
    _write_json(
        path / "generation_config.json",
        {"bos_token_id": BOS, "eos_token_id": [EOS], "pad_token_id": PAD},
    )
    write_tokenizer(path)
    tensors = {
        key: _tensor(key, shape, variant.dtype, seed)
        for key, shape in weight_shapes(config).items()
    }
    _write_weights(path, tensors, variant.shards)
    return path


def digest(path: Path) -> str:
    """What the reference's answers depend on: a hash of the config and the weights."""
    files = [path / "config.json", *sorted(path.glob("*.safetensors"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def weight_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all weights, as the checkpoint spells them."""
    hidden, inner, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    heads = config["num_attention_heads"] * size
    kv = config["num_key_value_heads"] * size
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCAB, hidden)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        linears = {
            "self_attn.q_proj": (heads, hidden, "attention_bias"),
            "self_attn.k_proj": (kv, hidden, "attention_bias"),
            "self_attn.v_proj": (kv, hidden, "attention_bias"),
            "self_attn.o_proj": (hidden, heads, "attention_bias"),
            "mlp.gate_proj": (inner, hidden, "mlp_bias"),
            "mlp.up_proj": (inner, hidden, "mlp_bias"),
            "mlp.down_proj": (hidden, inner, "mlp_bias"),
        }
        for linear, (rows, columns, bias) in linears.items():
            shapes[f"{at}{linear}.weight"] = (rows, columns)
            if config[bias]:
                shapes[f"{at}{linear}.bias"] = (rows,)
        shapes[f"{at}input_layernorm.weight"] = (hidden,)
        shapes[f"{at}post_attention_layernorm.weight"] = (hidden,)
    shapes["model.norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (VOCAB, hidden)
    return shapes


def _tensor(key: str, shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    own = zlib.crc32(key.encode()) + seed
    if "norm" in key:
        # Ones would hide a norm weight that is not applied.
        return (1 + normal(shape, "f64", own, scale=0.1)).astype(DTYPES[dtype])
    if key.endswith(".bias"):
        return normal(shape, dtype, own, scale=0.1)
    # Queries and keys are larger, so that attention is peaked and a wrong angle shows.
    gain = 1.5 if "q_proj" in key or "k_proj" in key else 1.0
    return normal(shape, dtype, own, scale=gain / shape[1] ** 0.5)


def _dialect(config: dict, variant: Variant) -> dict:
    names = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
    config = dict(config)
    if not variant.nested_rope:
        return {**config, "torch_dtype": names[variant.dtype]}
    theta, scaling = config.pop("rope_theta"), config.pop("rope_scaling")
    rope = {"rope_type": "default", **(scaling or {}), "rope_theta": theta}
    return {**config, "rope_parameters": rope, "dtype": names[variant.dtype]}


def _write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def _write_weights(path: Path, tensors: dict[str, np.ndarray], shards: int) -> None:
    if shards == 1:
        _write_safetensors(path / "model.safetensors", tensors)
        return
    files = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    # Dealt out in turn, so that one layer's weights lie in different files.
    where = {key: files[i % shards] for i, key in enumerate(tensors)}
    for file in files:
        part = {key: tensor for key, tensor in tensors.items() if where[key] == file}
        _write_safetensors(path / file, part)
    total = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": where}
    _write_json(path / "model.safetensors.index.json", index)


def _write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """The format in full: its own writer cannot take bf16 arrays in each release we allow."""
    names = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
    header: dict = {"__metadata__": {"format": "pt"}}
    offset = 0
    for key, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[key] = {
            "dtype": names[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.tobytes())
