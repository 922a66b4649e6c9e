"""Where a kernel's test runs; see support/places.py."""

import pytest

from support.cuda import open_cuda
from support.launch import CudaGroups, Interpreter
from support.metal import open_metal
from support.places import MACHINES, marks


@pytest.fixture(scope="session", params=[pytest.param(m, marks=marks(m)) for m in MACHINES])
def machine(request):
    """A device, or groups of many warps with races and bounds checked; for small inputs."""
    if request.param == "cuda":
        return CudaGroups(open_cuda())
    if request.param == "iron":
        return Interpreter()
    if request.param == "metal":
        return open_metal()
    from butter import _native

    return _native.open_device(request.param)
