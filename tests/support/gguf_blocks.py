"""GGUF's quantized blocks in numpy: random ones, and what they decode to.

Layouts: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and its block structs. The K
formats multiply two scales; Butter rounds the product to f16, and so does this.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .rand import words


@dataclass(frozen=True)
class Block:
    """One format: its id in files, inputs and bytes per block, where its f16 numbers are."""

    id: int
    inputs: int
    bytes: int
    halves: tuple[int, ...]  # byte offsets
    decode: Callable[[np.ndarray], np.ndarray]  # [blocks, bytes] to [blocks, inputs]


def random_blocks(name: str, n: int, k: int, seed: int) -> np.ndarray:
    """u8 [n, bytes per row] with scales that keep values near 1 / sqrt(k)."""
    block = BLOCKS[name]
    count = n * k // block.inputs
    raw = words(count * block.bytes // 8 + 1, seed).view(np.uint8)[: count * block.bytes]
    raw = raw.reshape(count, block.bytes).copy()
    scale = {"Q8_0": 1 / 100, "Q6_K": 1 / 2000, "Q4_K": 1 / 400, "Q5_K": 1 / 800}.get(name, 1 / 6)
    for at in block.halves:
        size = (1 + (raw[:, at] % 16) / 16) * scale / k**0.5
        sign = np.where(raw[:, at + 1] & 1, -1, 1)
        raw[:, at : at + 2] = (size * sign).astype(np.float16)[:, None].view(np.uint8)
    return raw.reshape(n, -1)


def decode(name: str, rows: np.ndarray, k: int) -> np.ndarray:
    """u8 [n, bytes per row] to f32 [n, k]."""
    block = BLOCKS[name]
    return block.decode(rows.reshape(-1, block.bytes)).astype(np.float32).reshape(len(rows), k)


def half(raw: np.ndarray, at: int) -> np.ndarray:
    return raw[:, at : at + 2].copy().view(np.float16).astype(np.float64)


def nibbles(raw: np.ndarray) -> np.ndarray:
    """The low halves of the bytes, then the high ones."""
    return np.concatenate([raw & 15, raw >> 4], axis=-1)


def rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32).astype(np.float16).astype(np.float64)


def q4_0(raw):
    return (nibbles(raw[:, 2:]) - 8.0) * half(raw, 0)


def q4_1(raw):
    return nibbles(raw[:, 4:]) * half(raw, 0) + half(raw, 2)


def q8_0(raw):
    return raw[:, 2:].view(np.int8) * half(raw, 0)


def scales_of_8(raw):
    """Q4_K and Q5_K: 6-bit scales and minimums [blocks, 8] out of 12 bytes at 4."""
    low, mid, top = raw[:, 4:8], raw[:, 8:12], raw[:, 12:16]
    scale = np.concatenate([low & 63, (top & 15) | (low >> 6) << 4], axis=1)
    least = np.concatenate([mid & 63, (top >> 4) | (mid >> 6) << 4], axis=1)
    return rounded(half(raw, 0) * scale), rounded(half(raw, 2) * least)


def q4_k(raw):
    scale, least = scales_of_8(raw)
    codes = nibbles(raw[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return codes * scale[..., None] - least[..., None]


def q5_k(raw):
    scale, least = scales_of_8(raw)
    fifth = raw[:, None, 16:48] >> np.arange(8)[:, None] & 1
    codes = nibbles(raw[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32) | fifth << 4
    return codes * scale[..., None] - least[..., None]


def q6_k(raw):
    low = raw[:, :128].reshape(-1, 2, 2, 32)
    low = np.stack([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    high = raw[:, None, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6])[:, None] & 3
    codes = (low | high << 4).reshape(-1, 16, 16) - 32.0
    scale = rounded(half(raw, 208) * raw[:, 192:208].view(np.int8))
    return codes * scale[..., None]


BLOCKS = {
    "Q4_0": Block(2, 32, 18, (0,), q4_0),
    "Q4_1": Block(3, 32, 20, (0, 2), q4_1),
    "Q8_0": Block(8, 32, 34, (0,), q8_0),
    "Q4_K": Block(12, 256, 144, (0, 2), q4_k),
    "Q5_K": Block(13, 256, 176, (0, 2), q5_k),
    "Q6_K": Block(14, 256, 210, (208,), q6_k),
}
