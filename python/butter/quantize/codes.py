"""Codes as MLX packs them, and back out of the tile layout of kernels/packing.py."""

import numpy as np

from ..matrix import QuantizedMatrix

# Of each width, the planes it is stored in: (lowest bit, bits).
PLANES = {
    2: ((0, 2),), 3: ((0, 2), (2, 1)), 4: ((0, 4),), 5: ((0, 4), (4, 1)), 6: ((0, 4), (4, 2)),
    8: ((0, 8),),
}  # fmt: skip


def pack_columns(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes [G, N] of any type to words [N, G * bits // 32], in order from the low bits."""
    size, count = codes.shape
    words = np.zeros((size * bits // 32, count), np.uint32)
    for i, row in enumerate(codes.astype(np.uint32)):
        at, shift = divmod(i * bits, 32)
        words[at] |= row << np.uint32(shift)
        if shift + bits > 32:
            words[at + 1] |= row >> np.uint32(32 - shift)
    return np.ascontiguousarray(words.T)


def read_matrix(matrix: QuantizedMatrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A loaded matrix as codes u8 [n, k // G, G], scales and biases f16 [n, k // G]."""
    n, form = matrix.shape[0], matrix.format
    words, scales = untiled(matrix.codes)[:n], untiled(matrix.scales)[:n]
    if matrix.biases is not None:
        biases = untiled(matrix.biases)[:n]
    else:
        biases = scales * np.float16(-(2 ** (form.bits - 1)))
    packed = np.ascontiguousarray(words, "<u4").view(np.uint8)
    codes = np.zeros((*packed.shape[:2], form.group), np.uint8)
    start = 0
    for low, width in PLANES[form.bits]:
        parts, count = 8 // width, form.group * width // 8
        plane = packed[..., start : start + count]
        for i in range(parts):
            field = plane >> np.uint8(i * width) & np.uint8(2**width - 1)
            codes[..., i * count : (i + 1) * count] |= field << np.uint8(low)
        start += count
    return codes, scales, biases


def untiled(array) -> np.ndarray:
    """[tiles, groups, …, WARP] to [tiles * WARP, groups, …]."""
    rows = np.moveaxis(array.numpy(), -1, 1)
    return rows.reshape(-1, *rows.shape[2:])
