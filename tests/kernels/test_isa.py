"""The narrower instruction sets, which a machine with a wider one never picks by itself."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ISAS = ["base", "v3", "v4"] if platform.machine() in ("x86_64", "AMD64") else ["neon"]
SUBJECTS = [HERE / f"test_{name}.py" for name in ("gemv", "gemm", "bf16", "attention")]
CHOSEN = "cpu and (extreme or long or any_number or pairs)"


@pytest.mark.parametrize("isa", ISAS)
def test_products_and_attention_are_right_on_each_instruction_set(isa):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-k", CHOSEN, *SUBJECTS]
    done = subprocess.run(
        command, env=os.environ | {"BUTTER_ISA": isa}, cwd=HERE.parents[1],
        capture_output=True, text=True,
    )  # fmt: skip
    if "this machine lacks" in done.stdout:
        pytest.skip(f"this machine lacks {isa}")
    assert done.returncode == 0, done.stdout + done.stderr
