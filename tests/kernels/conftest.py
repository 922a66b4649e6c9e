"""Where a kernel's test runs: on each device, and in the interpreter laid out as on a GPU."""

import pytest

from support.launch import Interpreter


@pytest.fixture(scope="session", params=["cpu", "iron"])
def machine(request):
    """A device, or groups of many warps with races and bounds checked; for small inputs."""
    if request.param == "iron":
        return Interpreter()
    from butter import _native

    return _native.open_device(request.param)
