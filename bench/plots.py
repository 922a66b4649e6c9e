"""Plots of a result: decode over the depth, over the threads, and beside a busy process."""

import statistics
from pathlib import Path

from result import Case, Result


def draw(result: Result, folder: Path) -> list[tuple[str, Path]]:
    """(title, file) of each plot of the first shape; none where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return []
    if not result.cells:
        return []
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    shape = result.shapes[0]
    threads = max(result.threads(shape))
    made = []
    for name, title, fill in [
        ("decode_depth", f"Decode over the depth of the cache, {threads} threads", over_depth),
        ("decode_threads", "Decode over the threads", over_threads),
        ("decode_neighbour", f"Decode with {threads} threads beside a busy process", beside),
    ]:
        path = folder / f"{name}.png"
        if figure(path, title, lambda axes, fill=fill: fill(axes, result, shape)):
            made.append((title, path))
    return made


def figure(path: Path, title: str, fill) -> bool:
    """Saves what `fill` draws, unless it draws nothing."""
    from matplotlib import pyplot

    shape, axes = pyplot.subplots(figsize=(6.4, 3.6), dpi=110)
    try:
        if not fill(axes):
            return False
        axes.set_title(title, fontsize=10)
        axes.legend(frameon=False, fontsize=7)
        shape.tight_layout()
        shape.savefig(path, metadata={"Software": None})
        return True
    finally:
        pyplot.close(shape)


def errors(rates: list[float]) -> tuple[float, float, float]:
    """Median, and how far down and up the rounds go."""
    middle = statistics.median(rates)
    return middle, middle - min(rates), max(rates) - middle


def line(axes, result: Result, shape: str, entry: str, points: dict[int, list[float]]) -> bool:
    """Our own entries are drawn through, the others dashed."""
    points = {x: rates for x, rates in sorted(points.items()) if rates}
    if len(points) < 2:
        return False
    middle, down, up = zip(*map(errors, points.values()), strict=True)
    style = "-" if result.is_ours(shape, entry) else "--"
    axes.errorbar(list(points), middle, yerr=[down, up], marker="o", markersize=4, capsize=3,
                  linestyle=style, label=entry)  # fmt: skip
    return True


def upright(axes, across: str) -> None:
    """Rates upwards from zero."""
    axes.set_xlabel(across)
    axes.set_ylabel("tokens/s")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)


def over_depth(axes, result: Result, shape: str) -> bool:
    threads = max(result.threads(shape))
    cases = result.cases(shape, kind="decode", threads=threads, neighbours=None)
    drawn = [
        line(axes, result, shape, e, {c.depth: result.rates(c, e) for c in cases})
        for e in result.entries(shape)
    ]
    if any(drawn):
        limit(axes, result, shape, cases)
    upright(axes, "positions in the cache")
    return any(drawn)


def limit(axes, result: Result, shape: str, cases: list[Case]) -> None:
    """What the measured bandwidth allows our smallest entry, which reads least."""
    ours = [e for e in result.entries(shape) if result.is_ours(shape, e)]
    known = [e for e in ours if all(result.token_bytes(c, e) for c in cases)]
    if not known:
        return
    entry = min(known, key=lambda e: result.token_bytes(cases[0], e) or 0)
    rates = {}
    for case in cases:
        if speeds := result.rates(case, entry, "limit_gb_s"):
            rates[case.depth] = statistics.median(speeds) * 1e9 / result.token_bytes(case, entry)
    axes.plot(list(rates), list(rates.values()), "k:", lw=1, label=f"bandwidth, {entry}")


def over_threads(axes, result: Result, shape: str) -> bool:
    cases = result.cases(shape, kind="decode", depth=1, neighbours=None)
    drawn = [
        line(axes, result, shape, e, {c.threads: result.rates(c, e) for c in cases})
        for e in result.entries(shape)
    ]
    axes.set_xticks(result.threads(shape))
    upright(axes, "threads")
    return any(drawn)


def beside(axes, result: Result, shape: str) -> bool:
    busy = result.cases(shape, neighbours=1)
    if not busy:
        return False
    alone = result.cases(
        shape, kind="decode", depth=1, threads=busy[0].threads, neighbours=None
    )
    rows = {e: [result.rates(c, e) for c in (*alone[:1], busy[0])] for e in result.entries(shape)}
    rows = {e: cells for e, cells in rows.items() if len(cells) == 2 and all(cells)}
    width = 0.38
    for i, label in enumerate(("alone", "one busy process beside it")):
        bars = [errors(cells[i]) for cells in rows.values()]
        if not bars:
            return False
        middle, down, up = zip(*bars, strict=True)
        places = [n + (i - 0.5) * width for n in range(len(rows))]
        axes.barh(places, middle, width, xerr=[down, up], capsize=3, label=label)
    axes.set_yticks(range(len(rows)), list(rows), fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("tokens/s")
    axes.grid(axis="x", alpha=0.3)
    return True
