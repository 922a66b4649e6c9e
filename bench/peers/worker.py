"""An engine in a process of its own, driven cell by cell."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = {"butter": "ours.py", "llama.cpp": "llamacpp.py"}
MODULES = {"butter": "butter", "llama.cpp": "llama_cpp"}
REPLY = "REPLY "
_STAT = Path("/proc/stat")


class Worker:
    """Starts an engine's script; `facts` is what it said after its first token."""

    def __init__(self, engine: str, python: str, *, model: str, threads: int, context: int):
        self.engine, self.threads = engine, threads
        command = [python, HERE / SCRIPTS[engine], "--model", model, "--threads", threads]
        command += ["--context", context, "--since", time.monotonic()]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.facts = self._read()

    def ask(self, **cell: Any) -> dict:
        """Run one cell (see protocol.answer)."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(cell) + "\n")
        self._process.stdin.flush()
        return self._read()

    def cpu_s(self) -> float:
        """CPU time that it has used; 0 where the system does not tell."""
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _read(self) -> dict:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith(REPLY):
                return json.loads(line.removeprefix(REPLY))
        raise SystemExit(f"{self.engine} ended with exit code {self._process.wait()}")

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Neighbour:
    """A process that keeps one core busy."""

    def __enter__(self) -> "Neighbour":
        self._process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        time.sleep(0.1)
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.wait()


def busy_s() -> float:
    """CPU time of all processes since the system started; 0 where it does not tell."""
    try:
        user, nice, system, _idle, _wait, irq, softirq = _STAT.read_text().split()[1:8]
    except OSError:
        return 0.0
    return sum(map(int, (user, nice, system, irq, softirq))) / os.sysconf("SC_CLK_TCK")


def has_engine(engine: str, python: str) -> bool:
    """Whether that Python can import it."""
    probe = f"from importlib.util import find_spec; exit(not find_spec('{MODULES[engine]}'))"
    return subprocess.run([python, "-c", probe]).returncode == 0
