"""The tile layout of quantized matrices (kernels/packing.py) in numpy, for any warp width."""

from dataclasses import dataclass

import numpy as np

from .rand import integers, normal, poisoned


def tiled(rows: np.ndarray, warp: int, padding: np.ndarray) -> np.ndarray:
    """[n, groups, …] to [tiles, groups, …, warp]; `padding` fills the rows beyond n."""
    tiles = -(-len(rows) // warp)
    whole = np.empty((tiles * warp, *rows.shape[1:]), rows.dtype)
    whole[: len(rows)], whole[len(rows) :] = rows, padding
    return np.ascontiguousarray(np.moveaxis(whole.reshape(tiles, warp, *rows.shape[1:]), 1, -1))


def untiled(tiles: np.ndarray) -> np.ndarray:
    """[tiles, groups, …, warp] to [tiles * warp, groups, …]."""
    rows = np.moveaxis(tiles, -1, 1)
    return rows.reshape(-1, *rows.shape[2:])


# Of each width, the planes it is stored in: (lowest bit, bits).
PLANES = {2: [(0, 2)], 3: [(0, 2), (2, 1)], 4: [(0, 4)], 5: [(0, 4), (4, 1)], 6: [(0, 4), (4, 2)],
          8: [(0, 8)]}  # fmt: skip


def pack_codes(codes: np.ndarray, bits: int) -> np.ndarray:
    """[…, G] codes to […, G * bits // 32] words."""
    planes = []
    for low, width in PLANES[bits]:
        field = codes.astype(np.uint8) >> low & (2**width - 1)
        parts = np.split(field, 8 // width, axis=-1)  # stored side by side in the bytes
        planes.append(sum(p << (i * width) for i, p in enumerate(parts)).astype(np.uint8))
    bytes_ = np.concatenate(planes, axis=-1)
    return np.ascontiguousarray(bytes_).view("<u4").astype(np.uint32)


def unpack_codes(words: np.ndarray, bits: int) -> np.ndarray:
    """The inverse of pack_codes."""
    bytes_ = np.ascontiguousarray(words.astype("<u4")).view(np.uint8)
    size = bytes_.shape[-1] * 8 // bits
    codes, start = np.zeros((*bytes_.shape[:-1], size), np.uint8), 0
    for low, width in PLANES[bits]:
        count = size * width // 8
        stored = bytes_[..., start : start + count]
        parts = [stored >> (i * width) & (2**width - 1) for i in range(8 // width)]
        codes |= np.concatenate(parts, axis=-1).astype(np.uint8) << low
        start += count
    return codes


@dataclass(frozen=True)
class Matrix:
    """[n, k] as codes [n, k // G, G], scales and biases [n, k // G]; no biases: symmetric."""

    codes: np.ndarray
    scales: np.ndarray
    biases: np.ndarray | None
    bits: int

    @property
    def dims(self) -> dict[str, int]:
        n, groups, size = self.codes.shape
        return {"n": n, "k": groups * size}

    @property
    def statics(self) -> dict[str, int]:
        return {"bits": self.bits, "G": self.codes.shape[2], "SYM": int(self.biases is None)}

    def values(self) -> np.ndarray:
        """[n, k] in float64."""
        codes, scales = self.codes.astype(np.float64), self.scales.astype(np.float64)[..., None]
        if self.biases is None:
            wide = (codes - 2 ** (self.bits - 1)) * scales
        else:
            wide = codes * scales + self.biases.astype(np.float64)[..., None]
        return wide.reshape(len(wide), -1)

    def tensors(self, warp: int) -> dict[str, np.ndarray]:
        """What kernels take, poison beyond n; a symmetric matrix binds its scales twice."""
        nan = poisoned((), "f16")
        words = tiled(pack_codes(self.codes, self.bits), warp, poisoned((), "u32"))
        scales = tiled(self.scales, warp, nan)
        biases = scales if self.biases is None else tiled(self.biases, warp, nan)
        return {"codes": words, "scales": scales, "biases": biases}


def random_matrix(n: int, groups: int, statics: dict[str, int], seed: int = 0) -> Matrix:
    """Any codes; values of about unit size."""
    bits, size = statics["bits"], statics["G"]
    codes = integers((n, groups, size), 0, 2**bits, "u8", seed)
    scales = normal((n, groups), "f16", seed, scale=2.0 ** (1 - bits))
    biases = None if statics["SYM"] else normal((n, groups), "f16", seed + 1)
    return Matrix(codes, scales, biases, bits)


@dataclass(frozen=True)
class Int8Rows:
    """Activations [rows, k] as kernels quantize them: codes with one scale per block."""

    codes: np.ndarray  # i8 [rows, k]
    scales: np.ndarray  # f32 [rows, k // block]

    def values(self) -> np.ndarray:
        block = self.codes.shape[1] // self.scales.shape[1]
        return self.codes * np.repeat(self.scales.astype(np.float64), block, axis=1)

    def tensors(self) -> dict[str, np.ndarray]:
        sums = self.codes.reshape(*self.scales.shape, -1).sum(axis=-1, dtype=np.int64)
        moments = (self.scales * sums).astype(np.float32)
        return {"xq": self.codes.view(np.uint32), "qs": self.scales, "qm": moments}


def random_int8_rows(rows: int, k: int, group: int, seed: int = 0) -> Int8Rows:
    """Blocks as they belong to groups of `group` weights; values of about unit size."""
    blocks = k // min(group, 32)
    scales = np.abs(normal((rows, blocks), "f32", seed, scale=1 / 64))
    return Int8Rows(integers((rows, k), -127, 128, "i8", seed), scales)


def bit_stream(codes: np.ndarray, bits: int) -> np.ndarray:
    """[n, k] codes one after the other from the low bits of the first word: MLX's packing."""
    wide = codes[..., None] >> np.arange(bits, dtype=np.uint32) & 1
    flat = np.packbits(wide.reshape(len(codes), -1).astype(np.uint8), axis=-1, bitorder="little")
    return np.ascontiguousarray(flat).view("<u4").astype(np.uint32)
