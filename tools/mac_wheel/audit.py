"""Audits a macOS wheel of Butter without a Mac.

    python tools/mac_wheel/audit.py [--metallib] WHEEL

Needs requirements.txt. With --metallib kernels as text are not enough, as in a wheel to publish.
Prints what the wheel binds; exits with 1 and a list of findings if anything is wrong.
"""

import argparse
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import PurePosixPath

from image import Image

TAG = "cp311-abi3-macosx_14_0_arm64"
EXTENSION = "butter/_native.abi3.so"
NEEDED = (
    EXTENSION,
    "butter/__init__.py",
    "butter/_kernels.py",
    "butter/_kernels.pyi",
    "butter/manifest.json",
    "butter/selftest.npz",
)
# Found only in test builds and on the machine that built the wheel.
FORBIDDEN_WORDS = (b"softmetal", b"objcrt")
ABSOLUTE_PATH = re.compile(rb"(?<![\w.~/-])/(?:[\w.+-]+/)+[\w.+-]+")
SYSTEM_PATHS = (b"/System/Library/", b"/usr/lib/", b"/Library/Caches")


def wheel_findings(wheel: zipfile.ZipFile, name: str) -> Iterator[str]:
    """Tag and contents."""
    if not re.fullmatch(rf"butter-[^-]+-{TAG}\.whl", name):
        yield f"file name: got {name}, need butter-VERSION-{TAG}.whl"
    files = set(wheel.namelist())
    yield from (f"missing file: {file}" for file in NEEDED if file not in files)
    info = next((file for file in files if file.endswith(".dist-info/WHEEL")), None)
    tags = re.findall(r"^Tag: (\S+)", wheel.read(info).decode(), re.M) if info else []
    if tags != [TAG]:
        yield f"WHEEL: got the tags {tags}, need {TAG}"
    for file in sorted(files):
        data = wheel.read(file)
        if file != EXTENSION and data[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe"):
            yield f"unexpected binary: {file}"
        for word in FORBIDDEN_WORDS:
            if word in data or word.decode() in file:
                yield f"{file} names {word.decode()}"


def kernel_findings(wheel: zipfile.ZipFile, metallib: bool) -> Iterator[str]:
    """Each kernel of the manifest in both forms, as text; or a metallib, unread."""
    files = set(wheel.namelist())
    if "butter/manifest.json" not in files:
        return
    if "butter/kernels.metallib" in files:
        if wheel.read("butter/kernels.metallib")[:4] != b"MTLB":
            yield "butter/kernels.metallib is no Metal library"
        return
    if metallib:
        yield "missing file: butter/kernels.metallib"
    declared: dict[str, set[str]] = {}
    for kernel in json.loads(wheel.read("butter/manifest.json"))["kernels"]:
        for suffix, form in (("", ""), ("_tables", "__table")):
            file = f"butter/metal/{PurePosixPath(kernel['source']).stem}{suffix}.metal"
            if file not in declared:
                text = wheel.read(file).decode() if file in files else ""
                declared[file] = set(re.findall(r"\bkernel void (\w+)\(", text))
            if kernel["symbol"] + form not in declared[file]:
                yield f"{file} lacks the kernel {kernel['symbol']}{form}"


def path_findings(data: bytes) -> Iterator[str]:
    for text in re.findall(rb"[\x20-\x7e]{6,}", data):
        for path in ABSOLUTE_PATH.findall(text):
            if not path.startswith(SYSTEM_PATHS):
                yield f"{EXTENSION} holds the path {path.decode()}"


def audit(path: str, metallib: bool) -> tuple[list[str], list[str]]:
    """Facts and findings."""
    with zipfile.ZipFile(path) as wheel:
        findings = [*wheel_findings(wheel, PurePosixPath(path).name)]
        findings += kernel_findings(wheel, metallib)
        if EXTENSION not in wheel.namelist():
            return [], findings
        data = wheel.read(EXTENSION)
    findings += path_findings(data)
    try:
        image = Image(data)
    except ValueError as error:
        return [], [*findings, str(error)]
    return image.facts(), [*findings, *image.findings()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", metavar="WHEEL")
    parser.add_argument("--metallib", action="store_true", help="the kernels must be compiled")
    options = parser.parse_args()
    facts, findings = audit(options.wheel, options.metallib)
    for fact in facts:
        print(fact)
    for finding in findings[:40]:
        print(f"WRONG: {finding}")
    print(f"{len(findings)} findings" if findings else "audit passed")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
