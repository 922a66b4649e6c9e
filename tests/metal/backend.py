"""The Metal device under test: a Mac's, or the software Metal of a test build."""

import ctypes
import json
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
        pytest.skip(str(error))


class Software:
    """The software Metal's own functions; tests that need them are skipped on a Mac."""

    def __init__(self):
        metal()
        # Loaded already, so its name is enough; a Mac has no such library.
        try:
            self._c = ctypes.CDLL("libsoftmetal.so", mode=ctypes.RTLD_GLOBAL)
        except OSError:
            pytest.skip("needs the software Metal")
        self._c.softmetal_live_objects.restype = ctypes.c_long
        self._c.softmetal_calls.restype = ctypes.c_size_t

    def calls(self, prefix: str = "compute") -> int:
        """Calls since the last reset whose name starts so: "compute" for those of encoders."""
        text = ctypes.create_string_buffer(1 << 16)
        self._c.softmetal_calls(text, ctypes.c_size_t(len(text)))
        return sum(n for name, n in json.loads(text.value).items() if name.startswith(prefix))

    def reset(self) -> None:
        self._c.softmetal_reset_calls()

    def plant(self, faults: str) -> None:
        """Make later calls go wrong: "fail_command_buffer:1"."""
        self._c.softmetal_plant(faults.encode())

    def planted(self) -> int:
        return self._c.softmetal_planted()

    def live_objects(self) -> int:
        return self._c.softmetal_live_objects()
