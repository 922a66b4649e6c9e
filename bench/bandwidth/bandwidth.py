"""Measure what this machine can do at most: reading memory, and arithmetic in registers.

python bench/bandwidth/bandwidth.py --threads 1 2 --mib 1024
"""

import argparse
import atexit
import os
import shutil
import statistics
import subprocess
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent


@cache
def _program(name: str) -> Path:
    """Compile name.c once per process, for this very machine."""
    folder = tempfile.mkdtemp(prefix="butter-bandwidth-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = Path(folder) / name
    compiler = os.environ.get("CC", "cc")
    flags = ["-O3", "-march=native", "-std=gnu11", "-pthread"]
    subprocess.run([compiler, *flags, str(HERE / f"{name}.c"), "-o", str(program)], check=True)
    return program


def _output(name: str, *arguments: int) -> list[list[float]]:
    done = subprocess.run(
        [_program(name), *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def read_gb_per_s(threads: int, mib: int = 1024, repeats: int = 9) -> list[float]:
    """GB/s (10**9 bytes) of `repeats` passes over a buffer of `mib` MiB."""
    return [rate for (rate,) in _output("read", mib, threads, repeats)]


def peaks(repeats: int = 3) -> dict[str, float]:
    """G operations/s of one core, 2 per multiply-add; 0 where it has no instruction."""
    rates = zip(*_output("peak", repeats), strict=True)
    return dict(zip(("f32", "int8", "bf16"), map(statistics.median, rates), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    parser.add_argument("--mib", type=int, nargs="+", default=[1024, 96])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    for mib in options.mib:
        for threads in options.threads:
            rates = read_gb_per_s(threads, mib, options.repeats)
            low, high = min(rates), max(rates)
            print(
                f"read {mib} MiB, {threads} thread{'s' * (threads > 1)}: "
                f"{statistics.median(rates):.1f} GB/s ({low:.1f}..{high:.1f})"
            )
    rates = ", ".join(f"{rate:.0f} {name}" for name, rate in peaks().items())
    print(f"1 core, G operations/s: {rates}")


if __name__ == "__main__":
    main()
