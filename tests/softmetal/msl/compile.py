"""Compiles .metal files into one library: an ELF file that the software Metal loads.

    python compile.py --out kernels.metallib FILE.metal ...
    python compile.py --check FILE.metal ...             # address spaces and syntax only
    python compile.py --cache FOLDER FILE.metal          # prints the path of the library

Objects are kept beside the output, by the hash of all that went into them.
"""

import argparse
import hashlib
import os
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from lint import lint  # noqa: E402
from prepass import convert  # noqa: E402

FLAGS = [
    "-std=c++17", "-O1", "-g1", "-fPIC", "-fno-math-errno", "-ffp-contract=off", "-fno-exceptions",
    "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-variable",
    "-Wno-unused-but-set-variable", "-Wno-unused-function", "-Wno-missing-braces",
    # No loop may turn into a call, whose accesses would not be traced.
    "-fno-builtin-memcpy", "-fno-builtin-memset", "-fno-builtin-memmove",
    # Otherwise clang keeps float between operations on half.
    "-Xclang", "-ffloat16-excess-precision=none", "-Xclang", "-fbfloat16-excess-precision=none",
    f"-isystem{HERE / 'include'}",
]  # fmt: skip
# MSL is C++14; a narrower float should be written down.
STRICT = ["-Wpre-c++17-compat", "-Wimplicit-float-conversion", "-Wdouble-promotion"]
TRACE = "-fsanitize-coverage=func,trace-loads,trace-stores"


def run(command: list[str], text: str | None = None) -> None:
    done = subprocess.run(command, input=text, text=True, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:1])} failed:\n{done.stderr[:8000]}")


def check(clang: str, path: Path, source: str) -> None:
    """Refuses what Apple's compiler would: address spaces that differ or are missing."""
    complaints = [f"{path}:{line}: {what}" for line, what in lint(source)]
    if complaints:
        raise SystemExit("\n".join(complaints))
    flags = [*FLAGS, *STRICT, "-DMSL_ADDRSPACE", "-fsyntax-only", "-x", "c++", "-"]
    run([clang, *flags], convert(source, str(path), check=True))


def shim() -> bytes:
    """Everything but the kernels that decides what an object looks like."""
    files = [*HERE.glob("*.py"), *HERE.glob("include/*"), HERE / "runner.h", HERE / "library.cpp"]
    return b"".join(p.read_bytes() for p in sorted(files))


def name_of(clang: str, path: Path, flags: list[str]) -> str:
    """A name that changes with all that an object depends on."""
    key = hashlib.sha256(shim() + repr((clang, FLAGS, flags)).encode() + path.read_bytes())
    return key.hexdigest()[:24]


def compile_file(clang: str, path: Path, folder: Path, flags: list[str]) -> Path:
    """The object of one file; `folder` holds those that were made before."""
    out = folder / f"{name_of(clang, path, flags)}.o"
    if not out.exists():
        source = path.read_text()
        check(clang, path, source)
        part = out.with_suffix(f".{os.getpid()}.part")
        command = [clang, *FLAGS, TRACE, *flags, "-x", "c++", "-c", "-", "-o", str(part)]
        run(command, convert(source, str(path)))
        part.rename(out)
    return out


def link(clang: str, objects: list[Path], out: Path, runner: Path | None, flags: list[str]) -> None:
    part = out.with_name(f"{out.name}.{os.getpid()}")
    command = [clang, "-std=c++17", "-O1", "-fPIC", "-shared", *flags, str(HERE / "library.cpp")]
    command += [*map(str, objects), "-o", str(part)]
    if runner:
        command += [f"-L{runner}", "-lsoftmetal", "-Wl,-rpath,$ORIGIN", f"-Wl,-rpath,{runner}"]
    run(command)
    # So that a damaged file is refused before the dynamic linker sees it.
    crc = zlib.crc32(part.read_bytes())
    with part.open("ab") as file:
        file.write(b"softmetl" + struct.pack("<II", crc, 0))
    part.rename(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clang", default="clang++-19")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--runner", type=Path, help="folder of libsoftmetal.so")
    parser.add_argument("--flag", action="append", default=[], help="for the compiler")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("files", type=Path, nargs="+", help="or folders of .metal files")
    args = parser.parse_args()
    args.files = [f for p in args.files for f in (sorted(p.glob("*.metal")) or [p])]
    if args.check:
        for path in args.files:
            source = path.read_text()
            check(args.clang, path, source)
            syntax = [args.clang, *FLAGS, "-fsyntax-only", "-x", "c++", "-"]
            run(syntax, convert(source, str(path)))
        return
    out, objects = args.out, Path(f"{args.out}.objects")
    if args.cache:
        objects = args.cache
        name = name_of(args.clang, args.files[0], [*args.flag, str(args.runner)])
        out = args.cache / f"{name}.metallib"
        print(out)
        if out.exists():
            return
    objects.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        made = [*pool.map(lambda p: compile_file(args.clang, p, objects, args.flag), args.files)]
    link(args.clang, made, out, args.runner, args.flag)


if __name__ == "__main__":
    main()
