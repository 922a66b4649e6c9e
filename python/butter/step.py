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
