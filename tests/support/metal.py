"""Whether this build has Metal: a Mac's, or on Linux the software Metal of a test build."""

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

IS_SOFTWARE = sys.platform == "linux"


@cache
def has_metal() -> bool:
    """Opens nothing, so that tests can be collected without native code."""
    native = find_spec("butter") and find_spec("butter._native")
    if not native or not native.origin:
        return False
    folder = Path(native.origin).parent  # where builds with Metal put its kernels
    return (folder / "metal").is_dir() or (folder / "kernels.metallib").exists()


@cache
def open_metal():
    """The device; skips the test where there is none."""
    from butter import _native
    from butter.errors import DeviceError

    try:
        return _native.open_device("metal")
    except DeviceError as error:
        pytest.skip(str(error))
