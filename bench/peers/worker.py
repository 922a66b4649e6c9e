"""An engine in a process of its own, driven cell by cell."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = {
    "butter": "ours.py",
    "llama.cpp": "llamacpp.py",
    "onnxruntime-genai": "ortgenai.py",
    "ctranslate2": "ct2.py",
}
MODULES = {
    "butter": "butter",
    "llama.cpp": "llama_cpp",
    "onnxruntime-genai": "onnxruntime_genai",
    "ctranslate2": "ctranslate2",
}
REPLY = "REPLY "


class EngineError(Exception):
    """The engine ended, or did not answer in time."""


class Worker:
    """Starts an engine's script; `start` is what it said after its first token.

    Raises EngineError from any call once the process is gone.
    """

    def __init__(self, engine: str, python: str, *, model: str, threads: int, context: int):
        self.engine, self.threads = engine, threads
        command = [python, HERE / SCRIPTS[engine], "--model", model, "--threads", threads]
        command += ["--context", context, "--since", time.monotonic()]
        environment = environment_for(python) | {"OMP_NUM_THREADS": str(threads)}
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed by close)
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches run_all.py alone
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.start = self._read(timeout_s=300)

    def ask(self, timeout_s: float = 600, **cell: Any) -> dict:
        """Run one cell (see protocol.answer)."""
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(cell) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._gone() from None
        return self._read(timeout_s)

    def cpu_s(self) -> float:
        """CPU time that it has used; 0 where the system does not tell."""
        return process_cpu_s(self._process.pid)

    def close(self) -> None:
        """End the process; at once if it does not want to."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith(REPLY):
                self._lines.put(line.removeprefix(REPLY))
        self._lines.put(None)

    def _read(self, timeout_s: float) -> dict:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            self._process.kill()
            raise EngineError(f"no answer in {timeout_s:.0f} s") from None
        if line is None:
            raise self._gone()
        return json.loads(line)

    def _gone(self) -> EngineError:
        code = self._process.wait()
        self._errors.seek(0)
        last = self._errors.read().strip().splitlines()[-1:]
        return EngineError(": ".join([f"ended with exit code {code}", *last])[:300])


class Neighbour:
    """A process that keeps one core busy."""

    def __enter__(self) -> "Neighbour":
        self._process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        time.sleep(0.1)
        return self

    def cpu_s(self) -> float:
        return process_cpu_s(self._process.pid)

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.wait()


def process_cpu_s(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def environment_for(python: str) -> dict[str, str]:
    """Ours, but another interpreter does not search our own folders for packages."""
    found = {**os.environ, "HF_HUB_OFFLINE": "1"}
    if python != sys.executable:
        found.pop("PYTHONPATH", None)
    return found


def python_for(engine: str, pythons: list[str]) -> str | None:
    """The first of these interpreters that can import it."""
    probe = f"from importlib.util import find_spec; exit(not find_spec('{MODULES[engine]}'))"
    for python in pythons:
        done = subprocess.run(
            [python, "-c", probe], stderr=subprocess.DEVNULL, env=environment_for(python)
        )
        if done.returncode == 0:
            return python
    return None
