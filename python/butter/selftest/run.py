"""All tests of a device, from a process that outlives its crashes."""

import contextlib
import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .kernels import Outcome
from .worker import MODEL, Task, serve

START_S = 120.0  # until the worker has opened the device
CLOSE_S = 30.0  # for the device to close after the last test
QUIET_S = 120.0  # without a word from the worker after that it counts as hung
MAX_DEATHS = 20
STDERR_BYTES = 4000

OnProgress = Callable[[int, int, str], None]  # done, of, what is tested now


@dataclass
class Report:
    """What was found."""

    device: dict[str, Any] = field(default_factory=dict)  # empty if it could not be opened
    others: dict[str, str] = field(default_factory=dict)  # what is said of other GPUs
    error: str = ""  # why not, or why the rest was not tested
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.status != "ok"]

    @property
    def is_good(self) -> bool:
        return not self.error and bool(self.outcomes) and not self.failures


def run(
    device: str = "auto",
    threads: int | None = None,
    *,
    references: Path | None = None,
    on_progress: OnProgress = lambda done, total, item: None,
    quiet_s: float = QUIET_S,
) -> Report:
    """Every kernel and a tiny model in all dispatch modes; after a crash the rest is tested."""
    start, report = time.perf_counter(), Report()
    task = Task(device, threads, references)
    for _ in range(MAX_DEATHS):
        died = _Attempt(task, report, on_progress, quiet_s).run()
        if died is None:
            break
        task = replace(task, skip=task.skip | _items(report))
    else:
        report.error = f"the test process died {MAX_DEATHS} times; the rest was not tested"
    report.seconds = time.perf_counter() - start
    return report


def _items(report: Report) -> frozenset[str]:
    """What has been tested, as the worker names it."""
    return frozenset(f"{o.item} {o.mode}" if o.item == MODEL else o.item for o in report.outcomes)


class _Attempt:
    """One worker from its start to its end."""

    def __init__(self, task: Task, report: Report, on_progress: OnProgress, quiet_s: float):
        self.task, self.report = task, report
        self.on_progress, self.quiet_s = on_progress, quiet_s
        self.items: list[str] = []
        self.current = ""

    def run(self) -> str | None:
        """None if it came to its end or cannot begin; else what it died of."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        with tempfile.TemporaryDirectory() as folder:
            stderr = Path(folder) / "stderr"
            process = context.Process(target=serve, args=(theirs, str(stderr), self.task))
            process.start()
            theirs.close()
            try:
                return self._listen(ours, process, stderr)
            finally:
                process.kill()
                process.join()
                ours.close()

    def _listen(self, pipe, process, stderr: Path) -> str | None:
        while True:
            try:
                patience = self.quiet_s if self.items else START_S
                message = pipe.recv() if pipe.poll(patience) else None
            except (EOFError, OSError):
                process.join()
                return self._death(how(process.exitcode), stderr)
            if message is None:
                return self._death(f"no answer for {patience:.0f} s", stderr)
            kind, *rest = message
            if kind == "done":
                process.join(CLOSE_S)  # Metal writes what it compiled into its cache at the end
                return None
            if kind == "error":
                self.report.error = rest[0]
                return None
            self._take(kind, rest)

    def _take(self, kind: str, rest: list) -> None:
        if kind == "facts":
            self.report.device, self.items = rest
        elif kind == "begin":
            self.current = rest[0]
            done = len(_items(self.report))
            self.on_progress(done, len(self.items), self.current)
        elif kind == "others":
            self.report.others = rest[0]
        else:
            self.report.outcomes += [Outcome(**o) for o in rest[0]]
            self.current = ""

    def _death(self, cause: str, stderr: Path) -> str | None:
        """Blame what was tested; None if nothing was, for then it would only die again."""
        said = ""
        with contextlib.suppress(OSError):
            said = stderr.read_bytes()[-STDERR_BYTES:].decode(errors="replace").strip()
        text = f"the test process died: {cause}" + (f": {said}" if said else "")
        if not self.current:
            self.report.error = text
            return None
        item, mode = self.current, "all"
        if item.startswith(MODEL):
            item, mode = MODEL, item.removeprefix(MODEL).strip()
        self.report.outcomes.append(Outcome(item, mode, "died", text))
        return text


def how(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit status {code}"
