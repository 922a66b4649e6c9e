"""The process that runs the tests: a device that crashes takes it down, and not the report."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..engine import MODES
from .facts import other_devices
from .kernels import Outcome, check
from .references import Case, read


@dataclass(frozen=True)
class Task:
    """What a worker has to do."""

    device: str
    threads: int | None = None
    references: Path | None = None  # another file than the installed one
    skip: frozenset[str] = frozenset()  # items that are done


MODEL = "tiny model"
OTHERS = "other devices"


def serve(pipe: Connection, stderr: str, task: Task) -> None:
    """Send ("facts", …), then ("begin", item) and ("end", outcomes) for each item; ("done",).

    What the device's library writes to stderr goes to a file, for the report.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    with open(stderr, "wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        device = _open(task)
    except Exception as error:
        pipe.send(("error", str(error) or type(error).__name__))
        return
    try:
        kernels, broken = _kernels(device, task), None
    except Exception as error:
        kernels, broken = [], Outcome("references", "all", "failed", str(error))
    items = [*(s for s, _, _ in kernels), *(f"{MODEL} {mode}" for mode in MODES)]
    pipe.send(("facts", dict(device.info), items))
    if broken and broken.item not in task.skip:
        pipe.send(("end", [broken.as_dict()]))
    for symbol, kernel, case in kernels:
        if symbol not in task.skip:
            pipe.send(("begin", symbol))
            pipe.send(("end", [o.as_dict() for o in check(device, kernel, case)]))
    for name, outcome in _models(device, task):
        pipe.send(("begin", name) if outcome is None else ("end", [outcome.as_dict()]))
    if OTHERS not in task.skip:
        pipe.send(("begin", OTHERS))
        pipe.send(("others", other_devices(device.kind)))
    pipe.send(("done",))


def _open(task: Task) -> Any:
    from ..loading import open_device

    return open_device(task.device, task.threads)


def _kernels(device, task: Task) -> list[tuple[str, Any, Case]]:
    """Each instance that this device has, with its test."""
    from ..manifest import manifest

    cases = read(task.references)
    found = []
    for name in manifest().names():
        for kernel in manifest().instances(name):
            absent = Case({}, {}, None, missing="the references do not know it")
            case = cases.get(kernel.symbol, absent)
            if device.kind != "cpu" or case.on_cpu:
                found.append((kernel.symbol, kernel, case))
    return found


def _models(device, task: Task) -> Iterator[tuple[str, Outcome | None]]:
    """For each mode (name, None) when it begins and (name, outcome) when it has ended."""
    from .model import TOLERANCE, TinyModel

    model, tokens = None, None
    for mode in MODES:
        name = f"{MODEL} {mode}"
        if name in task.skip:
            continue
        yield name, None
        try:
            model = model or TinyModel(device)
            found = model.check(mode)
        except Exception as error:
            yield name, Outcome(MODEL, mode, "failed", str(error) or type(error).__name__)
            continue
        tokens = tokens or found.tokens
        status, message = "ok", ""
        if not found.is_good:
            status = "wrong"
            message = f"logits are off by {found.max_error:.3g}, allowed {TOLERANCE:.3g}"
        elif found.tokens != tokens:
            status, message = "wrong", f"got the tokens {found.tokens}, another mode {tokens}"
        yield name, Outcome(MODEL, mode, status, message, found.max_error / TOLERANCE)
