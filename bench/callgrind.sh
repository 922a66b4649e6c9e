#!/usr/bin/env bash
# Instructions of one decode step of a tiny model, which do not depend on how busy the machine is.
#
#   bench/callgrind.sh            compare with bench/callgrind.json; fails outside its tolerance
#   bench/callgrind.sh --update   store the new figure
#
# Two runs of different length are subtracted, so that starting Python and loading drop out.
# Valgrind knows no AVX-512, hence the instruction set. PYTHON names the interpreter.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d "${TMPDIR:-/tmp}/butter-callgrind.XXXXXX")
trap 'rm -rf "$work"' EXIT
export BUTTER_ISA=${BUTTER_ISA:-v3} PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1
short=8 long=72

command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
"$python" "$here/callgrind_steps.py" "$work" "$short" # writes the model, and Python's bytecode

# count STEPS: instructions of a whole run
count() {
  valgrind --tool=callgrind --callgrind-out-file="$work/$1.out" \
    "$python" "$here/callgrind_steps.py" "$work" "$1" 2>"$work/$1.log" ||
    { cat "$work/$1.log" >&2; return 1; }
  sed -n 's/.*Collected : *//p' "$work/$1.log"
}

few=$(count $short)
many=$(count $long)
"$python" - "$here/callgrind.json" $(((many - few) / (long - short))) "${1:-}" <<'PYTHON'
import json
import os
import sys
from pathlib import Path

path, got, flag = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if flag == "--update":
    stored = {"instructions_per_step": got, "isa": os.environ["BUTTER_ISA"], "tolerance": 0.05}
    path.write_text(json.dumps(stored, indent=2) + "\n")
    print(f"stored: {got:,} instructions per step")
    sys.exit()
stored = json.loads(path.read_text())
change = got / stored["instructions_per_step"] - 1
print(f"{got:,} instructions per step, {change:+.1%} against the stored figure")
if abs(change) > stored["tolerance"]:
    sys.exit(f"more than {stored['tolerance']:.0%}: look why, then run with --update")
PYTHON
