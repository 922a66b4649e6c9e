"""Binds a checkpoint's names to what a family's layers ask for, and loads it all once."""

import re
from array import array
from collections.abc import Callable, Iterable
from typing import Any

from ._native import read_floats, trim_heap
from .affine import Quantization, affine_matrix
from .array import Arena, Array
from .checkpoint import Checkpoint, Stored
from .errors import WeightError
from .matrix import DenseMatrix, Matrix, check_finite, matrix
from .quantize.plan import Plan

Progress = Callable[[int, int], None]
SHOWN = 8


class Vector:
    """A norm weight or a bias in f32, which activations are."""

    def __init__(self, name: str, shape: tuple[int, ...]):
        self.name, self.shape = name, shape
        self.array: Array | None = None

    def arrays(self, warp: int) -> list[tuple[tuple[int, ...], str]]:
        """Shape and dtype of what loading it takes from an arena."""
        return [(self.shape, "f32")]

    def load(self, arena: Arena, stored: Stored) -> None:
        self.array = arena.empty(*self.arrays(arena.device.warp)[0])
        buffer, offset, nbytes = self.array.range
        read_floats(stored.mapping, stored.offset, stored.nbytes, stored.type, buffer, offset)
        if stored.order is not None:
            values = memoryview(buffer.read(offset, nbytes)).cast("f")
            self.array.write(array("f", [values[i] for i in stored.order]))

    def check_finite(self) -> None:
        check_finite(self.name, self.array)


class WeightLoader:
    """Collects what the layers want, reports all that is wrong at once, then loads."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        quantization: Quantization | None = None,
        plan: Plan | None = None,
    ):
        self.checkpoint = checkpoint
        self.plan = plan
        self.quantization = quantization or Quantization()
        self.wanted: dict[str, Matrix | Vector] = {}
        self._asked: set[str] = set()
        self._problems: list[str] = []
        self._missing: list[str] = []

    def want(self, name: str, shape: tuple[int, ...] | None, make: Callable[[Stored], Any]) -> Any:
        """Ask for a tensor; what is wrong with it is kept for `check`."""
        if name in self.wanted:
            return self.wanted[name]
        self._asked.add(name)
        stored = self.checkpoint.tensors.get(name)
        if stored is None:
            self._missing.append(name)
            return None
        if shape is not None and stored.shape != shape:
            self._problems.append(f"{name}: got shape {stored.shape}, need {shape}")
            return None
        try:
            self.wanted[name] = make(stored)
        except WeightError as error:
            self._problems.append(f"{name}: {error}")
            return None
        return self.wanted[name]

    def matrix(self, name: str, shape: tuple[int, int]) -> Matrix:
        """Ask for a matrix in whatever form it is stored, or as the plan wants it."""
        path = name.removesuffix(".weight")
        setting = self.quantization.of(path)
        stored = self.checkpoint.tensors.get(name)
        if stored is None or stored.type != "U32":
            return self.want(name, shape, lambda stored: self._planned(matrix(stored, shape)))
        names = (f"{path}.scales", f"{path}.biases")
        self._asked.update(names)
        scales, biases = (self.checkpoint.tensors.get(n) for n in names)
        return self.want(
            name,
            None,
            lambda stored: self._planned(affine_matrix(stored, shape, setting, scales, biases)),
        )

    def _planned(self, source: Matrix) -> Matrix:
        return self.plan.of(source) if self.plan else source

    def ignore(self, name: str) -> None:
        """A tensor that some checkpoints hold and this model has no use for."""
        self._asked.add(name)

    def check(self, ignored: Iterable[str] = ()) -> None:
        """Raise WeightError that lists all missing, surplus and wrong tensors.

        Names that a pattern of `ignored` is found in may be surplus.
        """
        skip = [re.compile(p) for p in ignored]
        surplus = [
            name
            for name in self.checkpoint.tensors
            if name not in self._asked and not any(p.search(name) for p in skip)
        ]
        parts = []
        if self._missing:
            parts.append(f"{len(self._missing)} missing: {_some(self._missing)}")
        if self._problems:
            parts.append(f"{len(self._problems)} wrong: {_some(self._problems, '; ')}")
        if surplus:
            parts.append(f"{len(surplus)} that the model does not use: {_some(surplus)}")
        if unused := self.quantization.unused:
            parts.append(f"{len(unused)} quantization overrides for no matrix: {_some(unused)}")
        if parts:
            raise WeightError(
                f"[weights] {self.checkpoint.source}: {'. '.join(parts)}. "
                "The checkpoint does not match its config."
            )

    def load(self, device, *, scan: bool = True, progress: Progress | None = None) -> None:
        """Bring everything onto the device, in the order of the files.

        Args:
            device: Where to.
            scan: Also look for values that are not finite in dense matrices, which reads them all;
                norms, biases and the scales of quantized matrices are always looked at.
            progress: Called with (bytes so far, bytes in all).
        """
        stored = self.checkpoint.tensors
        order = sorted(self.wanted, key=lambda n: (stored[n].mapping.path, stored[n].offset))
        self._release_read()
        arena = Arena(device, self._arena_bytes(device.warp))
        total, done = sum(stored[n].nbytes for n in order), 0
        for name in order:
            part = self.wanted[name]
            part.load(arena, stored[name])
            if scan or not (stored[name].is_dense and isinstance(part.shape, tuple)
                            and len(part.shape) == 2):  # fmt: skip
                part.check_finite()
            done += stored[name].nbytes
            if progress:
                progress(done, total)
        self._release_read()

    def _arena_bytes(self, warp: int) -> int:
        wanted = self.wanted.values()
        return sum(Arena.space(*array) for part in wanted for array in part.arrays(warp))

    def _release_read(self) -> None:
        """Give back what reading has left: pages of the files, and free ones of the heap."""
        places: dict[Any, list[tuple[int, int]]] = {}  # by mapping, of matrices used in place
        for name, part in self.wanted.items():
            stored = self.checkpoint.tensors[name]
            kept = places.setdefault(stored.mapping, [])
            if isinstance(part, DenseMatrix) and part.array and part.is_in_place:
                kept.append((stored.offset, stored.nbytes))
        for mapping, kept in places.items():
            end = 0
            for offset, nbytes in sorted(kept):
                mapping.release(end, offset - end)
                end = offset + nbytes
            mapping.release(end)
        trim_heap()


class Weights:
    """A place in a checkpoint: `w / "model.layers.0"` goes down, the methods ask for tensors."""

    def __init__(self, loader: WeightLoader, path: str = ""):
        self._loader = loader
        self.path = path

    def __truediv__(self, name: str) -> "Weights":
        return Weights(self._loader, f"{self.path}.{name}" if self.path else name)

    def vector(self, n: int) -> Vector:
        """The tensor at this place as [n] in f32."""

        def make(stored: Stored) -> Vector:
            if not stored.is_dense:
                raise WeightError(f"got {stored.type}, need f32, f16 or bf16")
            return Vector(stored.name, (n,))

        return self._loader.want(self.path, (n,), make)

    def matrix(self, n: int, k: int) -> Matrix:
        """The tensor at this place as [n, k], in whatever form it is stored."""
        return self._loader.matrix(self.path, (n, k))

    def ignore(self) -> None:
        """Say that the tensor at this place may exist and is not needed."""
        self._loader.ignore(self.path)

    def __repr__(self) -> str:
        return f"<Weights {self.path or '(root)'}>"


def _some(names: list[str], joiner: str = ", ") -> str:
    shown = joiner.join(names[:SHOWN])
    return shown + (f"{joiner}… ({len(names) - SHOWN} more)" if len(names) > SHOWN else "")
