"""Lines per folder, and a limit on the length of one file.

    python tools/size.py                  fails where a hand-written file is over 700 lines
    python tools/size.py --against main   also shows the change since that commit

A file may be longer if its first five lines say why: `size: REASON`.
"""

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

LIMIT = 700
KINDS = {".py", ".pyi", ".cpp", ".h", ".c", ".cu", ".mm", ".m", ".metal", ".sh", ".cmake", ".yml"}
GENERATED = ("golden", "generated")


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], check=True, capture_output=True, text=True, errors="replace"
    ).stdout


def tracked() -> list[Path]:
    """Hand-written source files, tracked or about to be."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    paths = [Path(name) for name in sorted(set(names)) if name]
    return [p for p in paths if p.suffix in KINDS and p.is_file() and not is_generated(p)]


def is_generated(path: Path) -> bool:
    return any(part.startswith(GENERATED) for part in path.parts)


def folder(path: Path) -> str:
    """The folder a reader would name: two levels deep."""
    return "/".join(path.parts[:-1][:2]) or "."


def change_since(commit: str) -> Counter[str]:
    """Lines added minus lines removed per folder, since `commit`."""
    change: Counter[str] = Counter()
    for line in git("diff", "--numstat", "--no-renames", commit).splitlines():
        added, removed, name = line.split("\t")
        path = Path(name)
        if added != "-" and path.suffix in KINDS and not is_generated(path):
            change[folder(path)] += int(added) - int(removed)
    return change


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="COMMIT", help="show the change since this commit")
    options = parser.parse_args()

    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    too_long = []
    for path in tracked():
        text = path.read_text(errors="replace").splitlines()
        lines[folder(path)] += len(text)
        files[folder(path)] += 1
        if len(text) > LIMIT and not any("size: " in line for line in text[:5]):
            too_long.append((path, len(text)))
    change = change_since(options.against) if options.against else Counter()

    print(f"{'folder':24} {'files':>6} {'lines':>7}" + ("  change" if options.against else ""))
    for name in sorted(set(lines) | set(change)):
        more = f" {change[name]:+7}" if options.against else ""
        print(f"{name:24} {files[name]:6} {lines[name]:7}{more}")
    print(f"{'all':24} {files.total():6} {lines.total():7}")

    for path, count in too_long:
        print(f"{path}: {count} lines, at most {LIMIT}: split it by idea", file=sys.stderr)
    return 1 if too_long else 0


if __name__ == "__main__":
    raise SystemExit(main())
