"""Reads what clang counted: lines of csrc/metal that ran, by file; fails below the limit.

    python coverage.py _native.abi3.so all.profdata
"""

import json
import subprocess
import sys
from pathlib import Path

LIMIT = 90.0  # percent of all lines
ROOT = Path(__file__).resolve().parents[2]


def export(image: str, profile: str) -> list[dict]:
    """One entry for each file of csrc/metal."""
    command = ["llvm-cov-19", "export", image, f"-instr-profile={profile}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    folder = f"{ROOT}/csrc/metal/"
    return [f for f in json.loads(done.stdout)["data"][0]["files"] if folder in f["filename"]]


def missed(image: str, profile: str, file: str) -> list[int]:
    """Lines with code that never ran."""
    command = ["llvm-cov-19", "show", image, f"-instr-profile={profile}", file]
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    rows = [line.split("|") for line in text.splitlines()]
    return [int(row[0]) for row in rows if len(row) > 2 and row[1].strip() == "0"]


def spans(lines: list[int]) -> str:
    """12, 13, 14, 20 as "12-14 20"."""
    parts: list[list[int]] = []
    for line in lines:
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return " ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in parts)


def row(name: str, count: int, covered: int) -> str:
    return f"{name:24} {count:5} {covered:5} {100 * covered / max(count, 1):7.1f}"


def main() -> None:
    image, profile = sys.argv[1:]
    files = export(image, profile)
    count = covered = 0
    print(f"{'csrc/metal':24} lines   ran       %  did not run")
    for file in sorted(files, key=lambda f: f["filename"]):
        name, lines = file["filename"], file["summary"]["lines"]
        count += lines["count"]
        covered += lines["covered"]
        gaps = spans(missed(image, profile, name)) if lines["covered"] < lines["count"] else ""
        print(f"{row(Path(name).name, lines['count'], lines['covered'])}  {gaps}".rstrip())
    if not count:
        raise SystemExit("no lines of csrc/metal were counted")
    print(row("all", count, covered))
    percent = 100 * covered / count
    if percent < LIMIT:
        raise SystemExit(f"coverage is {percent:.1f} %, need {LIMIT} %")


if __name__ == "__main__":
    main()
