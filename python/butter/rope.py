"""Rotary frequencies, as the reference computes them in f32."""

import math
import struct
from collections.abc import Mapping
from typing import Any

from .errors import ConfigError, UnsupportedError

MAX_TABLE = 1 << 28  # elements of one table: 1 GiB


def rope_inv_freq(
    config: Mapping, seq_len: int | None = None, layer_type: str | None = None
) -> tuple[list[float], float]:
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
        inv_freq, factor = KINDS[kind](rope, config, seq_len)
    except ArithmeticError as error:
        raise ConfigError(f"[rope] {kind} parameters {rope!r:.200}: {error}") from None
    if not all(map(math.isfinite, (*inv_freq, factor))):
        raise ConfigError(f"[rope] {kind} parameters {rope!r:.200} give infinite frequencies")
    return inv_freq, factor


def f32(value: float) -> float:
    """Rounded to f32. Of f32 operands, a sum, product or quotient comes out as f32 makes it."""
    return struct.unpack("f", struct.pack("f", float(value)))[0]


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


def powers(base: float, dim: int, count: int | None = None) -> list[float]:
    """base ** (2 i / dim) in f32. The power is rounded once, which is what torch's comes to."""
    return [f32(base ** f32(i / dim)) for i in range(0, dim if count is None else count, 2)]


def inverted(values: list[float]) -> list[float]:
    return [f32(1 / v) for v in values]


def default(rope, config, seq_len):
    return inverted(powers(number(rope, "rope_theta"), rotary_dim(rope, config))), 1.0


def linear(rope, config, seq_len):
    factor = f32(number(rope, "factor"))
    return [f32(v / factor) for v in default(rope, config, seq_len)[0]], 1.0


def proportional(rope, config, seq_len):
    """Gemma 4: the last part of each head does not turn at all."""
    dim, factor = head_dim(config), f32(number(rope, "factor", default=1.0))
    angles = int(number(rope, "partial_rotary_factor", default=1.0) * dim // 2)
    turning = inverted(powers(number(rope, "rope_theta"), dim, 2 * angles))
    return [*(f32(v / factor) for v in turning), *[0.0] * (dim // 2 - angles)], 1.0


def dynamic(rope, config, seq_len):
    dim, factor = rotary_dim(rope, config), number(rope, "factor")
    original = number({**rope, **length_of(config)}, "max_position_embeddings")
    length = max(seq_len or 0, original)
    if dim <= 2:
        raise ConfigError(f"[rope] rotary dimension: got {dim}, dynamic scaling needs above 2")
    stretch = (factor * length / original) - (factor - 1)
    return inverted(powers(number(rope, "rope_theta") * stretch ** (dim / (dim - 2)), dim)), 1.0


def length_of(config: Mapping) -> dict:
    return {"max_position_embeddings": config.get("max_position_embeddings")}


def llama3(rope, config, seq_len):
    """Long waves are stretched by factor, short ones kept, those between blended."""
    factor = f32(number(rope, "factor"))
    low, high = number(rope, "low_freq_factor"), number(rope, "high_freq_factor")
    length = number(rope, "original_max_position_embeddings")
    if high <= low:
        raise ConfigError(f"[rope] high_freq_factor: got {high}, need above low_freq_factor {low}")

    def scaled(frequency):
        wave = f32(f32(2 * math.pi) / frequency)
        if wave > f32(length / low):
            return f32(frequency / factor)
        if wave < f32(length / high):
            return frequency
        smooth = f32(f32(f32(f32(length) / wave) - f32(low)) / f32(high - low))
        stretched = f32(f32(f32(1 - smooth) * frequency) / factor)
        return f32(stretched + f32(smooth * frequency))

    return [scaled(v) for v in default(rope, config, seq_len)[0]], 1.0


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

    def blended(i, wave):
        keep = 1 - min(max(f32(f32(i - f32(low)) / f32(span)), 0.0), 1.0)
        stretched = f32(1 / f32(f32(factor) * wave))
        return f32(f32(stretched * f32(1 - f32(keep))) + f32(f32(1 / wave) * f32(keep)))

    waves = powers(base, dim)
    return [blended(i, wave) for i, wave in enumerate(waves)], yarn_attention(rope, factor)


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
    good = isinstance(factors, list | tuple) and len(factors) == dim // 2
    if not good or not all(is_factor(f) for f in factors):
        raise ConfigError(f"[rope] {name}: got {rope.get(name)!r:.80}, need {dim // 2} numbers > 0")
    attention = rope.get("attention_factor")
    if attention is None:
        factor = rope.get("factor")
        if factor is None:
            factor = number({**rope, **length_of(config)}, "max_position_embeddings") / length
        attention = 1.0
        if factor > 1 and length > 1:
            attention = math.sqrt(1 + math.log(factor) / math.log(length))
    waves = powers(number(rope, "rope_theta"), dim)
    inv_freq = inverted([f32(f32(f) * wave) for f, wave in zip(factors, waves, strict=True)])
    return inv_freq, float(number({**rope, "attention_factor": attention}, "attention_factor"))


def is_factor(value) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


KINDS = {
    "default": default,
    "linear": linear,
    "dynamic": dynamic,
    "llama3": llama3,
    "yarn": yarn,
    "longrope": longrope,
    "proportional": proportional,
}
