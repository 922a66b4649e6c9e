"""The functions of csrc/cpu/simd.h against float64, compiled alone: no build is needed."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

CSRC = Path(__file__).resolve().parents[2] / "csrc"
MAIN = """
#define BUTTER_ISA base
#include "cpu/simd.h"
#include <cstdio>
using namespace butter::cpu::base;
int main(int, char** argv) {
  float x;
  while (std::fread(&x, 4, 1, stdin) == 1) {
    const float y = argv[1][0] == 't' ? tanh_(x) : argv[1][0] == 'e' ? exp_(x)
                  : argv[1][0] == 'l' ? log_(x) : argv[1][0] == 's' ? sin_(x) : cos_(x);
    std::fwrite(&y, 4, 1, stdout);
  }
}
"""


@pytest.fixture(scope="module")
def compute(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    folder = tmp_path_factory.mktemp("simd")
    (folder / "main.cpp").write_text(MAIN)
    flags = ["-std=c++20", "-O1", "-ffp-contract=off", f"-I{CSRC}"]
    subprocess.run(["g++", *flags, "main.cpp", "-o", "main"], cwd=folder, check=True)

    def run(name: str, x: np.ndarray) -> np.ndarray:
        x = x.astype(np.float32)
        done = subprocess.run([folder / "main", name], input=x.tobytes(), capture_output=True)
        return np.frombuffer(done.stdout, np.float32)

    return run


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    spacing = np.spacing(np.abs(want.astype(np.float32))).astype(np.float64)
    return np.abs(got.astype(np.float64) - want) / spacing


# What the comments of simd.h promise; sin and cos are absolute, in units of 2**-23.
RANGES = {
    "exp": (-87, 88, 2),
    "log": (1e-30, 1e30, 3),
    "tanh": (-10, 10, 4),
    "sin": (-100, 100, 2),
    "cos": (-100, 100, 2),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_function_is_right_to_a_few_ulp(compute, name):
    low, high, limit = RANGES[name]
    x = np.geomspace(low, high, 20001) if name == "log" else np.linspace(low, high, 20001)
    x = x.astype(np.float32)
    want = getattr(np, name)(x.astype(np.float64))
    got = compute(name, x)
    off = np.abs(got - want) * 2**23 if name in ("sin", "cos") else ulps(got, want)
    assert off.max() <= limit, f"{off.max():.1f} ulp at {x[off.argmax()]}"


def test_tanh_is_right_where_the_series_ends(compute):
    x = np.linspace(0.25, 0.35, 20001).astype(np.float32)
    for sign in (1, -1):
        off = ulps(compute("tanh", sign * x), np.tanh(sign * x.astype(np.float64)))
        assert off.max() <= 4, f"{off.max():.1f} ulp at {x[off.argmax()]}"


def test_tanh_keeps_signs_of_zero_and_the_ends(compute):
    got = compute("tanh", np.array([-0.0, 0.0, np.inf, -np.inf, np.nan]))
    assert np.signbit(got[:2]).tolist() == [True, False]
    assert got[2:4].tolist() == [1, -1] and np.isnan(got[4])
