"""The CUDA driver through ctypes: loads a module, launches a kernel on numpy arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np

Handle = ctypes.c_void_p


def nvcc() -> str | None:
    return shutil.which("nvcc") or next(
        iter(map(str, Path("/usr/local").glob("cuda*/bin/nvcc"))), None
    )


def compile_cuda(text: str, out: Path, *arch: str) -> bytes:
    """A cubin for one architecture, a fatbin for several; warnings are errors."""
    source = out.with_suffix(".cu")
    source.write_text(text)
    code = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in arch]
    kind = "-cubin" if len(arch) == 1 else "-fatbin"
    # No contraction: results then only differ in library functions.
    command = [
        nvcc(),
        kind,
        *code,
        "-std=c++17",
        "-fmad=false",
        "-Werror",
        "all-warnings",
        "-o",
        out,
        source,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or done.stdout
    return out.read_bytes()


class Cuda:
    """The first GPU."""

    def __init__(self) -> None:
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), Handle()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
        self.call("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)
        self.arch = f"{major.value}{minor.value}"

    def call(self, name: str, *args) -> None:
        code = getattr(self.driver, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.driver.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def load(self, image: bytes) -> Handle:
        module = Handle()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        return module

    def launch(self, module: Handle, symbol: str, grid: list[int], group: int, args: list) -> None:
        """Arrays are copied there and back; numpy scalars go by value."""
        function = Handle()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        places = []
        for a in args:
            if not isinstance(a, np.ndarray):
                places.append(ctypes.c_uint32(int(a.view(np.uint32))))
                continue
            place = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(a.nbytes, 1)))
            self.call("cuMemcpyHtoD_v2", place, Handle(a.ctypes.data), ctypes.c_size_t(a.nbytes))
            places.append(place)
        pointers = (Handle * len(places))(*(ctypes.addressof(p) for p in places))
        self.call("cuLaunchKernel", function, *grid, group, 1, 1, 0, None, pointers, None)
        self.call("cuCtxSynchronize")
        for a, place in zip(args, places, strict=True):
            if isinstance(a, np.ndarray):
                self.call(
                    "cuMemcpyDtoH_v2", Handle(a.ctypes.data), place, ctypes.c_size_t(a.nbytes)
                )
                self.call("cuMemFree_v2", place)


def open_cuda() -> Cuda | None:
    """None without a driver or a GPU."""
    try:
        return Cuda()
    except (OSError, RuntimeError):
        return None
