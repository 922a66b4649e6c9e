"""Plots of a result: decode over the depth, over the threads, and beside a busy process."""

import statistics
from pathlib import Path


def draw(result, folder: Path) -> list[tuple[str, Path]]:
    """(title, file) of each plot; none where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, title, fill in [
        ("decode_depth", "Decode over the depth of the cache", over_depth),
        ("decode_threads", "Decode over the threads", over_threads),
        ("decode_neighbour", "Decode beside a busy process", beside),
    ]:
        path = folder / f"{name}.png"
        if figure(path, title, lambda axes, fill=fill: fill(axes, result)):
            made.append((title, path))
    return made


def figure(path: Path, title: str, fill) -> bool:
    """Saves what `fill` draws, unless it draws nothing."""
    from matplotlib import pyplot

    shape, axes = pyplot.subplots(figsize=(5.2, 3.2), dpi=110)
    try:
        if not fill(axes):
            return False
        axes.set_title(title, fontsize=10)
        axes.set_ylabel("tokens/s")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
        shape.tight_layout()
        shape.savefig(path, metadata={"Software": None})
        return True
    finally:
        pyplot.close(shape)


def errors(rates: list[float]) -> tuple[float, float, float]:
    """Median, and how far down and up the rounds go."""
    middle = statistics.median(rates)
    return middle, middle - min(rates), max(rates) - middle


def line(axes, x: list, cells: list[list[float]], label: str) -> None:
    middle, down, up = zip(*map(errors, cells), strict=True)
    axes.errorbar(x, middle, yerr=[down, up], marker="o", capsize=3, label=label)


def over_depth(axes, result) -> bool:
    threads, drawn = max(result.threads), False
    for engine in result.engines:
        cells = {d: result.cells(engine, threads, "decode", d) for d in result.depths()}
        cells = {d: rates for d, rates in cells.items() if rates}
        if len(cells) > 1:
            line(axes, list(cells), list(cells.values()), f"{engine}, {threads} threads")
            drawn = True
    if drawn:
        limit = statistics.median(result.bandwidth(threads, result.sizes[0])) * 1e9
        depths = result.depths()
        axes.plot(depths, [limit / result.token_bytes(d) for d in depths], "k--", lw=1,
                  label="read bandwidth")  # fmt: skip
        axes.set_xlabel("positions in the cache")
    return drawn


def over_threads(axes, result) -> bool:
    if len(result.threads) < 2:
        return False
    for engine in result.engines:
        cells = [result.cells(engine, t, "decode", 1) for t in result.threads]
        line(axes, result.threads, cells, engine)
    axes.set_xticks(result.threads)
    axes.set_xlabel("threads")
    return True


def beside(axes, result) -> bool:
    threads, width = max(result.threads), 0.35
    rows = {
        engine: [result.cells(engine, threads, "decode", 1, n) for n in (None, 1)]
        for engine in result.engines
    }
    rows = {engine: cells for engine, cells in rows.items() if all(cells)}
    if not rows:
        return False
    for i, label in enumerate(("alone", "one busy process beside it")):
        middle, down, up = zip(*(errors(c[i]) for c in rows.values()), strict=True)
        places = [n + (i - 0.5) * width for n in range(len(rows))]
        axes.bar(places, middle, width, yerr=[down, up], capsize=3, label=label)
    axes.set_xticks(range(len(rows)), rows)
    return True
