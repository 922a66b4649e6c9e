"""safetensors files, written piece by piece so that no whole tensor is in memory."""

import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..shards import INDEX, SINGLE

ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2, "U32": 4}


@dataclass(frozen=True)
class Spec:
    """One tensor of a file."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Unit:
    """Tensors that belong together, and their bytes in order."""

    specs: tuple[Spec, ...]
    pieces: Callable[[], Iterable[np.ndarray]]

    @property
    def nbytes(self) -> int:
        return sum(spec.nbytes for spec in self.specs)


def write_checkpoint(
    folder: Path, units: list[Unit], shard_bytes: int, progress: Callable[[int], None]
) -> list[str]:
    """Write all units, an index where they need several files; returns the files' names.

    Args:
        folder: An empty folder.
        units: What to write, in this order.
        shard_bytes: Most bytes of tensors per file; one unit may have more.
        progress: Called with the bytes written so far.
    """
    shards = split(units, shard_bytes)
    count = len(shards)
    names = [SINGLE]
    if count > 1:
        names = [f"model-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]
    done = 0
    for name, shard in zip(names, shards, strict=True):
        with open(folder / name, "wb") as file:
            write_header(file, [spec for unit in shard for spec in unit.specs])
            for unit in shard:
                write_unit(file, unit)
                done += unit.nbytes
                progress(done)
    if count > 1:
        where = {spec.name: name for name, shard in zip(names, shards, strict=True)
                 for unit in shard for spec in unit.specs}  # fmt: skip
        index = {"metadata": {"total_size": done}, "weight_map": where}
        (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    return names


def split(units: list[Unit], shard_bytes: int) -> list[list[Unit]]:
    shards: list[list[Unit]] = [[]]
    size = 0
    for unit in units:
        if shards[-1] and size + unit.nbytes > shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(unit)
        size += unit.nbytes
    return shards


def write_header(file: BinaryIO, specs: list[Spec]) -> None:
    header: dict = {"__metadata__": {"format": "mlx"}}
    offset = 0
    for spec in specs:
        end = offset + spec.nbytes
        header[spec.name] = {
            "dtype": spec.dtype, "shape": list(spec.shape), "data_offsets": [offset, end],
        }  # fmt: skip
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)


def write_unit(file: BinaryIO, unit: Unit) -> None:
    start = file.tell()
    for piece in unit.pieces():
        file.write(np.ascontiguousarray(piece).data)
    if file.tell() - start != unit.nbytes:
        raise AssertionError(f"{unit.specs[0].name}: {file.tell() - start} of {unit.nbytes} bytes")
