"""A model's weight files as one set of named tensors, whatever their format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _native
from .errors import WeightError
from .gguf import gguf_row_permutation, gguf_tensor_name
from .hub import ModelFiles

# safetensors and GGUF spellings -> our dtypes; the rest are quantized formats, by their own name.
DENSE = {"F32": "f32", "F16": "f16", "BF16": "bf16"}


@dataclass(frozen=True)
class Stored:
    """One tensor of a file.

    Attributes:
        name: As the checkpoint spells it; for GGUF files, as Hugging Face does.
        type: "f32", "f16", "bf16", else the file's own name of a format, such as "Q4_1".
        order: Which stored row is row i, where the file keeps rows in another order.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    mapping: Any  # butter._native.Mapping
    offset: int
    nbytes: int
    order: Sequence[int] | None = None

    @property
    def is_dense(self) -> bool:
        return self.type in DENSE.values()

    def bytes(self):
        """The stored bytes, as a numpy view of the file's pages."""
        return self.mapping.view(self.offset, self.nbytes)

    def release(self) -> None:
        """Drop the pages from memory; what was made of them lies elsewhere."""
        self.mapping.release(self.offset, self.nbytes)


class Checkpoint:
    """All tensors of a model's files, by name. Maps the files, reads none of their data."""

    def __init__(self, files: ModelFiles, config: Mapping, gguf: tuple | None = None):
        self.source = files.source
        self.tensors: dict[str, Stored] = {}
        if files.kind == "gguf":
            self._add_gguf(gguf or _native.read_gguf(files.path), config)
        else:
            for path in files.weights:
                self._add_safetensors(path)

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for t in self.tensors.values())

    def _add_safetensors(self, path) -> None:
        mapping, tensors, _ = _native.read_safetensors(path)
        for name, (dtype, shape, offset, nbytes) in tensors.items():
            if name in self.tensors:
                raise WeightError(f"[weights] {name}: got it in two files, {path.name} is one")
            kind = DENSE.get(dtype, dtype)
            self.tensors[name] = Stored(name, kind, tuple(shape), mapping, offset, nbytes)

    def _add_gguf(self, gguf: tuple, config: Mapping) -> None:
        mapping, tensors, _ = gguf
        for gguf_name, (kind, shape, offset, nbytes) in tensors.items():
            name = gguf_tensor_name(gguf_name)
            if name is None:
                continue
            order = gguf_row_permutation(gguf_name, config)
            self.tensors[name] = Stored(
                name, DENSE.get(kind, kind), tuple(shape), mapping, offset, nbytes, order
            )
