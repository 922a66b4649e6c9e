"""Rotary frequencies and tables, as the reference computes them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import ConfigError, UnsupportedError

MAX_TABLE = 1 << 28  # elements of one table: 1 GiB


def rope_inv_freq(
    config: Mapping, seq_len: int | None = None, layer_type: str | None = None
) -> tuple[np.ndarray, float]:
    """Return the inverse frequencies [rotary_dim / 2] in f32 and the factor on cos and sin.

    Args:
        config: A normalized config (see `load_config`).
        seq_len: Length of the sequence. Only "dynamic" and "longrope" depend on it: beyond the
            original length they use other frequencies. None means within it.
        layer_type: Which entry, where the config holds rope_parameters per layer type.

    Raises:
        UnsupportedError: The rope type is unknown; the message lists the known ones.
        ConfigError: A parameter is missing or out of range.
    """
    rope = rope_parameters(config, layer_type)
    kind = rope["rope_type"]
    if kind not in KINDS:
        raise UnsupportedError(f"[rope] rope_type: got {kind!r}, need one of {', '.join(KINDS)}")
    try:
        with np.errstate(all="ignore"):
            inv_freq, factor = KINDS[kind](rope, config, seq_len)
    except OverflowError as error:
        raise ConfigError(f"[rope] {kind} parameters {rope!r:.200} overflow: {error}") from None
    if not np.isfinite(inv_freq).all() or not math.isfinite(factor):
        raise ConfigError(f"[rope] {kind} parameters {rope!r:.200} give infinite frequencies")
    return inv_freq, factor


def rope_tables(
    config: Mapping, max_positions: int, seq_len: int | None = None, layer_type: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin, each f32 [max_positions, rotary_dim / 2]."""
    inv_freq, factor = rope_inv_freq(config, seq_len, layer_type)
    if not 0 < max_positions <= MAX_TABLE // max(len(inv_freq), 1):
        raise ConfigError(
            f"[rope] max_positions: got {max_positions}, need 1 to {MAX_TABLE // len(inv_freq)}"
        )
    # The reference forms the angle in f32; its rounding at large positions is part of the model.
    angles = np.arange(max_positions, dtype=np.float32)[:, None] * inv_freq[None, :]
    wide = angles.astype(np.float64)
    scale = np.float32(factor)
    return np.cos(wide).astype(np.float32) * scale, np.sin(wide).astype(np.float32) * scale


def rope_parameters(config: Mapping, layer_type: str | None = None) -> dict:
    """Return the flat rope parameters, with the original length filled in."""
    rope = config.get("rope_parameters")
    if not isinstance(rope, Mapping):
        raise ConfigError("[rope] rope_parameters: missing; pass the config through load_config")
    if "rope_type" not in rope:
        if layer_type is None or not isinstance(rope.get(layer_type), Mapping):
            raise ConfigError(
                f"[rope] layer_type: got {layer_type!r}, need one of {', '.join(map(str, rope))}"
            )
        rope = rope[layer_type]
    rope = dict(rope)
    if rope["rope_type"] in ("llama3", "yarn", "longrope"):
        # Phi-3 keeps it at the top level, and there it wins.
        length = config.get("original_max_position_embeddings")
        if length is None:
            length = rope.get("original_max_position_embeddings")
        if length is None:
            length = config.get("max_position_embeddings")
        rope["original_max_position_embeddings"] = length
    return rope


def number(rope: Mapping, name: str, low: float = 0.0, default: float | None = None) -> float:
    value: Any = rope.get(name)
    if value is None:
        value = default
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not low < value < math.inf:
        raise ConfigError(
            f"[rope] {name}: got {value!r}, need a number above {low:g} "
            f"for rope_type {rope['rope_type']!r}"
        )
    return value


def rotary_dim(rope: Mapping, config: Mapping) -> int:
    dim = int(head_dim(config) * number(rope, "partial_rotary_factor", default=1.0))
    if not 2 <= dim <= head_dim(config) or dim % 2:
        raise ConfigError(
            f"[rope] rotary dimension: got {dim} of head_dim {head_dim(config)}, need an even part"
        )
    return dim


def head_dim(config: Mapping) -> int:
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def powers(base: float, dim: int, count: int | None = None) -> np.ndarray:
    """base ** (2 i / dim) in f32. The power is rounded once, which is what torch's comes to."""
    exponents = np.arange(0, count or dim, 2).astype(np.float32) / np.float32(dim)
    return np.power(np.float64(base), exponents.astype(np.float64)).astype(np.float32)


ONE = np.float32(1)


def default(rope, config, seq_len):
    return ONE / powers(number(rope, "rope_theta"), rotary_dim(rope, config)), 1.0


def linear(rope, config, seq_len):
    return default(rope, config, seq_len)[0] / np.float32(number(rope, "factor")), 1.0


