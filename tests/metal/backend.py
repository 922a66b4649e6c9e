"""The Metal device under test: a Mac's, or the software Metal of a test build."""

import ctypes
from functools import cache

import pytest

from butter import _native
from butter.errors import DeviceError

MODES = ["eager", "argument_buffers", "icb"]


@cache
def metal():
    """The device; skips the test where there is none."""
    try:
        return _native.open_device("metal")
    except DeviceError as error:
        pytest.skip(str(error), allow_module_level=True)


@cache
def software() -> ctypes.CDLL:
    """The software Metal's own functions; skips the test on a Mac."""
    metal()
    library = ctypes.CDLL(_native.__file__)
    if not hasattr(library, "softmetal_encoder_calls"):
        pytest.skip("needs the software Metal")
    return library
