"""A matrix in whatever form it is stored, quantized while it is loaded."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..affine import affine_format
from ..array import Arena, empty, to_f32
from ..checkpoint import Stored
from ..errors import WeightError
from ..matrix import DenseMatrix, Matrix, QuantizedMatrix, run_kernel
from .codes import pack_columns, read_matrix
from .fit import fit_groups

BLOCK = 1 << 16  # weights at a time: the arrays of one search fit a core's cache
ROWS = 32  # a block is whole tiles on every device
LARGEST = float(np.finfo(np.float16).max)


class Scratch(Arena):
    """Memory that goes with the arrays in it."""

    CHUNK_BYTES = 0


@dataclass(frozen=True)
class Rows:
    """Some rows of a matrix, as a checkpoint stores them.

    Attributes:
        first: Which row the first one is.
        words: u32 [rows, k * bits // 32].
        scales: f16 [rows, k // group]; `biases` likewise.
    """

    first: int
    words: np.ndarray
    scales: np.ndarray
    biases: np.ndarray


class RecodedMatrix(QuantizedMatrix):
    """Affine codes made from the weights of another form."""

    def __init__(self, source: Matrix, bits: int, group: int):
        super().__init__(source.name, source.shape, affine_format(bits, group))
        self.source = source

    def load(self, arena: Arena, stored: Stored) -> None:
        self._allocate(arena)
        for rows in self.blocks(arena.device, stored):
            self._place(arena.device, rows)
        stored.release()

    def _place(self, device, rows: Rows) -> None:
        """Repack a block into its tiles."""
        (_, k), form, n = self.shape, self.format, len(rows.words)
        given = [(rows.words, "u32"), (rows.scales, "f16"), (rows.biases, "f16")]
        ranges = []
        for values, dtype in given:
            array = empty(device, values.shape, dtype)
            array.write(values)
            ranges.append(array.range)
        tile, tiles = rows.first // device.warp, -(-n // device.warp)
        for whole in (self.codes, self.scales, self.biases):
            assert whole is not None
            size = whole.nbytes // whole.shape[0]
            ranges.append((whole.buffer, whole.offset + tile * size, tiles * size))
        statics = {"bits": form.bits, "G": form.group}
        types = {"scale": "f16", "bias": "f16"}
        run_kernel(device, form.kernel, ranges, {"n": n, "k": k}, types, statics)

    def blocks(self, device, stored: Stored) -> Iterator[Rows]:
        """All rows, quantized, in order; as many threads work as the device has."""
        (n, k), form = self.shape, self.format
        count = block_rows(k)

        def work(first: int) -> Rows:
            values = read_rows(self.source, device, stored, first, min(count, n - first))
            check_weights(self.name, values, first * k)
            return encode_rows(values, first, form.bits, form.group)

        return in_order(work, range(0, n, count), workers(device))


def stored_rows(source: QuantizedMatrix, device, stored: Stored) -> Iterator[Rows]:
    """All rows of a matrix that is quantized already, in the form of checkpoints."""
    (n, k), form = source.shape, source.format
    count = block_rows(k)
    for first in range(0, n, count):
        codes, scales, biases = part(source, device, stored, first, min(count, n - first))
        columns = np.ascontiguousarray(codes.reshape(-1, form.group).T)
        words = pack_columns(columns, form.bits).reshape(len(codes), -1)
        yield Rows(first, words, scales, biases)


def encode_rows(values: np.ndarray, first: int, bits: int, group: int) -> Rows:
    """Quantize f32 [rows, k]."""
    n, k = values.shape
    columns = np.ascontiguousarray(values.reshape(-1, group).T)
    codes, scales, biases = fit_groups(columns, bits)
    words = pack_columns(codes, bits).reshape(n, -1)
    return Rows(first, words, scales.reshape(n, -1), biases.reshape(n, -1))


def read_rows(source: Matrix, device, stored: Stored, first: int, count: int) -> np.ndarray:
    """The weights f32 [count, k] of some rows."""
    if isinstance(source, DenseMatrix):
        return dense_rows(stored, first, count)
    codes, scales, biases = part(source, device, stored, first, count)
    values = codes.astype(np.float32)
    values *= scales[..., None]
    values += biases[..., None]
    return values.reshape(count, -1)


def dense_rows(stored: Stored, first: int, count: int) -> np.ndarray:
    raw = raw_rows(stored, first, count)
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}[stored.type]
    return to_f32(np.frombuffer(raw.tobytes(), dtype).reshape(count, -1), stored.type)


def raw_rows(stored: Stored, first: int, count: int) -> np.ndarray:
    """The bytes [count, …] of some rows of a dense tensor."""
    rows = stored.bytes().reshape(stored.shape[0], -1)
    where = slice(first, first + count)
    return rows[where if stored.order is None else stored.order[where]]


def part(source: QuantizedMatrix, device, stored: Stored, first: int, count: int):
    """Codes, scales and biases of some rows."""
    matrix = copy(source)
    matrix.shape = (count, source.shape[1])
    matrix.load_rows(Scratch(device), stored, first)
    return read_matrix(matrix)


def check_weights(name: str, values: np.ndarray, at: int) -> None:
    """Raise WeightError for what no code can stand for; `at` weights come before these."""
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():
        bad = at + int(np.argmin(np.isfinite(values)))
        raise WeightError(
            f"[weights] {name}: value {bad} is infinite or not a number. "
            "The file is damaged; download it again."
        )
    if max(-low, high) > LARGEST:
        raise WeightError(
            f"[weights] {name}: got a weight of {max(-low, high):.3g}, need at most {LARGEST:g} "
            "to quantize it, since scales and biases are f16. Load it without quantize."
        )


def block_rows(k: int) -> int:
    return max(ROWS, BLOCK // k // ROWS * ROWS)


def workers(device) -> int:
    return device.threads if device.info["kind"] == "cpu" else os.cpu_count() or 1


def in_order(work: Callable, items, count: int) -> Iterator[Any]:
    """work(item) of all items, in order, from `count` threads that run little ahead."""
    pending: deque = deque()
    with ThreadPoolExecutor(count, "butter-quantize") as pool:
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) > count:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