def proportional(rope, config, seq_len):
    """Gemma 4: the last part of each head does not turn at all."""
    dim = head_dim(config)
    angles = int(number(rope, "partial_rotary_factor", default=1.0) * dim // 2)
    turning = ONE / powers(number(rope, "rope_theta"), dim, 2 * angles)
    still = np.zeros(dim // 2 - angles, np.float32)
    return np.concatenate([turning, still]) / np.float32(number(rope, "factor", default=1.0)), 1.0


def dynamic(rope, config, seq_len):
    dim, factor = rotary_dim(rope, config), number(rope, "factor")
    original = number({**rope, **length_of(config)}, "max_position_embeddings")
    length = max(seq_len or 0, original)
    if dim <= 2:
        raise ConfigError(f"[rope] rotary dimension: got {dim}, dynamic scaling needs above 2")
    stretch = (factor * length / original) - (factor - 1)
    return ONE / powers(number(rope, "rope_theta") * stretch ** (dim / (dim - 2)), dim), 1.0


def length_of(config: Mapping) -> dict:
    return {"max_position_embeddings": config.get("max_position_embeddings")}


def llama3(rope, config, seq_len):
    """Long waves are stretched by factor, short ones kept, those between blended."""
    inv_freq = default(rope, config, seq_len)[0]
    factor = np.float32(number(rope, "factor"))
    low, high = number(rope, "low_freq_factor"), number(rope, "high_freq_factor")
    length = number(rope, "original_max_position_embeddings")
    if high <= low:
        raise ConfigError(f"[rope] high_freq_factor: got {high}, need above low_freq_factor {low}")
    wave = np.float32(2 * math.pi) / inv_freq
    smooth = (np.float32(length) / wave - np.float32(low)) / np.float32(high - low)
    blended = (ONE - smooth) * inv_freq / factor + smooth * inv_freq
    scaled = np.where(wave > np.float32(length / low), inv_freq / factor, blended)
    return np.where(wave < np.float32(length / high), inv_freq, scaled), 1.0


def yarn(rope, config, seq_len):
    base, dim = number(rope, "rope_theta", low=1.0), rotary_dim(rope, config)
    length = number(rope, "original_max_position_embeddings")
    if rope.get("factor") is None:
        positions = number({**rope, **length_of(config)}, "max_position_embeddings")
        rope = {**rope, "factor": positions / length}
    factor = number(rope, "factor")

    def turns_to_dim(turns):
        return dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low = turns_to_dim(number(rope, "beta_fast", default=32))
    high = turns_to_dim(number(rope, "beta_slow", default=1))
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    span = (high - low) or 0.001
    ramp = (np.arange(dim // 2, dtype=np.float32) - np.float32(low)) / np.float32(span)
    keep = ONE - np.clip(ramp, np.float32(0), ONE)
    waves = powers(base, dim)
    stretched = ONE / (np.float32(factor) * waves)
    return stretched * (ONE - keep) + ONE / waves * keep, yarn_attention(rope, factor)


def yarn_attention(rope: Mapping, factor: float) -> float:
    if rope.get("attention_factor") is not None:
        return float(number(rope, "attention_factor"))

    def scale(weight):
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if rope.get("mscale") and rope.get("mscale_all_dim"):
        return scale(number(rope, "mscale")) / scale(number(rope, "mscale_all_dim"))
    return scale(1.0)


def longrope(rope, config, seq_len):
    dim = rotary_dim(rope, config)
    length = number(rope, "original_max_position_embeddings")
    name = "long_factor" if seq_len and seq_len > length else "short_factor"
    factors = rope.get(name)
    try:
        factors = np.asarray(factors, np.float32)
    except (TypeError, ValueError, OverflowError):
        factors = np.zeros(0, np.float32)
    if factors.shape != (dim // 2,) or not (np.isfinite(factors) & (factors > 0)).all():
        raise ConfigError(f"[rope] {name}: got {rope.get(name)!r:.80}, need {dim // 2} numbers > 0")
    attention = rope.get("attention_factor")
    if attention is None:
        factor = rope.get("factor")
        if factor is None:
            factor = number({**rope, **length_of(config)}, "max_position_embeddings") / length
        attention = 1.0
        if factor > 1 and length > 1:
            attention = math.sqrt(1 + math.log(factor) / math.log(length))
    inv_freq = ONE / (factors * powers(number(rope, "rope_theta"), dim))
    return inv_freq, float(number({**rope, "attention_factor": attention}, "attention_factor"))


KINDS = {
    "default": default,
    "linear": linear,
    "dynamic": dynamic,
    "llama3": llama3,
    "yarn": yarn,
    "longrope": longrope,
    "proportional": proportional,
}
