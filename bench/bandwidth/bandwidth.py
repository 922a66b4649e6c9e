"""Measure how fast this machine reads memory: the limit of decoding.

python bench/bandwidth/bandwidth.py --threads 1 2 --mib 1024
"""

import argparse
import os
import statistics
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("read.c")


@cache
def _program() -> Path:
    """Compile read.c once per process, for this very machine."""
    program = Path(tempfile.mkdtemp(prefix="butter-bandwidth-")) / "read"
    compiler = os.environ.get("CC", "cc")
    flags = ["-O3", "-march=native", "-std=gnu11", "-pthread"]
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(program)], check=True)
    return program


def read_gb_per_s(threads: int, mib: int = 1024, repeats: int = 9) -> list[float]:
    """GB/s (10**9 bytes) of `repeats` passes over a buffer of `mib` MiB."""
    done = subprocess.run(
        [_program(), str(mib), str(threads), str(repeats)],
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(line) for line in done.stdout.split()]


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


if __name__ == "__main__":
    main()
