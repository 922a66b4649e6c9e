"""The scripts of bench/ run and their report can be made; tiny counts, so no figure means much."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# The read test of bench/bandwidth is C.
pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
BENCH = Path(__file__).resolve().parents[2] / "bench"


def run(script: str, *arguments) -> str:
    command = [sys.executable, str(BENCH / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench") / "result.json"
    run(
        "run_all.py", "--out", out, "--engines", "butter", "--threads", 1, 2, "--rounds", 1,
        "--prefills", 8, "--decode", 4, "--depths", 16, "--depth-tokens", 4, "--neighbour-tokens",
        4, "--skip", "kernels", "accuracy", "batch", "--patience", 0,
    )  # fmt: skip
    return out


def test_every_cell_has_a_rate(result):
    data = json.loads(result.read_text())
    cells = {(c["threads"], c["kind"], c.get("depth"), c.get("neighbours")) for c in data["cells"]}
    assert {(2, "decode", 1, 1), (1, "prefill", None, None), (2, "decode", 16, None)} <= cells
    assert all(c["tok_s"] > 0 and c["limit_gb_s"] > 0 for c in data["cells"])
    assert all(s["first_token_s"] > s["load_s"] > 0 for s in data["starts"])
    peaks = [s["peak_mib"] for s in data["starts"] if "peak_mib" in s]  # not of a start alone
    assert len(peaks) == 2 and min(peaks) > 0  # at one thread and at two
    assert {"eager", "argument_buffers", "icb"} == set(data["inside"][0]["modes"])
    assert data["complete"]


def test_the_report_has_every_section(result):
    text = run("report.py", result, "--images", result.parent)
    for heading in ("What is compared", "All cells", "Loading", "Inside a token",
                    "How to measure again"):  # fmt: skip
        assert f"## {heading}" in text


def test_a_kernel_is_timed_beside_its_limit():
    limits = json.dumps({"bandwidth": {"1": 20}, "core": {"f32": 100, "int8": 200}})
    rows = json.loads(
        run("kernels.py", "--threads", 1, "--only", "bits4 576", "--seconds", 0, "--limits", limits,
            "--json")
    )  # fmt: skip
    assert rows
    assert all(row["us"] > 0 and row["of_limit"] > 0 for row in rows)
