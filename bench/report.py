"""Make docs/performance.md from a result of run_all.py.

    python bench/report.py bench/results/DATE.json > docs/performance.md

Plots go to docs/img where matplotlib is installed (pip install '.[bench]').
"""

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

import plots

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
MIN_BUSY = 0.1  # cores that others use, from which the report warns


class Result:
    """A result file and the questions that the sections ask of it."""

    def __init__(self, data: dict):
        self.data = data
        self.engines = list(dict.fromkeys(c["engine"] for c in data["cells"]))
        self.threads = sorted({c["threads"] for c in data["cells"]})

    def cells(self, engine: str, threads: int, kind: str, depth=None, neighbours=None) -> list:
        """Rates by round, in the order of the rounds."""
        wanted = (engine, threads, kind, depth, neighbours)
        keys = ("engine", "threads", "kind", "depth", "neighbours")
        rows = [c for c in self.data["cells"] if tuple(c.get(k) for k in keys) == wanted]
        return [c["tok_s"] for c in sorted(rows, key=lambda c: c["round"])]

    def depths(self) -> list[int]:
        return sorted({c["depth"] for c in self.data["cells"] if c["kind"] == "decode"})

    def bandwidth(self, threads: int, mib: int) -> list[float]:
        rows = [b for b in self.data["bandwidth"] if (b["threads"], b["mib"]) == (threads, mib)]
        return [rate for row in rows for rate in row["gb_s"]]

    @property
    def sizes(self) -> list[int]:
        return sorted({b["mib"] for b in self.data["bandwidth"]}, reverse=True)

    def token_bytes(self, depth: int) -> float:
        """Weights and cache that one token reads at the mean length of the cell."""
        facts = self.data["facts"]["butter"]
        shape = self.data["shape"]
        tokens = shape["decode"] if depth == 1 else shape["depth_tokens"]
        return facts["weight_bytes"] + facts["kv_bytes_per_position"] * (depth + tokens / 2)


