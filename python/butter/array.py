"""Device memory with a shape: weights, caches and other state that outlives a program."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import ShapeError

if TYPE_CHECKING:
    import numpy as np

    from ._native import Buffer

DTYPE_BYTES = {
    "f32": 4, "f16": 2, "bf16": 2, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Array:
    """A range of a device buffer."""

    buffer: "Buffer"
    shape: tuple[int, ...]
    dtype: str
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]

    @property
    def range(self) -> tuple["Buffer", int, int]:
        """(buffer, offset, nbytes), as native code takes it."""
        return self.buffer, self.offset, self.nbytes

    def numpy(self) -> "np.ndarray":
        """A view of the memory; bf16 as its bits in u16."""
        return self.buffer.array(self.dtype, self.shape, self.offset)

    def write(self, values: Any) -> None:
        """Copy values of the array's dtype, or their bytes, into all of it.

        Args:
            values: What gives its memory to others: bytes, array.array or a numpy array.
        """
        data = memoryview(values)
        if data.nbytes != self.nbytes:
            raise ShapeError(f"[array] write: got {data.nbytes} bytes, need {self.nbytes}")
        self.buffer.write(data if data.c_contiguous else data.tobytes(), self.offset)


def empty(device, shape: tuple[int, ...], dtype: str, *, sparse: bool = False) -> Array:
    """Zeroed memory; sparse if it fills up slowly, so that no page is taken before its use."""
    nbytes = math.prod(shape) * DTYPE_BYTES[dtype]
    return Array(device.allocate(nbytes, sparse), tuple(shape), dtype)


class Arena:
    """Hands out weights from few large allocations, which the system can back with huge pages.

    A token reads every weight once, so with pages of 4 KiB it also translates every address once.

    Args:
        device: Where the memory is.
        expected: Bytes that all arrays will take together, as `space` counts them: so the last
            allocation has no unused end. None makes each as large as is usual.
    """

    CHUNK_BYTES = 64 << 20
    ALIGN = 64

    def __init__(self, device, expected: int | None = None):
        self.device = device
        self._buffer: Buffer | None = None
        self._used = self._size = 0
        self._left: float = math.inf if expected is None else expected

    def empty(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Zeroed memory that lives as long as the whole chunk."""
        nbytes = math.prod(shape) * DTYPE_BYTES[dtype]
        if self._buffer is None or self._used + nbytes > self._size:
            self._size = int(max(min(self.CHUNK_BYTES, self._left), nbytes))
            self._buffer, self._used = self.device.allocate(self._size), 0
        array = Array(self._buffer, tuple(shape), dtype, self._used)
        self._used += self.space(shape, dtype)
        self._left -= self.space(shape, dtype)
        return array

    @classmethod
    def space(cls, shape: tuple[int, ...], dtype: str) -> int:
        """Bytes that an array takes, with what aligns the next one."""
        return -(-math.prod(shape) * DTYPE_BYTES[dtype] // cls.ALIGN) * cls.ALIGN
