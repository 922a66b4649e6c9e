"""The quantization table can be made; one form that leaves most of the file alone."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "quantization.py"


def test_a_form_is_compared_with_the_shipped_file():
    command = [sys.executable, str(SCRIPT), "--forms", "q4", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    shipped, q4 = json.loads(done.stdout)
    assert shipped["kl"] == 0 and "weight_error" not in shipped
    assert 0 < q4["kl"] < 0.2 and q4["argmax"] > 0.7
    assert q4["decode_mb"] < shipped["decode_mb"] and q4["of_plain"] < 1
