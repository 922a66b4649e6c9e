"""What loading the real model costs."""

import subprocess
import sys

import pytest

from support.smollm2 import gguf_path

SCRIPT = """
import re, sys
import butter.model, butter.text.template, butter.text.tokenizer, numpy
def peak_kib():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak_kib()
model = butter.Model.load(sys.argv[1], device="cpu")
print((peak_kib() - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_loading_takes_at_most_one_and_a_half_times_the_file():
    path = gguf_path()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) <= 1.5 * path.stat().st_size
