"""What a bug report has to say of the machine, the packages and where kernels come from."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# Beside our own those of the test builds' Metal, whose faults would look like the device's.
SETTINGS = ("BUTTER_", "SOFTMETAL_", "MSL_", "OBJCRT_", "MTL_", "METAL_")
PACKAGES = ("numpy", "tokenizers", "jinja2", "huggingface-hub", "nanobind-backend")


def gather(device: dict[str, Any], others: dict[str, str]) -> dict[str, Any]:
    """Plain data; `device` is Device.info, or empty, and `others` what is said of other kinds."""
    import butter

    return {
        "butter": butter.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: package(name) for name in PACKAGES},
        "machine": machine(),
        "sources": others | sources(device),
    }


def package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def machine() -> dict[str, str]:
    """What the system's name does not tell."""
    if sys.platform != "darwin":
        return {}
    found = {
        "macOS": platform.mac_ver()[0],
        "chip": said("sysctl", "-n", "machdep.cpu.brand_string"),
        "model": said("sysctl", "-n", "hw.model"),
        "memory": said("sysctl", "-n", "hw.memsize"),
        "Metal compiler": said("xcrun", "--sdk", "macosx", "--find", "metal"),
    }
    return {name: value or "unknown" for name, value in found.items()}


def said(*command: str) -> str:
    """What a command printed; empty if it cannot be asked."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def sources(device: dict[str, Any]) -> dict[str, str]:
    """Where a GPU's kernels come from, and the settings that are in force."""
    found = {}
    if device.get("kind") == "metal":
        folder = kernel_folder()
        is_library = (folder / "kernels.metallib").exists()
        found["memory"] = "unified; the size is what the system recommends to use at most"
        found["kernels"] = (
            str(folder / "kernels.metallib") if is_library
            else f"{folder / 'metal'} (text, compiled at its first use)"
        )  # fmt: skip
        found["cache"] = "not needed" if is_library else cache_folder() or "none"
    if warning := device.get("warning"):
        found["warning"] = warning
    return found | {k: v for k, v in sorted(os.environ.items()) if k.startswith(SETTINGS)}


def other_devices(kind: str) -> dict[str, str]:
    """Each GPU of another kind: its name, or why it cannot be used."""
    from .. import _native
    from ..errors import ButterError

    found = {}
    for name in ("metal", "cuda"):
        if name != kind:
            try:
                found[name] = f"{_native.open_device(name).name}, not tested"
            except ButterError as error:
                found[name] = str(error)
    return found


def kernel_folder() -> Path:
    """As csrc/metal/library.mm finds it."""
    from .. import _native

    chosen = os.environ.get("BUTTER_METAL_KERNELS")
    return Path(chosen) if chosen else Path(_native.__file__).parent


def cache_folder() -> str:
    """As csrc/metal/archive.mm finds it."""
    caches = Path.home() / "Library" / "Caches"
    known = str(caches / "butter") if caches.is_dir() else ""
    return os.environ.get("BUTTER_METAL_CACHE", known)