def spread(values: Iterable[float], digits: int = 1) -> str:
    """Median (min..max); a single value alone."""
    values = list(values)
    if not values:
        return "–"
    middle = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def table(columns: list[str], rows: list[list]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def head(r: Result) -> str:
    d, m = r.data, r.data["machine"]
    others = [c["others"] for c in d["cells"] if not c.get("neighbours")]
    rounds = len({c["round"] for c in d["cells"]})
    text = [
        "# Performance",
        f"Made by `bench/report.py` from a run of `bench/run_all.py` on {d['date'][:10]}, commit "
        f"`{m['commit'] or '?'}`: {m['cores']} cores of {m['cpu']} ({m['memory_gib']} GiB, "
        f"{m['system']}), instruction set {d['facts']['butter']['isa']}; model {d['model']} "
        f"({d['model_bytes'] / 1e6:.1f} MB).",
        f"Figures are medians of {rounds} round{'s' * (rounds > 1)}, with (min..max). Engines "
        "alternate cell by cell, each in a process of its own that has loaded and warmed up.",
    ]
    if statistics.median(others) > MIN_BUSY:
        text.append(
            f"**The machine was not quiet:** other processes used {spread(others)} cores during "
            "the cells. Neither rates nor ratios say much."
        )
    elif max(others) > MIN_BUSY:
        text.append(f"Other processes used {spread(others, 2)} cores during the cells.")
    return "\n\n".join(text)


def limits(r: Result) -> str:
    columns = ["", *(f"{t} thread{'s' * (t > 1)}" for t in r.threads)]
    rows = [
        [f"read {mib} MiB, GB/s", *(spread(r.bandwidth(t, mib)) for t in r.threads)]
        for mib in r.sizes
    ]
    core = r.data["peaks"]
    for name, unit in [("f32", "GFLOP/s"), ("int8", "GOP/s")]:
        rows.append([f"{name} multiply-add, {unit}", *(f"{core[name] * t:.0f}" for t in r.threads)])
    note = "Arithmetic is that of one core by its own clock, times the threads."
    return f"## Limits of this machine\n\n{table(columns, rows)}\n\n{note}"


def speed(r: Result) -> str:
    shape = r.data["shape"]
    cases = [(f"decode {shape['decode']}, empty cache", "decode", 1)]
    cases += [(f"decode at depth {d}", "decode", d) for d in r.depths() if d > 1]
    cases.append((f"prefill {shape['prefill']}", "prefill", None))
    rows = []
    for title, kind, depth in cases:
        for threads in r.threads:
            for engine in r.engines:
                rates = r.cells(engine, threads, kind, depth)
                if rates:
                    rows.append([title, threads, engine, spread(rates)]
                                + share(r, kind, depth, threads, rates)
                                + [ratio(r, engine, threads, kind, depth)])  # fmt: skip
    columns = ["", "threads", "engine", "tok/s", "GB/s", "of the bandwidth", "Butter is"]
    facts = r.data["facts"]["butter"]
    note = (
        f"GB/s counts what a token must read: {facts['weight_bytes'] / 1e6:.1f} MB of weights and "
        f"{facts['kv_bytes_per_position'] / 1e3:.1f} kB per cached position, for each engine "
        f"alike; its share is of reading {r.sizes[0]} MiB. Ratios are of the same round."
    )
    return f"## Decode and prefill\n\n{table(columns, rows)}\n\n{note}"


def share(r: Result, kind: str, depth: int | None, threads: int, rates: list) -> list[str]:
    if kind != "decode" or depth is None:
        return ["", ""]
    gb_s = statistics.median(rates) * r.token_bytes(depth) / 1e9
    limit = statistics.median(r.bandwidth(threads, r.sizes[0]))
    return [f"{gb_s:.1f}", f"{gb_s / limit:.0%}"]


def ratio(r: Result, engine: str, *case) -> str:
    ours, theirs = r.cells("butter", *case), r.cells(engine, *case)
    if engine == "butter" or not ours:
        return ""
    return spread([a / b for a, b in zip(ours, theirs, strict=False)], 2) + " ×"


def neighbour(r: Result) -> str:
    rows = []
    for engine in r.engines:
        case = (max(r.threads), "decode", 1)
        alone, beside = r.cells(engine, *case), r.cells(engine, *case, 1)
        if beside:
            kept = statistics.median(beside) / statistics.median(alone)
            rows.append([engine, spread(alone), spread(beside), f"{kept:.0%}",
                         ratio(r, engine, *case, 1)])  # fmt: skip
    if not rows:
        return ""
    columns = ["engine", "alone, tok/s", "beside it, tok/s", "kept", "Butter is"]
    title = f"## One busy process beside {max(r.threads)} threads"
    return f"{title}\n\n{table(columns, rows)}"


def loading(r: Result) -> str:
    rows = []
    for threads in r.threads:
        for engine in r.engines:
            starts = [s for s in r.data["starts"]
                      if (s["engine"], s["threads"]) == (engine, threads)]  # fmt: skip
            cells = [spread([s[k] for s in starts], 2) for k in ("load_s", "first_token_s")]
            rows.append([threads, engine, *cells, spread([s["peak_mib"] for s in starts], 0)])
    columns = ["threads", "engine", "load, s", "process start to first token, s", "peak RSS, MiB"]
    note = (
        "The file lies in the page cache. The first token follows a prompt of 16; the peak is "
        f"taken after prefill {r.data['shape']['prefill']} and decode {r.data['shape']['decode']}. "
        "Starting Python and importing are part of the time to the first token."
    )
    return f"## Loading\n\n{table(columns, rows)}\n\n{note}"


def inside(r: Result) -> str:
    runs = sorted(r.data.get("inside", []), key=lambda x: x["threads"])
    if not runs:
        return ""
    first = runs[0]
    rows = []
    for run in runs:
        for mode, samples in run["modes"].items():
            host = spread([s["host_us_per_token"] for s in samples])
            rows.append([run["threads"], mode, host, spread([s["tokens_per_s"] for s in samples])])
    columns = ["threads", "submission", "host per token, µs", "tok/s"]
    per_layer = (first["phases"] - 1) / first["layers"]
    text = [
        "## Inside a token",
        f"One decode step is {first['dispatches']} kernels in {first['phases']} phases (about "
        f"{per_layer:.1f} a layer, {first['layers']} layers); a phase ends at a barrier.",
        table(columns, rows),
        *barriers(runs),
    ]
    for run in runs:
        total = sum(us for _, us in run["kernels"].values())
        ranked = sorted(run["kernels"].items(), key=lambda item: -item[1][1])
        rows = [[f"`{n}`", c, f"{us:.0f}", f"{us / total:.1%}"] for n, (c, us) in ranked]
        text.append(
            f"Each kernel of a step at depth {run['depth']} run alone, {run['threads']} "
            f"thread{'s' * (run['threads'] > 1)}: {total:.0f} µs together, the hand-over to the "
            "workers included."
        )
        text.append(table(["kernel", "times", "µs", "share"], rows))
    return "\n\n".join(text)


def barriers(runs: list[dict]) -> list[str]:
    """One line, where the native counters know the time that workers wait."""
    lines = []
    for run in runs:
        counters = run["counters"]
        if counters.get("barrier_ns") and counters.get("device_ns"):
            part = counters["barrier_ns"] / counters["device_ns"]
            lines.append(f"{run['threads']} threads: {part:.1%} of a token is spent in barriers.")
    return lines


def kernels(r: Result) -> str:
    rows = [
        [k["name"], k["threads"], f"{k['us']:.1f} ({k['us_min']:.1f}..{k['us_max']:.1f})",
         f"{k['gb_s']:.1f}", f"{k['gop_s']:.1f}", f"{k['of_limit']:.0%} of {k['bound']}"]
        for k in r.data.get("kernels", [])
    ]  # fmt: skip
    if not rows:
        return ""
    columns = ["kernel", "threads", "µs", "GB/s", "GOP/s", "of the nearer limit"]
    note = (
        "Matrices are rows × columns. Inputs rotate through 128 MiB, except in gemm; bytes are "
        "those of the parameters, operations two per multiply-add. Copies that do not depend on "
        "one another share a phase, so no barrier is part of it. Sampling is its five kernels."
    )
    return f"## Kernels\n\n{table(columns, rows)}\n\n{note}"


def accuracy(r: Result) -> str:
    prompts = r.data.get("accuracy", [])
    if not prompts:
        return ""
    rows = [
        [p["prompt"], p["positions"], f"{p['kl_mean']:.1e}", f"{p['kl_max']:.1e}",
         f"{p['argmax_same']} / {p['positions']}", f"{p['max_delta']:.2f}",
         f"{p['fast_reference_delta']:.2f}", f"{p['exact_reference_delta']:.4f}"]
        for p in prompts
    ]  # fmt: skip
    total = sum(p["positions"] for p in prompts)
    mean = sum(p["kl_mean"] * p["positions"] for p in prompts) / total
    worst = max(p["kl_max"] for p in prompts)
    same = sum(p["argmax_same"] for p in prompts)
    columns = ["prompt", "positions", "KL mean", "KL max", "same likeliest token", "max Δlogit",
               "fast to transformers", "exact to transformers"]  # fmt: skip
    note = (
        f"Over all {total} positions: mean KL {mean:.1e} nats, at most {worst:.1e}; the likeliest "
        f"token is the same at {same}. The last two columns are the largest difference of a logit "
        "in the last row, from transformers in f32."
    )
    title = "## Accuracy of int8 activations\n\nFast mode (the default) against `exact=True`, whose"
    return f"{title} products take f32 activations.\n\n{table(columns, rows)}\n\n{note}"


def instructions(_: Result) -> str:
    path = HERE / "callgrind.json"
    if not path.exists():
        return ""
    stored = json.loads(path.read_text())
    return (
        "## Instructions\n\n"
        f"One decode step of the tiny test model takes {stored['instructions_per_step']:,} "
        f"instructions on one thread, instruction set {stored['isa']} (callgrind). "
        f"`bench/callgrind.sh` fails if that changes by more than {stored['tolerance']:.0%}."
    )


def notes(_: Result) -> str:
    path = HERE / "notes.md"
    return path.read_text().strip() if path.exists() else ""


def again(r: Result) -> str:
    left = r.data["left_out"]
    text = [
        "## How to measure again",
        "On a quiet machine:\n\n```\npython -m venv peers && CMAKE_ARGS=-DGGML_NATIVE=ON \\\n"
        "  peers/bin/pip install --no-binary llama-cpp-python llama-cpp-python\n"
        "pip install '.[demo,bench]'\n"
        "python bench/run_all.py --peer-python peers/bin/python --rounds 3 --out result.json\n"
        "python bench/report.py result.json > docs/performance.md\n```",
        f"This run took {r.data['seconds']:.0f} s.",
    ]
    if left:
        text.append("Left out: " + "; ".join(left) + ".")
    return "\n\n".join(text)


SECTIONS: list[Callable[[Result], str]] = [
    head, limits, speed, neighbour, loading, inside, kernels, accuracy, instructions, notes, again,
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", type=Path)
    parser.add_argument("--images", type=Path, default=DOCS / "img")
    options = parser.parse_args()
    result = Result(json.loads(options.result.read_text()))
    parts = [section(result) for section in SECTIONS]
    images = plots.draw(result, options.images)
    if images:
        lines = [f"![{title}]({os.path.relpath(path, DOCS)})" for title, path in images]
        parts.insert(SECTIONS.index(neighbour) + 1, "\n".join(lines))
    print("\n\n".join(part for part in parts if part))


if __name__ == "__main__":
    main()
