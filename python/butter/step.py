"""The header words of a step block, by name."""

import struct

from .manifest import manifest

HEADER_WORDS = 64


def step_words(**fields: float) -> list[int]:
    """64 words with these fields set and the rest 0, floats as their bits."""
    words = [0] * HEADER_WORDS
    for name, value in fields.items():
        index, dtype = manifest().step[name]
        words[index] = to_bits(value) if dtype == "f32" else int(value) & 0xFFFFFFFF
    return words


def to_bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def sampling_words(params) -> list[int]:
    """The header of a step that samples by `params` (butter.SamplingParams with a seed)."""
    return step_words(
        seed_lo=params.seed & 0xFFFFFFFF,
        seed_hi=params.seed >> 32,
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
        min_p=params.min_p,
        repetition=params.repetition_penalty,
        presence=params.presence_penalty,
        frequency=params.frequency_penalty,
        use_bias=bool(params.logit_bias),
        sample=1,
    )
