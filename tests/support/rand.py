"""Random test inputs whose bytes are the same with each numpy version and on each platform.

A counter-based generator in exact integer arithmetic: numpy may change its own streams between
releases, and log or cos differ in the last bit between platforms. The recorded reference logits
depend on these bytes.
"""

import zlib

import numpy as np


class _Dtypes(dict):
    """bf16 needs a package of its own, so only what uses it imports that."""

    def __missing__(self, name: str) -> np.dtype:
        if name != "bf16":
            raise KeyError(name)
        import ml_dtypes

        self[name] = np.dtype(ml_dtypes.bfloat16)
        return self[name]


DTYPES = _Dtypes(
    {
        "f64": np.dtype(np.float64),
        "f32": np.dtype(np.float32),
        "f16": np.dtype(np.float16),
        "i32": np.dtype(np.int32),
        "u32": np.dtype(np.uint32),
        "u16": np.dtype(np.uint16),
        "i8": np.dtype(np.int8),
        "u8": np.dtype(np.uint8),
    }
)

# Quiet NaNs with a payload; integers get a value that is out of range for any index.
_POISON = {"f64": 0x7FF8DEADDEADDEAD, "f32": 0x7FC0DEAD, "f16": 0x7EAD, "bf16": 0x7FED}


def words(count: int, seed: int) -> np.ndarray:
    """`count` uniform 64-bit words: splitmix64 of a counter."""
    start = np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _stream(shape: tuple[int, ...], seed: int) -> int:
    """Mixes the shape in, so that x[3, n] and w[n] of one seed are unrelated."""
    return zlib.crc32(repr((shape, seed)).encode()) << 20


def _float64(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Nearly normal, mean 0, variance 1, within 4.9: the sum of eight 16-bit uniforms."""
    count = int(np.prod(shape, dtype=np.int64))
    parts = words(2 * count, _stream(shape, seed)).view("<u2").reshape(count, 8)
    centered = parts.astype(np.int64).sum(axis=1) - 4 * 65535
    return (centered * (1.5**0.5 / 65536)).reshape(shape)


def normal(shape: tuple[int, ...], dtype: str = "f32", seed: int = 0, scale: float = 1.0):
    """Bell-shaped values of deviation `scale`; equal arguments give equal bytes everywhere."""
    return (_float64(tuple(shape), seed) * scale).astype(DTYPES[dtype])


def integers(shape: tuple[int, ...], low: int, high: int, dtype: str = "i32", seed: int = 0):
    """Uniform integers of [low, high)."""
    shape = tuple(shape)
    count = int(np.prod(shape, dtype=np.int64))
    drawn = words(count, _stream(shape, seed)) % np.uint64(high - low)
    return (drawn.astype(np.int64) + low).astype(DTYPES[dtype]).reshape(shape)


def poisoned(shape: tuple[int, ...], dtype: str = "f32") -> np.ndarray:
    """An output buffer in which each element that a kernel forgets to write shows."""
    kind = DTYPES[dtype]
    bits = np.dtype(f"<u{kind.itemsize}")
    pattern = _POISON.get(dtype, int.from_bytes(b"\xad" * kind.itemsize, "little"))
    return np.full(tuple(shape), pattern, bits).view(kind)
