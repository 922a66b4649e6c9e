"""Where the instances of a kernel run whose narrow activations are not built for CPUs."""

import pytest

from iron import parse

from .cuda import nvcc, open_cuda
from .launch import KERNELS

GPU_LIKE = ["iron"] + ["cuda"] * bool(nvcc() and open_cuda())


def places(name: str) -> list:
    """(machine, types) for each set of types: on the CPU where it is built, on all others."""
    spec = KERNELS[name]
    sets: list[dict[str, str]] = []
    for types, _ in parse.instances(spec):
        if types not in sets:
            sets.append(types)
    native = [t for t in sets if all(t[key] == v for key, v in spec.cpu.items())]
    pairs = [("cpu", t) for t in native] + [(m, t) for m in GPU_LIKE for t in sets]
    return [pytest.param(m, t, id=f"{m}-{'-'.join(t.values())}") for m, t in pairs]


def on(name: str):
    """Run a test at each place of kernel `name`; it takes `machine` and `types`."""
    return pytest.mark.parametrize(("machine", "types"), places(name), indirect=["machine"])


def format_id(statics: dict[str, int]) -> str:
    """4-32-sym, 8-128, …"""
    sym = "-sym" if statics["SYM"] else ""
    return f"{statics['bits']}-{statics['G']}{sym}"
