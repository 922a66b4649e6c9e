"""Where the tests of kernels run: on each device, in the interpreter laid out as on a GPU, on CUDA.

Kernels with narrow activations are not built for CPUs, so their places depend on the types.
"""

import pytest

from iron import parse

from .cuda import nvcc, open_cuda
from .launch import KERNELS
from .metal import has_metal

GPU_LIKE = ["iron"] + ["metal"] * has_metal() + ["cuda"] * bool(nvcc() and open_cuda())
MACHINES = ["cpu", *GPU_LIKE]


def marks(machine: str) -> list:
    return [pytest.mark.metal] * (machine == "metal")


def places(name: str) -> list:
    """(machine, types) for each set of types: on the CPU where it is built, on all others."""
    spec = KERNELS[name]
    sets: list[dict[str, str]] = []
    for types, _ in parse.instances(spec):
        if types not in sets:
            sets.append(types)
    native = [t for t in sets if all(t[key] == v for key, v in spec.cpu.items())]
    pairs = [("cpu", t) for t in native] + [(m, t) for m in GPU_LIKE for t in sets]
    return [pytest.param(m, t, marks=marks(m), id="-".join([m, *t.values()])) for m, t in pairs]


def on(name: str):
    """Run a test at each place of kernel `name`; it takes `machine` and `types`."""
    return pytest.mark.parametrize(("machine", "types"), places(name), indirect=["machine"])


def format_id(statics: dict[str, int]) -> str:
    """4-32-sym, 8-128, …"""
    sym = "-sym" if statics["SYM"] else ""
    return f"{statics['bits']}-{statics['G']}{sym}"
