"""Records a model's forward pass: one method call per kernel, with shapes and dtypes inferred."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from . import _native
from ._kernels import Kernels
from .array import DTYPE_BYTES, Array
from .errors import ConfigError, KernelError, ShapeError
from .manifest import Extent, Kernel, manifest

Item = TypeVar("Item")


class Dynamic(int):
    """A size that each step sets anew: the recorded maximum, and the step word that holds it."""

    word: str

    def __new__(cls, maximum: int, word: str):
        self = super().__new__(cls, maximum)
        self.word = word
        return self


class Tensor:
    """A value inside one program."""

    __slots__ = ("recorder", "id", "shape", "dtype")

    def __init__(self, recorder: "Recorder", id: int, shape: tuple[int, ...], dtype: str):
        self.recorder = recorder
        self.id = id
        self.shape = shape
        self.dtype = dtype

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]

    def reshape(self, *shape: int) -> "Tensor":
        """The same values in another shape of equal size."""
        if math.prod(shape) != math.prod(self.shape):
            raise ShapeError(f"[reshape] got {_shape(self.shape)}, which has no shape {shape}")
        return Tensor(self.recorder, self.id, shape, self.dtype)

    def view(self, dtype: str) -> "Tensor":
        """The same bytes as another dtype; the last size changes with it."""
        *outer, last = self.shape
        scaled, rest = divmod(last * DTYPE_BYTES[self.dtype], DTYPE_BYTES[dtype])
        if rest:
            raise ShapeError(f"[view] got {self.dtype} {_shape(self.shape)}, no whole {dtype}")
        id = self.recorder.program.view(self.id, 0, self.nbytes, dtype)
        return Tensor(self.recorder, id, (*outer, scaled), dtype)

    def row(self, index: int) -> "Tensor":
        """One row of the first size: [1, …]."""
        shape = (1, *self.shape[1:])
        nbytes = math.prod(shape) * DTYPE_BYTES[self.dtype]
        id = self.recorder.program.view(self.id, index * nbytes, nbytes, self.dtype)
        return Tensor(self.recorder, id, shape, self.dtype)

    def __repr__(self) -> str:
        return f"<Tensor {self.dtype} {_shape(self.shape)}>"


class Recorder(Kernels):
    """One program under construction.

    Args:
        device: What it will run on.
        rows: Token rows of a step; `Dynamic` where each step chooses.
        is_batch: Each row is the next token of a sequence of its own, with a step block of its own.
        dtype: Of activations.
        exact: Products take f32 activations, not int8 or bf16 ones.
    """

    def __init__(
        self,
        device,
        rows: int = 1,
        *,
        is_batch: bool = False,
        dtype: str = "f32",
        exact: bool = False,
    ):
        self.device = device
        self.rows = rows
        self.dtype = dtype
        self.exact = exact
        self.is_batch = is_batch
        sizes = (1, rows) if is_batch else (int(rows),)
        self.program = _native.Program(device, *sizes)
        self._manifest = manifest()
        self._bound: dict[int, Tensor] = {}
        self._arrays: list[Array] = []  # keeps them alive while `_bound` knows them by id

    def tokens(self) -> Tensor:
        """The token ids of the step: i32 [rows]."""
        return Tensor(self, self.program.step_tokens(), (self.rows,), "i32")

    def empty(self, shape: tuple[int, ...], dtype: str) -> Tensor:
        """An activation that a later dispatch writes."""
        nbytes = math.prod(shape) * DTYPE_BYTES[dtype]
        return Tensor(self, self.program.activation(nbytes, dtype), tuple(shape), dtype)

    def bind(self, value: Any) -> Tensor:
        """The tensor of an array (or of what holds one as `.array`), made at its first use."""
        if isinstance(value, Tensor):
            if value.recorder is not self:
                raise ConfigError("[recorder] got a tensor of another program; need one of this")
            return value
        array = value if isinstance(value, Array) else getattr(value, "array", None)
        if not isinstance(array, Array):
            raise ConfigError(
                f"[recorder] got {value!r:.80}, need a tensor or an array on a device"
            )
        if id(array) not in self._bound:
            tensor_id = self.program.buffer(*array.range, array.dtype)
            self._bound[id(array)] = Tensor(self, tensor_id, array.shape, array.dtype)
            self._arrays.append(array)
        return self._bound[id(array)]

    def layer(self, index: int) -> None:
        """Dispatches from here on belong to this layer."""
        self.program.layer(index)

    def by_row(self, items: Iterable[Item]) -> Iterator[tuple[int, Item]]:
        """(row, item) in turn; what is recorded meanwhile reads that row's step block."""
        for row, item in enumerate(items):
            if self.is_batch:
                self.program.block(row)
            yield row, item
        if self.is_batch:
            self.program.block(0)

    def legal(self, kernel: str, static: str) -> list[int]:
        """The values that a static argument of a kernel may have."""
        return self._manifest.legal(kernel, static)

    def dispatch(
        self,
        name: str,
        tensors: Mapping[str, Any],
        consts: Mapping[str, float],
        statics: Mapping[str, int],
        dims: Mapping[str, int] | None = None,
    ):
        """Record one kernel; outputs that are None are allocated and returned."""
        bound = {k: self.bind(v) for k, v in tensors.items() if v is not None}
        dtypes = {k: t.dtype for k, t in bound.items()}
        kernel = self._manifest.find(name, dtypes, statics, self.dtype)
        sizes = unify(kernel, {k: t.shape for k, t in bound.items()}, dims or {}, self.device.warp)
        results = []
        for param in kernel.params:
            if param.name not in bound:
                if param.kind != "out":
                    raise KernelError(f"[{name}] {param.name}: missing; every input is needed")
                shape = tuple(_extent(e, sizes) for e in param.shape)
                bound[param.name] = self.empty(shape, param.dtype)
            if param.kind == "out":
                results.append(bound[param.name])
        self.program.dispatch(
            kernel.symbol,
            [bound[p.name].id for p in kernel.params],
            [consts[c] for c in kernel.consts],
            [int(sizes[d]) for d in kernel.dims],
            self._dynamic(kernel, sizes),
        )
        return results[0] if len(results) == 1 else tuple(results) or None

    def _dynamic(self, kernel: Kernel, sizes: Mapping[str, int]) -> dict[int, int]:
        """Index of a dynamic dim -> the step word it follows."""
        found = {}
        for i, name in enumerate(kernel.dims):
            size = sizes[name]
            if isinstance(size, Dynamic):
                found[i] = self._manifest.step[size.word][0]
        return found

    def finish(self):
        """Plan the program; the recorder is done."""
        return self.program.finish()


