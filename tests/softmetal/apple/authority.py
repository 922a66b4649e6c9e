"""The authorities: macOS packages from the Python package index, kept in a cache folder."""

import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from . import metal_cpp
from .macho import Image, Protocol

# The first was built with the SDK of macOS 14; the newer ones know more protocols.
_WHEELS = {
    "pyobjc14": ("pyobjc-framework-Metal==10.0", "macosx_10_9_universal2"),
    "pyobjc": ("pyobjc-framework-Metal==12.2.2", "macosx_10_9_universal2"),
    "cocoa": ("pyobjc-framework-Cocoa==12.2.2", "macosx_10_9_universal2"),
    "mlx": ("mlx-metal==0.32.4", "macosx_14_0_arm64"),
}


class Unreachable(Exception):
    """No network and nothing in the cache."""


@dataclass
class PyObjC:
    """What Apple's compiler wrote into a module, and its tables of constants."""

    protocols: dict[str, Protocol]
    values: dict[str, int]
    words: set[str]

    def knows(self, word: str) -> bool:
        return word in self.words


@dataclass
class Authorities:
    pyobjc: PyObjC
    pyobjc14: PyObjC
    cpp: metal_cpp.MetalCpp
    foundation: str  # tables of selectors, by name


def cache_folder() -> Path:
    chosen = os.environ.get("BUTTER_API_CACHE")
    base = os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")
    return Path(chosen) if chosen else Path(base) / "butter" / "metal-api"


def _unpack(name: str, folder: Path) -> Path:
    """The folder of a wheel's files that are needed; downloads at most once."""
    out = folder / name
    if (out / "complete").exists():
        return out
    requirement, platform = _WHEELS[name]
    command = [
        sys.executable, "-m", "pip", "download", "-q", "--retries", "1", "--no-deps",
        "--only-binary=:all:", "--python-version", "3.11",
        "--platform", platform, "--dest", str(out), requirement,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unreachable(f"cannot download {requirement}: {done.stderr.strip()[-300:]}")
    wheel = next(out.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if member.startswith(("Metal/", "Foundation/_metadata")) or "/metal_cpp/" in member:
                archive.extract(member, out)
    wheel.unlink()
    (out / "complete").touch()
    return out


def _pyobjc(folder: Path) -> PyObjC:
    metadata = (folder / "Metal/_metadata.py").read_text()
    values = {k: int(v) for k, v in re.findall(r"\$(\w+)@(-?\d+)", metadata)}
    words = set(re.findall(r"[\w:]+", metadata))
    return PyObjC(Image(next(folder.glob("Metal/_Metal*.so"))).protocols(), values, words)


def load(folder: Path | None = None) -> Authorities:
    folder = folder or cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    mlx = _unpack("mlx", folder) / "mlx/include/metal_cpp"
    return Authorities(
        pyobjc=_pyobjc(_unpack("pyobjc", folder)),
        pyobjc14=_pyobjc(_unpack("pyobjc14", folder)),
        cpp=metal_cpp.load(mlx),
        foundation=(_unpack("cocoa", folder) / "Foundation/_metadata.py").read_text(),
    )
