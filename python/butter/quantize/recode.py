"""A matrix in whatever form it is stored, quantized while it is loaded."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from ..affine import affine_format
from ..array import Arena, empty
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
        self.release(stored)

    def release(self, stored: Stored) -> None:
        if isinstance(self.source, QuantizedMatrix):
            self.source.release(stored)
        else:
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
        """All rows, quantized, in order.

        On one thread: two of them took as long on two cores (ad hoc, 64 Ki weights at a time).
        """
        (n, k), form = self.shape, self.format
        count = block_rows(k)
        for first in range(0, n, count):
            values = read_rows(self.source, device, stored, first, min(count, n - first))
            release_rows(stored, first, len(values))
            check_weights(self.name, values, first * k)
            yield encode_rows(values, first, form.bits, form.group)


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
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused below
        values *= scales[..., None]
        values += biases[..., None]
    return values.reshape(count, -1)


def dense_rows(stored: Stored, first: int, count: int) -> np.ndarray:
    raw = raw_rows(stored, first, count)
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}[stored.type]
    return to_f32(np.frombuffer(raw.tobytes(), dtype).reshape(count, -1), stored.type)


def to_f32(values: np.ndarray, dtype: str) -> np.ndarray:
    """Stored values, bf16 as its bits in u16; exact."""
    if dtype == "bf16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


def raw_rows(stored: Stored, first: int, count: int) -> np.ndarray:
    """The bytes [count, …] of some rows of a dense tensor."""
    rows = stored.bytes().reshape(stored.shape[0], -1)
    where = slice(first, first + count)
    return rows[where if stored.order is None else list(stored.order[where])]


def release_rows(stored: Stored, first: int, count: int) -> None:
    """Drop the pages of rows that nobody reads again, where they lie together."""
    if stored.order is None:
        size = stored.nbytes // stored.shape[0]
        stored.mapping.release(stored.offset + first * size, count * size)


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
