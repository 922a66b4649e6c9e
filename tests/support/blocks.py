"""GGUF's quantized blocks in numpy: random ones, and what they decode to."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .rand import integers, normal
from .tiles import Matrix


def _halves(blocks: np.ndarray, at: int) -> np.ndarray:
    return np.ascontiguousarray(blocks[..., at : at + 2]).view("<f2")[..., 0].astype(np.float64)


def _nibbles(bytes_: np.ndarray) -> np.ndarray:
    """All low halves, then all high ones."""
    return np.concatenate([bytes_ & 15, bytes_ >> 4], axis=-1)


def _q4_0(b):
    return _nibbles(b[..., 2:18])[..., None, :], _halves(b, 0)[..., None], None


def _q4_1(b):
    return _nibbles(b[..., 4:20])[..., None, :], _halves(b, 0)[..., None], _halves(b, 2)[..., None]


def _q8_0(b):
    """Signed bytes; as codes they are 128 more."""
    return (b[..., 2:34] ^ 128)[..., None, :], _halves(b, 0)[..., None], None


def _six_bits(b):
    """The eight (scale, minimum) pairs of a K block, in 12 bytes."""
    first, second, third = b[..., 4:8], b[..., 8:12], b[..., 12:16]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], axis=-1)
    minima = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], axis=-1)
    return _halves(b, 0)[..., None] * scales, -_halves(b, 2)[..., None] * minima


def _k_nibbles(b):
    """[…, 128] bytes to […, 8, 32]: 32 bytes hold two neighbouring groups."""
    return _nibbles(b.reshape(*b.shape[:-1], 4, 32)).reshape(*b.shape[:-1], 8, 32)


def _q4_k(b):
    return _k_nibbles(b[..., 16:144]), *_six_bits(b)


def _q5_k(b):
    fifth = b[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _k_nibbles(b[..., 48:176]) | fifth << 4, *_six_bits(b)


def _q6_k(b):
    low = b[..., :128].reshape(*b.shape[:-1], 2, 64)
    high = b[..., 128:192].reshape(*b.shape[:-1], 2, 1, 32)
    pairs = high >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3
    codes = _nibbles(low).reshape(*b.shape[:-1], 2, 4, 32) | pairs << 4
    scales = _halves(b, 208)[..., None] * b[..., 192:208].view(np.int8)
    return codes.reshape(*b.shape[:-1], 16, 16), scales, -32 * scales


@dataclass(frozen=True)
class Format:
    """Blocks of `size` bytes for `columns` values, with f16 factors at these byte offsets."""

    size: int
    columns: int
    bits: int
    factors: tuple[int, ...]
    decode: Callable

    def matrix(self, raw: np.ndarray) -> Matrix:
        """Bytes [n, blocks * size] to codes, and scales and biases in float64."""
        n = len(raw)
        codes, scales, biases = self.decode(raw.reshape(n, -1, self.size))
        flat = codes.reshape(n, -1, codes.shape[-1])
        return Matrix(
            flat,
            scales.reshape(n, -1),
            None if biases is None else biases.reshape(n, -1),
            self.bits,
        )

    def random(self, n: int, blocks: int, seed: int = 0) -> np.ndarray:
        """Any bytes, but factors as files have them, of both signs, and some zero or subnormal."""
        raw = integers((n, blocks, self.size), 0, 256, "u8", seed)
        for at in self.factors:
            factors = normal((n, blocks), "f16", seed + at, scale=0.02)
            factors[::3, 0], factors[1::5, 0] = 0, np.float16(-3e-7)
            raw[..., at : at + 2] = factors[..., None].view(np.uint8)
        return raw.reshape(n, -1)


FORMATS = {
    "q4_0": Format(18, 32, 4, (0,), _q4_0),
    "q4_1": Format(20, 32, 4, (0, 2), _q4_1),
    "q8_0": Format(34, 32, 8, (0,), _q8_0),
    "q4_k": Format(144, 256, 4, (0, 2), _q4_k),
    "q5_k": Format(176, 256, 5, (0, 2), _q5_k),
    "q6_k": Format(210, 256, 6, (208,), _q6_k),
}
