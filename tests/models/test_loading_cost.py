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


def test_generating_imports_only_what_it_needs():
    """numpy takes 16 MiB, Jinja and OpenSSL 7."""
    done = subprocess.run(
        [sys.executable, "-c", UNNEEDED, str(gguf_path())],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
