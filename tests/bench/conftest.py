"""The scripts of bench/ are no package: they find each other through the path."""

import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "bandwidth"), str(BENCH / "peers")]
