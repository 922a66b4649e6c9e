"""A result file of run_all.py and the questions that the report and the plots ask of it."""

import copy
import statistics
from collections.abc import Iterable
from typing import NamedTuple

OURS = "butter"


class Case(NamedTuple):
    """What was measured, but for the engine. None stands for "does not apply"."""

    shape: str
    threads: int
    kind: str
    tokens: int
    depth: int | None = None
    sequences: int | None = None
    neighbours: int | None = None

    @property
    def title(self) -> str:
        if self.kind == "prefill":
            return f"prefill {self.tokens}"
        if self.kind == "batch":
            return f"decode, {self.sequences} sequence{'s' * (self.sequences != 1)}"
        if self.neighbours:
            return "decode beside a busy process"
        return "decode, empty cache" if self.depth == 1 else f"decode at depth {self.depth}"


class Result:
    def __init__(self, data: dict):
        self.data = data
        self.cells: dict[Case, dict[str, list[dict]]] = {}
        for row in data["cells"]:
            case = Case(*(row.get(field) for field in Case._fields))
            self.cells.setdefault(case, {}).setdefault(row["entry"], []).append(row)
        self.shapes = list(data["shapes"])

    def cases(self, shape: str, **wanted) -> list[Case]:
        """In a stable order: the kind, then depth, sequences and tokens, then threads."""
        found = [c for c in self.cells if c.shape == shape
                 and all(getattr(c, k) == v for k, v in wanted.items())]  # fmt: skip
        kinds = ("decode", "prefill", "batch")
        return sorted(
            found,
            key=lambda c: (kinds.index(c.kind), c.neighbours or 0, c.depth or 0,
                           c.sequences or 0, c.tokens, c.threads),
        )  # fmt: skip

    def threads(self, shape: str) -> list[int]:
        return sorted({c.threads for c in self.cells if c.shape == shape})

    def entries(self, shape: str) -> list[str]:
        return [key.partition("/")[2] for key, e in self.data["entries"].items()
                if e["shape"] == shape]  # fmt: skip

    def about(self, shape: str, entry: str) -> dict:
        return self.data["entries"][f"{shape}/{entry}"]

    def is_ours(self, shape: str, entry: str) -> bool:
        return self.about(shape, entry)["engine"] == OURS

    def rates(self, case: Case, entry: str, key: str = "tok_s") -> list[float]:
        """In the order of the rounds."""
        rows = self.cells.get(case, {}).get(entry, [])
        return [r[key] for r in sorted(rows, key=lambda r: r["round"])]

    def ratios(self, case: Case, ours: str, theirs: str) -> list[float]:
        """Of the rounds that both have."""
        rows = self.cells[case]
        mine, other = ({r["round"]: r["tok_s"] for r in rows.get(e, [])} for e in (ours, theirs))
        return [mine[n] / other[n] for n in sorted(mine) if n in other]

    def peers(self, case: Case, ours: str) -> list[str]:
        """Those of like precision that were measured in this case, the fastest first."""
        precision = self.about(case.shape, ours)["precision"]
        found = [e for e in self.cells[case] if not self.is_ours(case.shape, e)
                 and self.about(case.shape, e)["precision"] == precision]  # fmt: skip
        return sorted(found, key=lambda e: -statistics.median(self.rates(case, e)))

    def same_file(self, case: Case, ours: str) -> str | None:
        """The peer that reads the very same file."""
        file = self.about(case.shape, ours)["file"]
        return next((e for e in self.peers(case, ours)
                     if self.about(case.shape, e)["file"] == file), None)  # fmt: skip

    def token_bytes(self, case: Case, entry: str) -> float | None:
        """What one step reads: weights, and the cache at the mean length of the cell."""
        about = self.about(case.shape, entry)
        weights, position = about.get("weight_bytes"), about.get("kv_bytes_per_position")
        if not weights or not position or case.kind != "decode":
            return None
        return weights + position * ((case.depth or 0) + case.tokens / 2)

    def share(self, case: Case, entry: str) -> tuple[float, float] | None:
        """GB/s, and its part of the bandwidth measured in the same rounds."""
        size = self.token_bytes(case, entry)
        if size is None:
            return None
        gb_s = [rate * size / 1e9 for rate in self.rates(case, entry)]
        limits = self.rates(case, entry, "limit_gb_s")
        parts = [a / b for a, b in zip(gb_s, limits, strict=True)]
        return statistics.median(gb_s), statistics.median(parts)

    def bandwidth(self, threads: int) -> dict[int, list[float]]:
        """By the size of the buffer in MiB, the largest first."""
        found: dict[int, list[float]] = {}
        for row in self.data["bandwidth"]:
            if row["threads"] == threads:
                found.setdefault(row["mib"], []).extend(row["gb_s"])
        return dict(sorted(found.items(), reverse=True))

    def others(self) -> list[float]:
        """Cores that other processes used, cell by cell."""
        return [c["others"] for c in self.data["cells"]]

    def rounds(self) -> list[int]:
        """How many rounds the cells have: the fewest and the most."""
        counts = [len(rows) for case in self.cells.values() for rows in case.values()]
        return [min(counts), max(counts)] if counts else [0, 0]


def merged(runs: list[dict]) -> dict:
    """Runs of other shapes or cells as one; what is said once, such as the machine, is the first's.

    Rounds are numbered on, so that each ratio stays within one run.
    """
    whole, *rest = copy.deepcopy(runs)
    for run in copy.deepcopy(rest):
        after = 1 + max((c["round"] for c in whole["cells"]), default=-1)
        for cell in run["cells"]:
            cell["round"] += after
        for part in ("cells", "bandwidth", "starts", "left_out"):
            whole[part] += run[part]
        for part in ("shapes", "entries"):
            whole[part] |= run[part]
        whole |= {part: value for part, value in run.items() if part not in whole}
        whole["complete"] &= run["complete"]
        whole["seconds"] += run["seconds"]
    made = [part for part in ("inside", "accuracy", "kernels") if part in whole]
    whole["left_out"] = [x for x in whole["left_out"] if not x.startswith(tuple(made))]
    return whole


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


def plural(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"
