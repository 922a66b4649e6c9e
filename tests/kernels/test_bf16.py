"""Products of pairs of bf16 against float64; gemm bit for bit what gemv gives row by row."""

import numpy as np
import pytest

from support.launch import run_kernel
from support.oracle import assert_close
from support.places import on
from support.rand import normal

SHAPES = [(1, 2), (31, 34), (33, 62), (32, 64), (3, 576), (101, 6), (2, 4098), (65, 130)]  # (n, k)


def wide(x):
    return x.astype(np.float64)


def pairs(x):
    return np.ascontiguousarray(x).view(np.uint32)


@on("round_bf16")
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1023, 1024, 1025, 4097])
def test_rounding_is_to_nearest_even(machine, types, n):
    x = normal((3, n), types["T"])
    x[:, :1] = 1 + 2**-8  # half way between two bf16: the even one is 1
    got = run_kernel(machine, "round_bf16", types, tensors={"x": x})["out"]
    np.testing.assert_array_equal(wide(got), wide(x.astype(np.float32).astype(got.dtype)))


@on("gemm_bf16")
@pytest.mark.parametrize(("n", "k"), SHAPES)
@pytest.mark.parametrize("rows", [1, 4, 5])
def test_products_of_pairs_match_float64(machine, types, rows, n, k):
    x, w = normal((rows, k), "bf16"), normal((n, k), "bf16")
    tensors = {"x": pairs(x), "w": pairs(w)}
    gemm, gemv = (
        run_kernel(machine, name, types, tensors=tensors)["out"]
        for name in ("gemm_bf16", "gemv_bf16")
    )
    np.testing.assert_array_equal(gemm.view(np.uint8), gemv.view(np.uint8))
    assert_close(gemm, wide(x) @ wide(w).T, op="gemm", dtype=types["T"])


@pytest.mark.parametrize("bad", range(5))
def test_a_row_of_nan_stays_alone(machine, bad):
    x, w = normal((5, 66), "bf16"), normal((7, 66), "bf16")
    x[bad, 65] = np.nan
    tensors = {"x": pairs(x), "w": pairs(w)}
    got = run_kernel(machine, "gemm_bf16", {"T": "f32"}, tensors=tensors)["out"]
    assert_close(got, wide(x) @ wide(w).T, op="gemm", dtype="f32")
