"""Elementwise kernels against float64."""

import numpy as np
import pytest

from support.launch import run_kernel
from support.oracle import assert_close
from support.rand import normal

SIZES = [1, 31, 32, 33, 576, 1023, 1024, 1025, 2048, 4097]
FLOATS = ["f32", "f16", "bf16"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_add_is_rounded_once(machine, dtype, n):
    x, y = normal((3, n), dtype), normal((3, n), dtype, seed=1)
    got = run_kernel(machine, "add", {"T": dtype}, tensors={"x": x, "y": y})["out"]
    assert_close(got, x.astype(np.float64) + y.astype(np.float64), op="add", dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_add_bias_adds_one_row_to_all(machine, dtype, n):
    x, bias = normal((3, n), dtype), normal((n,), dtype, seed=1)
    got = run_kernel(machine, "add_bias", {"T": dtype}, tensors={"x": x, "bias": bias})["out"]
    assert_close(got, x.astype(np.float64) + bias.astype(np.float64), op="add", dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_silu_mul_matches_float64(machine, dtype, n):
    gate, up = normal((3, n), dtype, scale=4), normal((3, n), dtype, seed=1)
    got = run_kernel(machine, "silu_mul", {"T": dtype}, tensors={"gate": gate, "up": up})["out"]
    g = gate.astype(np.float64)
    want = g / (1 + np.exp(-g)) * up.astype(np.float64)
    assert_close(got, want, op="silu_mul", dtype=dtype)


def test_silu_saturates_at_both_ends(machine):
    gate = np.array([[-1e4, -200, -90, 0, 90, 1e4]], np.float32)
    got = run_kernel(
        machine, "silu_mul", {"T": "f32"}, tensors={"gate": gate, "up": np.ones_like(gate)}
    )["out"]
    assert_close(got, [[0, 0, 0, 0, 90, 1e4]], op="silu_mul", dtype="f32")