def unify(
    kernel: Kernel, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, int], warp: int
) -> dict[str, int]:
    """Values of all dims from the shapes of the bound tensors.

    Raises ShapeError, with the shapes, where they contradict each other or leave a dim open.
    """
    sizes: dict[str, int] = {"WARP": warp, **given}
    checks: list[tuple[str, Extent, int]] = []
    for param in kernel.params:
        shape = shapes.get(param.name)
        if shape is None:
            continue
        if len(shape) != len(param.shape):
            raise _mismatch(kernel, shapes, f"{param.name} has {len(shape)} sizes")
        for extent, size in zip(param.shape, shape, strict=True):
            known = sizes.get(extent.text) if extent.is_name else None
            if extent.is_name and (known is None or known == size):
                # Dynamic wins over an equal plain number, whichever came first.
                if not isinstance(known, Dynamic):
                    sizes[extent.text] = size
            else:
                checks.append((param.name, extent, size))
    missing = [d for d in kernel.dims if d not in sizes]
    if missing:
        raise _mismatch(kernel, shapes, f"dims={{{missing[0]!r}: …}} cannot be inferred")
    for name, extent, size in checks:
        if extent.value(sizes) != size:
            raise _mismatch(kernel, shapes, f"{name}: got {size} where {extent.text} is "
                            f"{extent.value(sizes)}")  # fmt: skip
    return sizes


def _extent(extent: Extent, sizes: Mapping[str, int]) -> int:
    return sizes[extent.text] if extent.is_name else extent.value(sizes)


def _mismatch(kernel: Kernel, shapes: Mapping[str, tuple[int, ...]], what: str) -> ShapeError:
    got = ", ".join(f"{name} {_shape(shape)}" for name, shape in shapes.items())
    need = ", ".join(
        f"{p.name} [{', '.join(e.text for e in p.shape)}]"
        for p in kernel.params
        if p.name in shapes
    )
    return ShapeError(f"[{kernel.name}] {what}: got {got}, need {need}")


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(str(int(n)) for n in shape)}]"
