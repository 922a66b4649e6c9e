"""Plants faults in a cross-built wheel; the audit must name each. Needs a package index:

    pytest -m slow tools/mac_wheel

BUTTER_MAC_WHEEL=OUT_DIR takes what build.sh left there instead of building (some minutes).
"""

import os
import struct
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXTENSION = "butter/_native.abi3.so"
BUILD_VERSION = 0x32
CODE_SIGNATURE = 0x1D
Files = dict[str, bytes]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def out(tmp_path_factory) -> Path:
    """The folder in which build.sh left a wheel and its environment."""
    if "BUTTER_MAC_WHEEL" in os.environ:
        return Path(os.environ["BUTTER_MAC_WHEEL"])
    folder = tmp_path_factory.mktemp("mac_wheel")
    subprocess.run([HERE / "build.sh", folder], check=True)
    return folder


@pytest.fixture(scope="session")
def wheel(out) -> Path:
    (found,) = out.glob("butter-*.whl")
    return found


@pytest.fixture
def audit(out):
    def run(path: Path, *options: str) -> tuple[int, str]:
        command = [out / "venv/bin/python", HERE / "audit.py", path, *options]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


def edit(change: Callable[[bytearray], None]) -> Callable[[Files], None]:
    def apply(files: Files) -> None:
        data = bytearray(files[EXTENSION])
        change(data)
        assert data != files[EXTENSION]
        files[EXTENSION] = bytes(data)

    return apply


def swap(old: bytes, new: bytes) -> Callable[[Files], None]:
    """Replaces each `old` in the extension, keeping its layout."""
    assert len(old) == len(new)

    def apply(data: bytearray) -> None:
        data[:] = data.replace(old, new)

    return edit(apply)


def command(data: bytes, wanted: int) -> int:
    """Where that load command starts."""
    at, (count,) = 32, struct.unpack_from("<I", data, 16)
    for _ in range(count):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == wanted:
            return at
        at += size
    raise AssertionError(f"no load command {wanted:#x}")


def old_system(data: bytearray) -> None:
    struct.pack_into("<I", data, command(data, BUILD_VERSION) + 12, 11 << 16)


def other_platform(data: bytearray) -> None:
    struct.pack_into("<I", data, command(data, BUILD_VERSION) + 8, 2)  # iOS


def intel(data: bytearray) -> None:
    struct.pack_into("<I", data, 4, 0x01000007)


def unsigned(data: bytearray) -> None:
    struct.pack_into("<I", data, command(data, CODE_SIGNATURE), 0x26)  # a table of functions


def strong_import(data: bytearray) -> None:
    """Clears the flag before the name in the binding opcodes."""
    name = b"_OBJC_CLASS_$_MTLResidencySetDescriptor\0"
    data[:] = data.replace(b"\x41" + name, b"\x40" + name)


def remove(name: str) -> Callable[[Files], None]:
    return lambda files: files.pop(name) and None


def add(name: str, data: bytes) -> Callable[[Files], None]:
    return lambda files: files.update({name: data})


def in_text(name: str, old: bytes, new: bytes) -> Callable[[Files], None]:
    def apply(files: Files) -> None:
        assert old in files[name]
        files[name] = files[name].replace(old, new)

    return apply


def wrong_tag(files: Files) -> None:
    info = next(name for name in files if name.endswith("/WHEEL"))
    files[info] = files[info].replace(b"macosx_14_0", b"macosx_11_0")


