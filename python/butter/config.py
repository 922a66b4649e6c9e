"""The model's configuration in one dialect, whatever its file, with every value checked."""

import math
import re
from collections.abc import Mapping
from typing import Any

from .errors import ConfigError
from .gguf import ROPE_FREQS, gguf_config, gguf_row_permutation, gguf_tensor_name
from .hub import ModelFiles
from .jsonfile import present, read_json
from .rope import KINDS, rope_inv_freq

__all__ = [
    "gguf_row_permutation",
    "gguf_tensor_name",
    "load_config",
    "load_generation_config",
    "normalize",
    "rope_inv_freq",
]

# field -> (lowest, highest) for whole numbers. The highest are far above every real model.
WHOLE = {
    "hidden_size": (1, 1 << 20),
    "intermediate_size": (1, 1 << 24),
    "num_hidden_layers": (1, 4096),
    "num_attention_heads": (1, 1 << 16),
    "num_key_value_heads": (1, 1 << 16),
    "head_dim": (1, 1 << 16),
    "vocab_size": (1, 1 << 26),
    "max_position_embeddings": (1, 1 << 30),
    "original_max_position_embeddings": (1, 1 << 30),
    "sliding_window": (1, 1 << 30),
    "num_local_experts": (0, 1 << 16),
    "num_experts": (0, 1 << 16),
    "num_experts_per_tok": (0, 1 << 16),
    "bos_token_id": (0, 1 << 26),
    "pad_token_id": (-1, 1 << 26),
}
# field -> (lowest, highest), both excluded.
REAL = {
    "rms_norm_eps": (0.0, 1.0),
    "layer_norm_eps": (0.0, 1.0),
    "rope_theta": (0.0, 1e18),
    "partial_rotary_factor": (0.0, 1.0000001),
}
FLAGS = ("tie_word_embeddings", "attention_bias", "mlp_bias", "use_sliding_window")
# What a decoder of this shape cannot do without; null or absent is an error.
LLAMA_LIKE = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "vocab_size",
)
REQUIRED = dict.fromkeys(("llama", "mistral", "ministral3", "qwen2", "qwen3", "phi3"), LLAMA_LIKE)


def load_config(files: ModelFiles, gguf: tuple | None = None) -> dict[str, Any]:
    """Read a model's config and return it normalized, in the words of config.json.

    Both dialects of rotary settings come out as both: `rope_parameters` (nested) and
    `rope_theta` with `rope_scaling` (flat). A nested `text_config` is left as it is; pass it
    to `normalize` yourself.

    Args:
        files: What `hub.resolve` returned.
        gguf: What `butter._native.read_gguf` returned, if the file is open already.

    Raises:
        ConfigError: A field is missing, has the wrong type or an impossible value.
        UnsupportedError: A GGUF architecture or option that Butter does not have.
    """
    if files.kind == "gguf":
        mapping, tensors, metadata = gguf or open_gguf(files)
        where = files.path.name
        config = gguf_config(metadata, tensors, rope_freqs(mapping, tensors))
    else:
        where = "config.json"
        config = read_json(files.path / where)
    return normalize(config, where)


def load_generation_config(files: ModelFiles) -> dict[str, Any]:
    """Read generation_config.json; empty if the model has none."""
    path = files.path / "generation_config.json"
    return read_json(path) if files.kind == "folder" and present(path) else {}


def open_gguf(files: ModelFiles) -> tuple:
    from ._native import read_gguf

    return read_gguf(str(files.path))


def rope_freqs(mapping, tensors: Mapping):
    """Values of the one tensor that belongs to the config."""
    if ROPE_FREQS not in tensors:
        return None
    kind, shape, offset, nbytes = tensors[ROPE_FREQS]
    if kind != "F32" or nbytes != 4 * math.prod(shape):
        raise ConfigError(f"[gguf] {ROPE_FREQS}: got {kind} {shape}, need F32")
    return memoryview(mapping.read(offset, nbytes)).cast("f")


def normalize(config: Mapping, where: str = "config.json") -> dict[str, Any]:
    """Check a config dict and bring its rotary settings and derived fields into one form."""
    config = dict(config)
    kind = config.get("model_type")
    if not isinstance(kind, str) or not re.fullmatch(r"[\w.+-]{1,100}", kind):
        raise ConfigError(f"[{where}] model_type: got {kind!r:.80}, need a name such as 'llama'")
    architectures = config.get("architectures")
    if architectures is not None and not (
        isinstance(architectures, list) and all(isinstance(a, str) for a in architectures)
    ):
        raise ConfigError(
            f"[{where}] architectures: got {architectures!r:.80}, need a list of names"
        )
    for name in REQUIRED.get(kind, ()):
        if config.get(name) is None:
            raise ConfigError(
                f"[{where}] {name}: missing; a {kind} model needs {', '.join(REQUIRED[kind])}"
            )
    for name, value in config.items():
        check(name, value, where)
    if kind in REQUIRED:
        fill_heads(config, where)
    normalize_rope(config, where)
    return config


