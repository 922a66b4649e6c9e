"""What GGUF files call things, in the words of Hugging Face checkpoints."""

import functools
import re
from array import array
from collections.abc import Mapping

from .errors import ConfigError, UnsupportedError, WeightError

# Architectures whose q and k rows are stored for interleaved rotary pairs (x0 x1)(x2 x3)…,
# while the checkpoint's halves are (x0 x_half)(x1 x_half+1)….
INTERLEAVED = {"llama"}
# general.architecture -> model_type
ARCHITECTURES = {"llama": "llama"}

# metadata key without the architecture prefix -> config.json field
FIELDS = {
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "context_length": "max_position_embeddings",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
# Metadata that would change the model and that a llama does not have.
REFUSED = {
    "expert_count": (0,),
    "attention.sliding_window": (0,),
    "use_parallel_residual": (False,),
    "attention.scale": (),
    "logit_scale": (1.0,),
    "residual_scale": (1.0,),
    "embedding_scale": (1.0,),
}

TOP = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
BLOCK = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# Carries rotary factors, which the config takes over; no checkpoint has it.
ROPE_FREQS = "rope_freqs.weight"


def gguf_tensor_name(name: str) -> str | None:
    """Return the checkpoint's name of a GGUF tensor; None for one that is part of the config.

    Raises:
        WeightError: The tensor belongs to no model that Butter knows.
    """
    if name == ROPE_FREQS:
        return None
    match = re.fullmatch(r"(?:blk\.(0|[1-9]\d{0,4})\.)?([a-z_]+)\.(weight|bias)", name)
    if match:
        block, part, kind = match.groups()
        if block is None and part in TOP:
            return f"{TOP[part]}.{kind}"
        if block is not None and part in BLOCK:
            return f"model.layers.{block}.{BLOCK[part]}.{kind}"
    raise WeightError(
        f"[gguf] tensor {name!r}: no such part; known: {', '.join(TOP)}, "
        f"blk.N.{{{', '.join(BLOCK)}}}, {ROPE_FREQS}"
    )


def gguf_row_permutation(name: str, config: Mapping) -> array | None:
    """Return which GGUF row is row i of the checkpoint, for tensors stored reordered; else None.

    Args:
        name: The tensor, by its GGUF or its checkpoint name.
        config: The normalized config of the file.
    """
    if config.get("model_type") not in INTERLEAVED:
        return None
    if ".attn_q." in name or ".q_proj." in name:
        heads = config["num_attention_heads"]
    elif ".attn_k." in name or ".k_proj." in name:
        heads = config["num_key_value_heads"]
    else:
        return None
    return halves_first(heads, config["head_dim"])


@functools.cache  # every layer has the same two
def halves_first(heads: int, dim: int) -> array:
    """Of rows stored as x0 x_half x1 x_half+1 … in each head, which comes when."""
    order = array("q")
    for head in range(0, heads * dim, dim):
        order.extend(range(head, head + dim, 2))
        order.extend(range(head + 1, head + dim, 2))
    return order


def gguf_config(metadata: Mapping, tensors: Mapping, rope_freqs=None) -> dict:
    """Return metadata in config.json's words, not yet checked.

    Args:
        metadata: The file's key-value pairs.
        tensors: Tensor name to (type, shape outer to inner, …).
        rope_freqs: Values of the tensor rope_freqs.weight, if the file has it.
    """
    arch = metadata.get("general.architecture")
    if not isinstance(arch, str) or arch not in ARCHITECTURES:
        raise UnsupportedError(
            f"[gguf] general.architecture: got {arch!r}, need one of {', '.join(ARCHITECTURES)}"
        )
    config: dict = {"model_type": ARCHITECTURES[arch], "architectures": ["LlamaForCausalLM"]}
    for key, field in FIELDS.items():
        if (value := plain(metadata.get(f"{arch}.{key}"))) is not None:
            config[field] = value
    for key, neutral in REFUSED.items():
        value = plain(metadata.get(f"{arch}.{key}"))
        if value is not None and all(value != n for n in neutral):
            raise UnsupportedError(
                f"[gguf] {arch}.{key}: got {value!r}; Butter's {arch} has no such part"
            )
    take_vocabulary(config, metadata, tensors)
    check_rotary(config, metadata, arch)
    config["tie_word_embeddings"] = "output.weight" not in tensors
    config["attention_bias"] = "blk.0.attn_q.bias" in tensors
    config["mlp_bias"] = "blk.0.ffn_up.bias" in tensors
    config.setdefault("rope_theta", 10000.0)
    config["rope_scaling"] = rope_scaling(metadata, arch, config, tensors, rope_freqs)
    for field, key in (("bos_token_id", "bos_token_id"), ("eos_token_id", "eos_token_id")):
        config[field] = plain(metadata.get(f"tokenizer.ggml.{key}"))
    return config


def plain(value):
    """A number as Python's own; files hold per-layer arrays where all entries agree."""
    if hasattr(value, "tolist"):  # a memoryview, and what numpy has
        value = value.tolist()
    if isinstance(value, list | tuple):
        values = [plain(v) for v in value]
        return values[0] if values and all(v == values[0] for v in values) else values
    return value


def take_vocabulary(config: dict, metadata: Mapping, tensors: Mapping) -> None:
    embed = tensors.get("token_embd.weight")
    rows = int(embed[1][0]) if embed is not None and len(embed[1]) == 2 else None
    said = config.get("vocab_size")
    if rows is None:
        raise WeightError("[gguf] token_embd.weight: missing, or not a matrix")
    if said is not None and said != rows:
        raise ConfigError(f"[gguf] vocab_size: got {said!r}, but token_embd.weight has {rows} rows")
    config["vocab_size"] = rows


def check_rotary(config: dict, metadata: Mapping, arch: str) -> None:
    """Butter's llama turns whole heads, whose keys and values are equally wide."""
    turned = plain(metadata.get(f"{arch}.rope.dimension_count"))
    values = plain(metadata.get(f"{arch}.attention.value_length"))
    head = config.get("head_dim", turned)
    if head is not None:
        config["head_dim"] = head
    for what, got in (("rope.dimension_count", turned), ("attention.value_length", values)):
        if got is not None and got != head:
            raise UnsupportedError(f"[gguf] {arch}.{what}: got {got!r}, need head_dim {head!r}")


def rope_scaling(metadata, arch, config, tensors, rope_freqs) -> dict | None:
    def value(key):
        return plain(metadata.get(f"{arch}.rope.{key}"))

    if ROPE_FREQS in tensors:
        if rope_freqs is None:
            raise ConfigError(f"[gguf] the values of {ROPE_FREQS} are needed for the config")
        factors = [float(f) for f in rope_freqs]
        # Divisors per frequency: what longrope does, without its attention factor.
        return {
            "rope_type": "longrope",
            "short_factor": factors,
            "long_factor": factors,
            "attention_factor": 1.0,
        }
    kind = value("scaling.type")
    factor = value("scaling.factor")
    if kind is None and value("scale_linear") is not None:
        kind, factor = "linear", value("scale_linear")
    if kind in (None, "none") or (kind == "linear" and factor in (None, 1.0, 0.0)):
        return None
    if kind not in ("linear", "yarn"):
        raise UnsupportedError(
            f"[gguf] {arch}.rope.scaling.type: got {kind!r}, need none, linear or yarn"
        )
    scaling = {"rope_type": kind, "factor": factor}
    if kind == "yarn":
        scaling["original_max_position_embeddings"] = value("scaling.original_context_length")
        for key, field in (("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")):
            if value(f"scaling.{key}") is not None:
                scaling[field] = value(f"scaling.{key}")
        if (attention := value("scaling.attn_factor")) is not None:
            scaling["attention_factor"] = attention
    return scaling
