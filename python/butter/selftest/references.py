"""What every kernel computes for its test inputs, as Iron's interpreter found at build time.

selftest.npz lies beside the extension. Per kernel instance it has the dims of the test, and of each
output its values in plain form; of integers, which have to be equal, only a checksum. What is
changed in place is kept as bits that differ from the input, most of which are zero.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..errors import KernelError
from ..manifest import Kernel, Param
from .inputs import NUMPY

FILE = "selftest.npz"


@dataclass(frozen=True)
class Case:
    """The test of one kernel instance, or in `missing` why it has none."""

    dims: Mapping[str, int]
    outputs: Mapping[str, np.ndarray | int]  # an int is a checksum; inout as a difference
    token: int | None  # what it leaves in step.out_token
    on_cpu: bool = True  # or on GPUs only
    missing: str = ""


def is_exact(param: Param) -> bool:
    """Integers are equal everywhere, but int8 codes are rounded floats."""
    return np.issubdtype(NUMPY[param.dtype], np.integer) and param.dtype not in ("i8", "bf16")


def checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The bits in which two arrays differ; of that and one of them, the other."""
    kind = f"u{a.itemsize}"
    return (a.reshape(-1).view(kind) ^ b.reshape(-1).view(kind)).view(a.dtype)


def read(path: Path | None = None) -> dict[str, Case]:
    """Cases by symbol; raises KernelError if the file is missing or broken."""
    path = path or default_path()
    try:
        cases, data = load(path)
        return {symbol: _case(fields, data) for symbol, fields in cases.items()}
    except (OSError, ValueError, KeyError, TypeError, zlib.error, BadZipFile) as error:
        raise KernelError(
            f"[selftest] the references in {path} cannot be read: {error}. Install butter again."
        ) from None


def default_path() -> Path:
    from .. import _native

    return Path(_native.__file__).with_name(FILE)


def load(path: Path) -> tuple[dict[str, Any], bytes]:
    """The cases as they stand in the file, and the bytes of all values."""
    with np.load(path, allow_pickle=False) as file:
        return json.loads(file["cases"].tobytes()), file["values"].tobytes()


def _case(fields: dict[str, Any], data: bytes) -> Case:
    outputs: dict[str, np.ndarray | int] = {}
    for name, kept in fields["outputs"].items():
        if isinstance(kept, int):
            outputs[name] = kept
        else:
            dtype, count, offset = kept
            outputs[name] = np.frombuffer(data, NUMPY[dtype], count, offset)
    return Case(fields["dims"], outputs, fields["token"], fields["cpu"], fields["missing"])


class Writer:
    """Collects cases and writes the file; for the build."""

    def __init__(self) -> None:
        self._cases: dict[str, Any] = {}
        self._data = bytearray()

    def add(self, kernel: Kernel, case: Case, key: int) -> None:
        """`key` tells this test from one of other inputs or of another kernel."""
        outputs: dict[str, Any] = {}
        for param in kernel.params:
            if (array := case.outputs.get(param.name)) is None:
                continue
            if isinstance(array, int):
                outputs[param.name] = array
                continue
            self._data.extend(b"\0" * (-len(self._data) % 4))
            outputs[param.name] = [param.dtype, array.size, len(self._data)]
            self._data.extend(array.tobytes())
        self._cases[kernel.symbol] = {
            "key": key, "dims": dict(case.dims), "outputs": outputs, "token": case.token,
            "cpu": case.on_cpu, "missing": case.missing,
        }  # fmt: skip

    def write(self, path: Path) -> None:
        text = json.dumps(self._cases, separators=(",", ":")).encode()
        with path.open("wb") as file:
            np.savez_compressed(
                file, cases=np.frombuffer(text, np.uint8),
                values=np.frombuffer(bytes(self._data), np.uint8),
            )  # fmt: skip


class Known:
    """The cases of an earlier build, by key; none where there is no such file."""

    def __init__(self, path: Path):
        try:
            cases, data = load(path)
            self._cases = {s: (f["key"], _case(f, data)) for s, f in cases.items()}
        except Exception:  # a file of another form only costs the time to make it again
            self._cases = {}

    def get(self, symbol: str, key: int) -> Case | None:
        found = self._cases.get(symbol)
        return found[1] if found and found[0] == key else None
