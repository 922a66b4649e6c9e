"""Where a kernel's test runs: on each device, and in the interpreter laid out as on a GPU."""

import pytest
from support.launch import Interpreter


@pytest.fixture(scope="session", params=["device", "iron"])
def machine(request):
    """For small inputs: a device, or groups of many warps with races and bounds checked."""
    if request.param == "iron":
        return Interpreter()
    return request.getfixturevalue("device")
