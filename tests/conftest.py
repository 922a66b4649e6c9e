"""Fixtures for all tests."""

import pytest

DEVICES = ["cpu"]


@pytest.fixture(scope="session", params=DEVICES)
def device(request):
    """An open device; native code is first touched when a test asks for one."""
    from butter import _native

    return _native.open_device(request.param)