FOUNDATION = b"/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation"
FAULTS = {
    "old_system": (edit(old_system), "minimum system: got [11, 0"),
    "other_platform": (edit(other_platform), "need macOS"),
    "other_processor": (edit(intel), "processor: got X86_64"),
    "undefined_symbol": (swap(b"_PyList_Append\0", b"_QyList_Append\0"), "ABI: _QyList_Append"),
    "no_entry": (swap(b"_PyInit__native", b"_PyInit__natiwe"), "does not export _PyInit__native"),
    "framework_missing": (swap(FOUNDATION, FOUNDATION[:-1] + b"m"), "does not load /System"),
    "foreign_library": (
        swap(b"/usr/lib/libobjc.A.dylib", b"/opt/lib/libobjc.A.dylib"),
        "loads /opt",
    ),
    "strong_import": (edit(strong_import), "not a weak import: _OBJC_CLASS_$_MTLRes"),
    "unsigned": (edit(unsigned), "is not signed"),
    "changed_after_signing": (swap(b"butter", b"Butter"), "was changed after signing"),
    "build_path": (swap(b"/Library/Caches", b"/Users/a/Caches"), "holds the path /Users/a/Caches"),
    "linux_extension": (add(EXTENSION, b"\x7fELF" + bytes(99)), "no 64-bit Mach-O"),
    "no_extension": (remove(EXTENSION), f"missing file: {EXTENSION}"),
    "no_manifest": (remove("butter/manifest.json"), "missing file: butter/manifest.json"),
    "no_text": (remove("butter/metal/norm.metal"), "norm.metal lacks the kernel rms_norm__f32"),
    "no_tables": (
        remove("butter/metal/norm_tables.metal"),
        "lacks the kernel rms_norm__f32__table",
    ),
    "one_kernel_missing": (
        in_text("butter/metal/norm.metal", b"kernel void rms_norm__f32(", b"kernel void other("),
        "norm.metal lacks the kernel rms_norm__f32",
    ),
    "broken_metallib": (add("butter/kernels.metallib", b"text"), "is no Metal library"),
    "software_metal": (add("butter/libsoftmetal.so", b"\x7fELF"), "names softmetal"),
    "wrong_tag": (wrong_tag, "WHEEL: got the tags ['cp311-abi3-macosx_11_0_arm64']"),
}


def test_cross_built_wheel_passes(audit, wheel):
    code, text = audit(wheel)
    assert code == 0, text
    assert "audit passed" in text


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_named(audit, wheel, tmp_path, fault):
    plant, message = FAULTS[fault]
    with zipfile.ZipFile(wheel) as source:
        files = {name: source.read(name) for name in source.namelist()}
    plant(files)
    copy = tmp_path / wheel.name
    with zipfile.ZipFile(copy, "w") as target:
        for name, data in files.items():
            target.writestr(name, data)
    code, text = audit(copy)
    assert code == 1
    assert message in text


def test_other_file_name_is_named(audit, wheel, tmp_path):
    copy = tmp_path / wheel.name.replace("arm64", "x86_64")
    copy.write_bytes(wheel.read_bytes())
    code, text = audit(copy)
    assert code == 1
    assert "file name: got" in text


def test_text_is_not_enough_where_a_metallib_is_asked_for(audit, wheel):
    code, text = audit(wheel, "--metallib")
    assert code == 1
    assert "missing file: butter/kernels.metallib" in text


@pytest.mark.parametrize("source, compiles", [("std::to_chars", True), ("std::from_chars", False)])
def test_what_the_library_of_macos_14_lacks_does_not_compile(out, tmp_path, source, compiles):
    """Of these, libc++ has the second for double since macOS 26."""
    cache = (out / "build/CMakeCache.txt").read_text().splitlines()
    (flags,) = (line.split("=", 1)[1] for line in cache if line.startswith("CMAKE_CXX_FLAGS:"))
    file = tmp_path / "use.cpp"
    call = f"{source}(begin, end, value)"
    file.write_text(
        f"#include <charconv>\nauto use(char* begin, char* end, double& value) {{ {call}; }}\n"
    )
    done = subprocess.run(
        [out / "bin/c++", "-std=c++20", *flags.split(), "-c", file, "-o", tmp_path / "use.o"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0) == compiles, done.stderr
    if not compiles:
        assert "introduced in macOS" in done.stderr
