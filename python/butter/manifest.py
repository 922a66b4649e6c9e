"""The kernels of this build: what each takes, gives and needs, read once from manifest.json."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from .errors import KernelError

_CALLS = {"ceildiv": lambda a, b: -(-a // b), "min": min, "max": max, "__builtins__": {}}


@dataclass(frozen=True)
class Extent:
    """One size of a tensor: an integer expression over the kernel's dims and WARP."""

    text: str
    code: CodeType

    @property
    def is_name(self) -> bool:
        return self.text.isidentifier()

    def names(self) -> tuple[str, ...]:
        return tuple(n for n in self.code.co_names if n not in _CALLS)

    def value(self, dims: Mapping[str, int]) -> int:
        return eval(self.code, _CALLS, dims)  # our own build wrote the text


@functools.cache
def extent(text: str) -> Extent:
    return Extent(text, compile(text, "<manifest>", "eval"))


@dataclass(frozen=True)
class Param:
    name: str
    kind: str  # in, out, inout
    dtype: str
    shape: tuple[Extent, ...]


@dataclass(frozen=True)
class Kernel:
    """One instance: a kernel at fixed types and statics."""

    symbol: str
    name: str
    types: Mapping[str, str]
    statics: Mapping[str, int]
    params: tuple[Param, ...]
    consts: tuple[str, ...]
    dims: tuple[str, ...]
    constraints: tuple[Extent, ...]  # truths over the dims
    writes_step: bool


def _kernel(e: dict[str, Any]) -> Kernel:
    params = tuple(
        Param(p["name"], p["kind"], p["dtype"], tuple(extent(s) for s in p["shape"]))
        for p in e["params"]
    )
    consts = tuple(c["name"] for c in e["consts"])
    return Kernel(
        e["symbol"],
        e["name"],
        e["types"],
        e["statics"],
        params,
        consts,
        tuple(e["dims"]),
        tuple(extent(c) for c in e["constraints"]),
        e["writes_step"],
    )


def _pack(entry: dict[str, Any]) -> Any:
    """A kernel as (name, JSON text): models use few, and parsed ones take 5 times the memory."""
    return (entry["name"], json.dumps(entry)) if "symbol" in entry else entry


class Manifest:
    """Kernels by name, and the words of the step block.

    Args:
        text: Of manifest.json.
    """

    def __init__(self, text: str):
        data = json.loads(text, object_hook=_pack)
        self.step: dict[str, tuple[int, str]] = {k: tuple(v) for k, v in data["step"].items()}
        self._packed: dict[str, list[str]] = {}
        for name, text in data["kernels"]:
            self._packed.setdefault(name, []).append(text)
        self._built: dict[str, list[Kernel]] = {}

    def names(self) -> list[str]:
        return sorted(self._packed)

    def instances(self, name: str) -> list[Kernel]:
        """Every instance of a kernel; raises KernelError if this build has none."""
        if name not in self._built:
            if name not in self._packed:
                known = ", ".join(self.names())
                raise KernelError(f"[kernels] got {name!r}, need one of {known}")
            self._built[name] = [_kernel(json.loads(text)) for text in self._packed[name]]
        return self._built[name]

    def legal(self, name: str, static: str) -> list[int]:
        """The values that a static argument of a kernel may have."""
        return sorted({k.statics[static] for k in self.instances(name)})

    def find(
        self, name: str, dtypes: Mapping[str, str], statics: Mapping[str, int], default: str
    ) -> Kernel:
        """The instance for the dtypes of the bound tensors; open types become `default`.

        Raises KernelError with what was asked for and what exists.
        """
        found = [
            k
            for k in self.instances(name)
            if k.statics == statics
            and all(p.dtype == dtypes[p.name] for p in k.params if p.name in dtypes)
        ]
        if len(found) > 1:
            found = [k for k in found if default in k.types.values()] or found
        if not found:
            got = ", ".join(f"{k} {v}" for k, v in {**dtypes, **statics}.items())
            have = "; ".join(_describe(k) for k in self.instances(name))
            raise KernelError(f"[{name}] no instance for {got}; built: {have}")
        return found[0]


def _describe(kernel: Kernel) -> str:
    types = [f"{p.name} {p.dtype}" for p in kernel.params]
    return ", ".join([*types, *(f"{k} {v}" for k, v in kernel.statics.items())])


@functools.cache
def manifest() -> Manifest:
    from . import _native  # the build puts both in one folder, which an editable install moves

    path = Path(_native.__file__).with_name("manifest.json")
    try:
        return Manifest(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = error.strerror if isinstance(error, OSError) else f"it is damaged: {error!r}"
        raise KernelError(
            f"[kernels] {path.name} cannot be read ({what}). Install butter again; in a source "
            "tree run `pip install --no-build-isolation -e .`"
        ) from None
