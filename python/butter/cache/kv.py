"""Keys and values of every position, and the rotary tables that go with them."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from .._native import rope_tables
from ..array import DTYPE_BYTES, Array, empty
from ..errors import ConfigError
from ..rope import MAX_TABLE, rope_inv_freq

PAGE = 64  # capacity is a multiple of it, as the attention kernels need


class RopeTables:
    """cos and sin [capacity, half] in f32, as the model's rotary scaling makes them.

    Rows are filled as positions are needed: all of 128 Ki positions are 32 MiB, and 0.2 s.
    """

    # Kinds whose frequencies depend on the length of the text.
    BY_LENGTH = ("dynamic", "longrope")
    BLOCK = 1024  # positions that are filled together

    def __init__(self, device, config: Mapping, capacity: int):
        self._config = config
        self.capacity = capacity
        self.depends_on_length = config["rope_parameters"]["rope_type"] in self.BY_LENGTH
        shape = (capacity, len(rope_inv_freq(config)[0]))
        if not 0 < capacity <= MAX_TABLE // max(shape[1], 1):
            raise ConfigError(
                f"[rope] capacity: got {capacity} positions, need 1 to {MAX_TABLE // shape[1]}"
            )
        self.cos = empty(device, shape, "f32", sparse=True)
        self.sin = empty(device, shape, "f32", sparse=True)
        self._length: int | None = None
        self._filled = 0
        self._lock = threading.Lock()  # sequences share the tables

    def fit(self, length: int) -> None:
        """Set the frequencies for a pass that ends at this length; the device must be idle."""
        if self.depends_on_length and length != self._length:
            self._length, self._filled = length, 0

    def reach(self, length: int) -> None:
        """Make sure that all positions below this one, or below the capacity, have their angles."""
        with self._lock:
            if length <= self._filled:
                return
            end = min(self.capacity, -(-length // self.BLOCK) * self.BLOCK)
            inv_freq, factor = rope_inv_freq(self._config, self._length)
            rope_tables(inv_freq, factor, self._filled, end, self.cos.buffer, self.sin.buffer)
            self._filled = end


@dataclass(frozen=True)
class KVCache:
    """One layer's cache. Keys lie interleaved by WARP, so that attention reads one key per lane."""

    keys: Array  # [Hkv, P // WARP, D, WARP]
    values: Array  # [Hkv, P, D]
    rope: RopeTables

    @classmethod
    def allocate(
        cls, device, *, heads: int, head_dim: int, rope: RopeTables, dtype: str
    ) -> "KVCache":
        """Room for `rope.capacity` positions. Pages are taken from the system when first used."""
        capacity, warp = rope.capacity, device.warp
        keys = (heads, capacity // warp, head_dim, warp)
        values = (heads, capacity, head_dim)
        return cls(
            empty(device, keys, dtype, sparse=True), empty(device, values, dtype, sparse=True), rope
        )


def round_up(positions: int) -> int:
    """The capacity that holds so many positions."""
    return -(-positions // PAGE) * PAGE


def bytes_per_position(*, layers: int, heads: int, head_dim: int, dtype: str) -> int:
    return layers * heads * head_dim * 2 * DTYPE_BYTES[dtype]
