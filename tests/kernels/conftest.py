"""Where a kernel's test runs: on each device, in the interpreter laid out as on a GPU, on CUDA."""

import pytest

from support.cuda import nvcc, open_cuda
from support.launch import CudaGroups, Interpreter

CUDA = open_cuda() if nvcc() else None


@pytest.fixture(scope="session", params=["cpu", "iron"] + ["cuda"] * bool(CUDA))
def machine(request):
    """A device, or groups of many warps with races and bounds checked; for small inputs."""
    if request.param == "cuda":
        return CudaGroups(CUDA)
    if request.param == "iron":
        return Interpreter()
    from butter import _native

    return _native.open_device(request.param)
