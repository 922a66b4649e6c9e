"""What a measurement depends on: the machine, what others do on it, and waiting until they rest."""

import os
import platform
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).parent
QUIET = 0.15  # cores that others use, up to which the machine counts as quiet
_STAT = Path("/proc/stat")


def describe() -> dict:
    """For the head of the report."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    commit = subprocess.run(
        ["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    return {
        "cpu": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "load_average": os.getloadavg()[0],
    }


def busy_s() -> float:
    """CPU time of all processes since the system started; 0 where it does not tell."""
    try:
        user, nice, system, _idle, _wait, irq, softirq = _STAT.read_text().split()[1:8]
    except OSError:
        return 0.0
    return sum(map(int, (user, nice, system, irq, softirq))) / os.sysconf("SC_CLK_TCK")


class Others:
    """Cores that other processes use while it is open; `mine` tells the CPU time of ours."""

    def __init__(self, mine):
        self._mine = mine

    def __enter__(self) -> "Others":
        self._start = time.monotonic(), busy_s(), self._mine()
        return self

    def __exit__(self, *_) -> None:
        start, busy, mine = self._start
        seconds = time.monotonic() - start
        used = busy_s() - busy - (self._mine() - mine)
        self.cores = max(0.0, used) / max(seconds, 1e-9)


def wait_until_quiet(patience_s: float) -> float:
    """Cores that others used last; waits while that is much, at most so long."""
    end = time.monotonic() + patience_s
    while True:
        with Others(time.process_time) as others:
            time.sleep(0.2)
        if others.cores <= QUIET or time.monotonic() >= end:
            return others.cores
        time.sleep(1)
