"""What loading the real model costs."""

import subprocess
import sys

import pytest

from support.smollm2 import gguf_path

UNNEEDED = """
import sys
import butter
with butter.Model.load(sys.argv[1], device="cpu") as model:
    model.generate("Hello", chat=False, max_tokens=2)
    model.generate_batch(["A", "B"], chat=False, max_tokens=2, repetition_penalty=1.1)
print(sorted({"numpy", "jinja2", "_hashlib", "huggingface_hub"} & set(sys.modules)))
"""

PEAK = """
import re, sys
import butter
model = butter.Model.load(sys.argv[1], device="cpu", threads=2)
peak_kib = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(peak_kib / 1024 - model._need().engine.decode_weight_bytes / 2**20)
"""
BESIDE_MIB = 64  # 48 when this was written; 81 with numpy and with pages of the file


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_takes_little_beside_the_weights():
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(gguf_path())], capture_output=True, text=True, check=True
    )
    assert 0 < float(done.stdout) < BESIDE_MIB


def test_generating_imports_only_what_it_needs():
    """numpy takes 16 MiB, Jinja and OpenSSL 7."""
    done = subprocess.run(
        [sys.executable, "-c", UNNEEDED, str(gguf_path())],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
