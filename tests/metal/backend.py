"""The Metal device under test: a Mac's, or the software Metal of a test build."""

import ctypes
import json
from collections import Counter
from pathlib import Path

import pytest

from support.metal import open_metal as metal

MODES = ["eager", "argument_buffers", "icb"]


def total(counts: Counter, prefix: str = "compute") -> float:
    return sum(n for name, n in counts.items() if name.startswith(prefix))


def library_folder() -> Path:
    """Where the loaded libsoftmetal.so lies."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return next(Path(m.split()[-1]).parent for m in maps if m.endswith("/libsoftmetal.so"))


class Software:
    """The software Metal's own functions; tests that need them are skipped on a Mac."""

    def __init__(self):
        metal()
        # Loaded already, so its name is enough; a Mac has no such library.
        try:
            self._c = ctypes.CDLL("libsoftmetal.so", mode=ctypes.RTLD_GLOBAL)
        except OSError:
            pytest.skip("needs the software Metal")
        self.folder = library_folder()
        self._c.softmetal_live_objects.restype = ctypes.c_long
        self._c.softmetal_calls.restype = ctypes.c_size_t

    def counts(self) -> Counter:
        """Calls since the last reset by name, such as "compute endEncoding"."""
        text = ctypes.create_string_buffer(1 << 16)
        self._c.softmetal_calls(text, ctypes.c_size_t(len(text)))
        return Counter(json.loads(text.value))

    def calls(self, prefix: str = "compute") -> int:
        """Those whose name starts so: "compute" for all of compute encoders."""
        return total(self.counts(), prefix)

    def reset(self) -> None:
        self._c.softmetal_reset_calls()

    def plant(self, faults: str) -> None:
        """Make later calls go wrong: "fail_command_buffer:1"."""
        self._c.softmetal_plant(faults.encode())

    def planted(self) -> int:
        return self._c.softmetal_planted()

    def live_objects(self) -> int:
        return self._c.softmetal_live_objects()