def check(name: str, value, where: str) -> None:
    if value is None:
        return
    if name in WHOLE:
        low, high = WHOLE[name]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ConfigError(
                f"[{where}] {name}: got {value!r:.80}, need a whole number from {low} to {high}"
            )
    elif name in REAL:
        above, below = REAL[name]
        if not is_number(value) or not above < value < below:
            raise ConfigError(
                f"[{where}] {name}: got {value!r:.80}, "
                f"need a number above {above:g} and below {below:g}"
            )
    elif name in FLAGS and not isinstance(value, bool):
        raise ConfigError(f"[{where}] {name}: got {value!r:.80}, need true or false")
    elif name == "eos_token_id":
        ids = value if isinstance(value, list) else [value]
        if any(isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < 1 << 26 for i in ids):
            raise ConfigError(f"[{where}] {name}: got {value!r:.80}, need one token id or a list")


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def fill_heads(config: dict, where: str) -> None:
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    if config.get("num_key_value_heads") is None:
        config["num_key_value_heads"] = heads
    kv = config["num_key_value_heads"]
    if heads % kv:
        raise ConfigError(
            f"[{where}] num_key_value_heads: got {kv}, "
            f"need a divisor of num_attention_heads {heads}"
        )
    if config.get("head_dim") is None:
        if hidden % heads:
            raise ConfigError(
                f"[{where}] hidden_size: got {hidden}, need a multiple of "
                f"num_attention_heads {heads}, or head_dim"
            )
        config["head_dim"] = hidden // heads
    if config["head_dim"] % 2:
        raise ConfigError(f"[{where}] head_dim: got {config['head_dim']}, need an even number")


def normalize_rope(config: dict, where: str) -> None:
    """Write rope_parameters from either dialect, and the flat fields from rope_parameters."""
    nested, scaling = config.get("rope_parameters"), config.get("rope_scaling")
    for name, value in (("rope_parameters", nested), ("rope_scaling", scaling)):
        if value is not None and not isinstance(value, Mapping):
            raise ConfigError(f"[{where}] {name}: got {value!r:.80}, need an object or null")
    theta, part = config.get("rope_theta"), config.get("partial_rotary_factor")
    rope = dict(scaling or nested or {})
    if not rope and theta is None and config["model_type"] not in REQUIRED:
        return  # no rotary embedding here, as far as the file says
    if is_per_layer(rope):
        config["rope_parameters"] = {
            key: one_rope(value, theta, part, where) if value is not None else None
            for key, value in rope.items()
            if value is None or isinstance(value, Mapping)
        }
        return
    rope = one_rope(rope, theta, part, where)
    config["rope_parameters"] = rope
    config["rope_theta"] = rope["rope_theta"]
    scaled = {k: v for k, v in rope.items() if k not in ("rope_theta", "partial_rotary_factor")}
    config["rope_scaling"] = None if scaled == {"rope_type": "default"} else scaled
    if rope.get("partial_rotary_factor") is not None:
        config["partial_rotary_factor"] = rope["partial_rotary_factor"]


def is_per_layer(rope: Mapping) -> bool:
    """True for settings keyed by layer type, such as full_attention and sliding_attention."""
    return bool(rope) and any(isinstance(v, Mapping) for v in rope.values())


def one_rope(rope: Mapping, theta, part, where: str) -> dict:
    rope = {k: v for k, v in rope.items() if k != "type" or "rope_type" not in rope}
    kind = rope.pop("type", None) or rope.get("rope_type") or "default"
    # Phi-3's first name for it, and Qwen-VL's name for plain frequencies in sections.
    kind = {"su": "longrope", "mrope": "default"}.get(kind, kind) if isinstance(kind, str) else kind
    rope["rope_type"] = kind
    if rope.get("rope_theta") is None:
        rope["rope_theta"] = 10000.0 if theta is None else theta
    if rope.get("partial_rotary_factor") is None and part is not None:
        rope["partial_rotary_factor"] = part
    for name in ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings"):
        check(name, rope.get(name), where)
    if not isinstance(kind, str):
        raise ConfigError(f"[{where}] rope_type: got {kind!r:.80}, need one of {', '.join(KINDS)}")
    return rope
