"""The comparison as it grows: blocks of cells, in which the engines alternate."""

import json
import os
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bandwidth import read_gb_per_s
from entries import Entry
from machine import Others, describe, wait_until_quiet
from plan import Plan
from shapes import SHAPES
from worker import EngineError, Neighbour, Worker

HERE = Path(__file__).parent
SEED = 7  # of prompts at depth: the same in each round, so that caches keep them
LIMIT_MIB = 512  # read beside each round of a cell
SETTLE_S = 0.05  # until the threads of the engine before have gone to sleep


class Comparison:
    """All results; `save` after every block, so that an interrupted run leaves what it has."""

    def __init__(self, out: Path, budget_s: float, patience_s: float, mode: str):
        self.out, self.budget_s, self.patience_s = out, budget_s, patience_s
        self.began = time.monotonic()
        self.result: dict = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "mode": mode,
            "machine": describe(),
            "shapes": {},
            "entries": {},
            "bandwidth": [],
            "starts": [],
            "cells": [],
            "left_out": [],
            "complete": False,
        }

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    def save(self) -> None:
        """Whole or not at all: a reader never sees half a file."""
        self.result["seconds"] = self.elapsed_s
        self.out.parent.mkdir(parents=True, exist_ok=True)
        part = self.out.with_name(self.out.name + ".part")
        part.write_text(json.dumps(self.result, indent=1) + "\n")
        os.replace(part, self.out)

    def leave_out(self, what: str, why: str) -> None:
        text = f"{what} ({why})"
        if text not in self.result["left_out"]:
            self.result["left_out"].append(text)
            self.say(f"left out: {text}")

    def fits(self, what: str, seconds: float = 0) -> bool:
        """Whether there is time for it; notes what is left out."""
        if self.elapsed_s + seconds <= self.budget_s:
            return True
        self.leave_out(what, "no time")
        return False

    def say(self, text: str) -> None:
        print(f"{self.elapsed_s:5.0f} s  {text}", file=sys.stderr, flush=True)

    def limit(self, threads: int, mib: int = LIMIT_MIB, repeats: int = 2) -> float:
        """GB/s of reading memory now; noted."""
        rates = read_gb_per_s(threads, mib, repeats)
        self.result["bandwidth"].append({"threads": threads, "mib": mib, "gb_s": rates})
        return statistics.median(rates)

    def cell_rates(self, **wanted) -> list[float]:
        rows = self.result["cells"]
        return [r["tok_s"] for r in rows if all(r.get(k) == v for k, v in wanted.items())]


