"""The words of the kernel language.

Inside a kernel the compiler reads them; outside they only carry information.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import declare
from .errors import IronError, Loc
from .names import DTYPES


@dataclass(frozen=True)
class TypeVar:
    """A type parameter; `types=` of the kernel lists its values."""

    name: str


@dataclass(frozen=True)
class DType:
    """A storage type; calling it in a kernel converts a value."""

    name: str

    def __call__(self, value: Any) -> Any:
        raise IronError(f"{self.name}(…) has a meaning only inside a kernel")


@dataclass(frozen=True)
class Builtin:
    """A function or namespace that only the compiler understands."""

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise IronError(f"{self.name}(…) has a meaning only inside a kernel")

    def __getattr__(self, attr: str) -> Builtin:
        if attr.startswith("_"):
            raise AttributeError(attr)
        return Builtin(f"{self.name}.{attr}")


@dataclass(frozen=True)
class Tensor:
    """What `In[T, "rows", "n"]` means: kind in|out|inout, a dtype or type variable, a shape."""

    kind: str
    dtype: DType | TypeVar
    shape: tuple[str | int, ...]


def _caller() -> Loc:
    """The line that called the caller."""
    frame = sys._getframe(2)
    return declare.line_of(frame.f_code.co_filename, frame.f_lineno)


class _TensorKind:
    def __init__(self, kind: str):
        self._kind = kind

    def __getitem__(self, item: tuple) -> Tensor:
        if not isinstance(item, tuple):
            item = (item,)
        if not isinstance(item[0], (DType, TypeVar)):
            kind = {"in": "In", "out": "Out", "inout": "InOut"}[self._kind]
            shape = ", ".join(map(repr, item))
            raise IronError(f"{kind}[{shape}] begins with no dtype", _caller(),
                            f"write {kind}[f32, {shape}] or {kind}[T, {shape}]")  # fmt: skip
        if not all(isinstance(s, (str, int)) for s in item[1:]):
            hint = 'sizes are numbers, names of dims or expressions: "n // 32"'
            raise IronError(f"a shape of {item[1:]!r}", _caller(), hint)
        return Tensor(self._kind, item[0], tuple(item[1:]) or (1,))


@dataclass(frozen=True)
class ConstOf:
    """A scalar fixed when the program is recorded."""

    dtype: DType


class _Const:
    def __getitem__(self, dtype: DType) -> ConstOf:
        if not isinstance(dtype, DType):
            raise IronError(f"Const[{dtype!r}]", _caller(), "use Const[f32], [i32] or [u32]")
        return ConstOf(dtype)


In, Out, InOut, Const = _TensorKind("in"), _TensorKind("out"), _TensorKind("inout"), _Const()
T, W, K = TypeVar("T"), TypeVar("W"), TypeVar("K")
f32, f16, bf16, i8, u8, i16, u16, i32, u32 = (DType(n) for n in DTYPES)

group, warp, step = Builtin("group"), Builtin("warp"), Builtin("step")
lanes, warps, unroll = Builtin("lanes"), Builtin("warps"), Builtin("unroll")
dim, lane, num_warps, WARP = (Builtin(n) for n in ("dim", "lane", "num_warps", "WARP"))
array, shared, barrier = Builtin("array"), Builtin("shared"), Builtin("barrier")
dot_u8i8, dot_bf16 = Builtin("dot_u8i8"), Builtin("dot_bf16")
prefetch, bitcast = Builtin("prefetch"), Builtin("bitcast")
select, fma, mulhi = Builtin("select"), Builtin("fma"), Builtin("mulhi")
exp, log, sqrt, rsqrt, sin, cos, tanh, floor, ceil, rint = (
    Builtin(n)
    for n in ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "floor", "ceil", "rint")
)


@dataclass
class Kernel:
    """A registered kernel: the Python function and what its decorator says."""

    fn: Callable
    grid: tuple[str | int, ...]
    group: int
    types: list[dict[str, str]]
    statics: list[dict[str, int]]
    where: list[str]
    cpu: dict[str, str]
    bytes: str | None
    flops: str | None
    tensors: dict[str, Tensor] = field(default_factory=dict)
    consts: dict[str, ConstOf] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.fn.__name__

    @property
    def module(self) -> str:
        return self.fn.__module__.rsplit(".", 1)[-1]


@dataclass
class Inline:
    """A function that is expanded where it is called."""

    fn: Callable


REGISTRY: dict[str, Kernel] = {}


def _product(spec: dict[str, Any] | list[dict] | None) -> list[dict]:
    """A dict of lists means every combination; a list of dicts means just these."""
    if not spec:
        return [{}]
    if isinstance(spec, list):
        return [dict(entry) for entry in spec]
    keys = list(spec)
    return [dict(zip(keys, values, strict=True)) for values in itertools.product(*spec.values())]


def kernel(
    fn: Callable | None = None,
    /,
    *,
    grid: str | int | tuple[str | int, ...] | None = None,
    group: int = 32,
    types: dict[str, list[str]] | list[dict[str, str]] | None = None,
    statics: dict[str, list[int]] | list[dict[str, int]] | None = None,
    where: list[str] | str = (),
    cpu: dict[str, str] | None = None,
    bytes: str | None = None,
    flops: str | None = None,
) -> Callable[[Callable], Kernel]:
    """Register a kernel.

    Args:
        grid: groups along x, y, z as expressions over dims, statics and WARP.
        group: lanes of a group on a GPU, a multiple of 32 up to 1024. A CPU always uses one warp.
        types: values of the type variables that the parameters name.
        statics: named integers known at build time; one instance is built per combination.
        where: shape constraints that the runtime checks before every launch.
        cpu: type values that a CPU instance must have; the others are built for GPUs only.
        bytes, flops: formulas for reports; bytes defaults to one pass over every tensor.
    """

    if fn is not None:
        raise IronError(f"{fn.__name__}: @kernel without arguments", declare.place(fn),
                        'write @kernel(grid="rows")')  # fmt: skip

    def register(fn: Callable) -> Kernel:
        if grid is None:
            raise IronError(f"{fn.__name__}: @kernel without a grid", declare.place(fn),
                            'write @kernel(grid="rows")')  # fmt: skip
        spec = Kernel(
            fn=fn,
            grid=grid if isinstance(grid, tuple) else (grid,),
            group=group,
            types=_product(declare.choices(fn, "types", types or {})),
            statics=_product(declare.choices(fn, "statics", statics or {})),
            where=[where] if isinstance(where, str) and where else list(where),
            cpu=cpu or {},
            bytes=bytes,
            flops=flops,
        )
        for name, parameter in inspect.signature(fn, eval_str=True).parameters.items():
            match parameter.annotation:
                case Tensor() as tensor:
                    spec.tensors[name] = tensor
                case ConstOf() as const:
                    spec.consts[name] = const
                case other:
                    raise IronError(
                        f"{fn.__name__}: parameter {name} is annotated {other!r}",
                        declare.place(fn, name),
                        "use In[dtype, shape…], Out[…], InOut[…] or Const[dtype]",
                    )
        declare.check(spec)
        if fn.__name__ in REGISTRY:
            first, second = (declare.place(f) for f in (REGISTRY[fn.__name__].fn, fn))
            if (first.file, first.line) != (second.file, second.line):
                raise IronError(f"two kernels are named {fn.__name__}", second,
                                f"the other one is in {first.file}:{first.line}")  # fmt: skip
        REGISTRY[fn.__name__] = spec
        return spec

    return register


def inline(fn: Callable) -> Inline:
    """Mark a function for expansion at every call.

    Its parameters are what the caller passes, its last statement may return a value.
    """
    return Inline(fn)