class Block:
    """The entries of one shape at one number of threads, each in a process of its own.

    An entry that fails is left out from then on; the others go on.
    """

    def __init__(self, comparison: Comparison, shape: str, threads: int, plan: Plan):
        self.comparison, self.shape, self.threads, self.plan = comparison, shape, threads, plan
        self.workers: dict[str, Worker] = {}
        self.starts: dict[str, dict] = {}
        self.place = f"{shape}, {threads} thread{'s' * (threads != 1)}"
        comparison.result["shapes"].setdefault(shape, {"title": SHAPES[shape].title})

    def __enter__(self) -> "Block":
        return self

    def __exit__(self, *_) -> None:
        for worker in self.workers.values():
            worker.close()
        self.comparison.save()

    def start(self, entry: Entry, python: str, model: str) -> None:
        result = self.comparison.result
        try:
            worker = Worker(
                entry.engine, python, model=model, threads=self.threads, context=self.plan.context
            )
        except EngineError as error:
            self.comparison.leave_out(f"{self.place}, {entry.name}", str(error))
            return
        self.workers[entry.name] = worker
        about = {"engine": entry.engine, "shape": self.shape, "precision": entry.precision,
                 "file": entry.file, "file_bytes": size(Path(model))}  # fmt: skip
        facts = {**worker.start["facts"], "can": worker.start["can"]}
        result["entries"].setdefault(entry.key, {**about, **facts})
        row = {"entry": entry.name, "shape": self.shape, "threads": self.threads}
        row |= {key: worker.start[key] for key in ("import_s", "load_s", "first_token_s")}
        self.starts[entry.name] = row
        result["starts"].append(row)
        self.comparison.say(f"{self.place}: {entry.name} loaded")

    def alternate(self, cell: dict, names: list[str] | None = None, **more) -> None:
        """Rounds of a cell: A B C, A B C, …, each round beside a measure of the bandwidth."""
        comparison, names = self.comparison, names or list(self.workers)
        for number in range(self.plan.rounds):
            if number and not comparison.fits(f"{self.title(cell)}, round {number + 1}"):
                return
            wait_until_quiet(comparison.patience_s)
            limit = comparison.limit(self.threads)
            for name in names:
                self.measure(name, cell, round=number, limit_gb_s=limit, **more)

    def measure(self, name: str, cell: dict, besides=lambda: 0.0, **more) -> None:
        """One cell; `besides` tells the CPU time of a process that is no disturbance."""
        worker = self.workers.get(name)
        if worker is None:
            return
        time.sleep(SETTLE_S)
        try:
            with Others(lambda: worker.cpu_s() + besides()) as others:
                answer = worker.ask(**cell)
        except EngineError as error:
            self.drop(name, self.title(cell), error)
            return
        row = {"entry": name, "shape": self.shape, "threads": self.threads, **cell, **more}
        row |= {**answer, "others": others.cores}
        self.comparison.result["cells"].append(row)
        beside = " beside a busy process" if more.get("neighbours") else ""
        self.comparison.say(f"{self.title(cell)}{beside}: {name} {answer['tok_s']:.1f} tok/s")

    def drop(self, name: str, during: str, error: EngineError) -> None:
        self.comparison.leave_out(f"{name} from {during} on", str(error))
        self.workers.pop(name).close()

    def title(self, cell: dict) -> str:
        extra = {"decode": "depth", "batch": "sequences"}.get(cell["kind"], "tokens")
        return f"{self.place}, {cell['kind']} {cell[extra]}"

    # -- the kinds of cells --------------------------------------------------------------------

    def basics(self) -> None:
        plan = self.plan
        self.alternate({"kind": "decode", "tokens": plan.decode, "depth": 1, "seed": SEED})
        if plan.prefills:
            self.alternate({"kind": "prefill", "tokens": plan.prefills[0], "seed": SEED})
        for name, worker in list(self.workers.items()):
            self.starts[name].update(worker.ask(kind="memory"))
        self.comparison.save()

    def long_prefill(self) -> None:
        for tokens in self.plan.prefills[1:]:
            if self.comparison.fits(f"{self.place}, prefill {tokens}"):
                self.alternate({"kind": "prefill", "tokens": tokens, "seed": SEED})

    def neighbour(self) -> None:
        tokens = self.plan.neighbour_tokens
        title = f"{self.place}, beside a busy process"
        if not tokens or not self.comparison.fits(title):
            return
        cell = {"kind": "decode", "tokens": tokens, "depth": 1, "seed": SEED}
        comparison = self.comparison
        for number in range(self.plan.rounds):
            wait_until_quiet(comparison.patience_s)
            limit = comparison.limit(self.threads)
            with Neighbour() as busy:
                for name in list(self.workers):
                    self.measure(name, cell, busy.cpu_s,
                                 round=number, limit_gb_s=limit, neighbours=1)  # fmt: skip

    def batches(self) -> None:
        plan = self.plan
        names = [n for n, w in self.workers.items() if "batch" in w.start["can"]]
        for name in set(self.workers) - set(names) if plan.batches else ():
            self.comparison.leave_out(f"{self.shape}/{name}, batch", "not there")
        for sequences in plan.batches if names else ():
            if self.comparison.fits(f"{self.place}, batch {sequences}"):
                cell = {"kind": "batch", "tokens": plan.batch_tokens, "depth": plan.batch_prompt,
                        "sequences": sequences, "seed": SEED}  # fmt: skip
                self.alternate(cell, names)

    def depths(self, depths: list[int]) -> None:
        """Each engine reads the deep prompt once, then the rounds alternate."""
        for depth in sorted(depths):
            cell = {"kind": "decode", "tokens": self.plan.depth_tokens, "depth": depth,
                    "seed": SEED}  # fmt: skip
            names = [n for n in self.workers if self.can_fill(n, depth, self.title(cell))]
            for name in names:
                self.fill(name, cell)
            if names := [n for n in names if n in self.workers]:
                self.alternate(cell, names)
            self.comparison.save()

    def fill(self, name: str, cell: dict) -> None:
        try:
            self.workers[name].ask(**{**cell, "tokens": 1})
        except EngineError as error:
            self.drop(name, self.title(cell), error)

    def can_fill(self, name: str, depth: int, title: str) -> bool:
        """Whether its prompts are read in time; attention makes a deep one slower by position."""
        rates = self.comparison.cell_rates(
            entry=name, shape=self.shape, threads=self.threads, kind="prefill"
        )
        if not rates:
            return False
        seconds = depth / statistics.median(rates) * (1 + depth / 4096)
        if not self.workers[name].start["keeps_prompts"]:
            seconds *= 1 + self.plan.rounds
        if seconds > self.plan.longest_fill_s:
            self.comparison.leave_out(f"{title}, {name}", f"its prompts would take {seconds:.0f} s")
            return False
        return self.comparison.fits(f"{title}, {name}", seconds)

    def inside(self) -> None:
        """What only our own engine tells: the cost of submitting, where a token's time goes."""
        name = next((n for n, w in self.workers.items() if w.engine == "butter"), None)
        if name is None or not self.comparison.fits("inside a token", 10):
            return
        worker, depth = self.workers[name], min(1024, self.plan.context - 128)
        tokens = min(64, self.plan.decode)
        try:
            modes = worker.ask(kind="modes", tokens=tokens, repeats=3)
            profile = worker.ask(kind="profile", depth=depth, repeats=5)
        except EngineError as error:
            self.drop(name, "inside a token", error)
            return
        about = {"entry": name, "threads": self.threads, "depth": depth}
        self.comparison.result.setdefault("inside", []).append({**about, **modes, **profile})


def size(path: Path) -> int:
    """Of a file, or of the files in a folder."""
    if path.is_dir():
        return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    return path.stat().st_size


def script(name: str, *arguments: str) -> list[dict]:
    """The JSON of another script of this folder, run with our own Python."""
    command = [sys.executable, str(HERE / name), "--json", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)
