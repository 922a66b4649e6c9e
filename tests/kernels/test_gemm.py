"""Matrix times many rows: against float64, and bit for bit what gemv gives row by row."""

import numpy as np
import pytest
from packing import FORMATS

from support.launch import run_kernel
from support.oracle import assert_close
from support.places import format_id, on
from support.rand import normal
from support.tiles import random_int8_rows, random_matrix

SHAPES = [(1, 1), (31, 33), (33, 31), (32, 32), (3, 576), (101, 3), (2, 4097)]  # (n, k)
LARGE = [(4097, 1), (4097, 33), (99, 4097), (576, 576)]
ROWS = range(1, 10)
TILES = [(1, 1), (33, 2)]  # (n, groups of k)
formats = pytest.mark.parametrize("statics", FORMATS, ids=format_id)


def wide(x):
    return x.astype(np.float64)


def both(machine, name, types, statics, tensors, dims=None):
    """What gemm gives, having checked that no row depends on the others: gemv gives the same."""
    gemm, gemv = (
        run_kernel(machine, kind + name, types, statics, tensors, dims=dims)["out"]
        for kind in ("gemm", "gemv")
    )
    bits = f"u{gemm.itemsize}"
    np.testing.assert_array_equal(gemm.view(bits), gemv.view(bits))
    return gemm


@on("gemm")
@pytest.mark.parametrize(("n", "k"), SHAPES)
@pytest.mark.parametrize("rows", [1, 5])
def test_gemm_matches_float64_and_gemv(machine, types, rows, n, k):
    x, w = normal((rows, k), types["T"]), normal((n, k), types["W"])
    got = both(machine, "", types, {}, {"x": x, "w": w})
    assert_close(got, wide(x) @ wide(w).T, op="gemm", dtype=types["T"])


@pytest.mark.parametrize("machine", ["cpu"], indirect=True)
@pytest.mark.parametrize("weight", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("n", "k"), LARGE)
def test_large_gemm_matches_float64_and_gemv(machine, weight, n, k):
    x, w = normal((9, k)), normal((n, k), weight)
    got = both(machine, "", {"T": "f32", "W": weight}, {}, {"x": x, "w": w})
    assert_close(got, wide(x) @ wide(w).T, op="gemm", dtype="f32")


@on("gemm_q")
@formats
@pytest.mark.parametrize(("n", "groups"), TILES)
def test_gemm_q_matches_float64_and_gemv_q(machine, types, statics, n, groups):
    matrix = random_matrix(n, groups, statics)
    x = normal((5, groups * statics["G"]), types["T"])
    tensors = matrix.tensors(machine.warp) | {"x": x}
    got = both(machine, "_q", types, statics, tensors, matrix.dims)
    assert_close(got, wide(x) @ matrix.values().T, op="gemm", dtype=types["T"])


@on("gemm_qi8")
@formats
@pytest.mark.parametrize(("n", "groups"), TILES)
def test_gemm_qi8_matches_float64_and_gemv_qi8(machine, types, statics, n, groups):
    matrix = random_matrix(n, groups, statics)
    x = random_int8_rows(5, groups * statics["G"], statics["G"])
    tensors = matrix.tensors(machine.warp) | x.tensors()
    got = both(machine, "_qi8", types, statics, tensors, matrix.dims)
    assert_close(got, x.values() @ matrix.values().T, op="gemm", dtype=types["T"])


@pytest.mark.parametrize("rows", ROWS)
def test_quantized_products_of_any_number_of_rows(machine, rows):
    statics = FORMATS[0]
    matrix = random_matrix(17, 5, statics)
    x, x8 = normal((rows, 160)), random_int8_rows(rows, 160, 32)
    tensors = matrix.tensors(machine.warp) | {"x": x} | x8.tensors()
    for name, values in [("_q", wide(x)), ("_qi8", x8.values())]:
        got = both(machine, name, {"T": "f32"}, statics, tensors, matrix.dims)
        assert_close(got, values @ matrix.values().T, op="gemm", dtype="f32")


@pytest.mark.parametrize("rows", ROWS)
def test_dense_products_of_any_number_of_rows(machine, rows):
    x, w = normal((rows, 65)), normal((33, 65), "bf16")
    got = both(machine, "", {"T": "f32", "W": "bf16"}, {}, {"x": x, "w": w})
    assert_close(got, wide(x) @ wide(w).T, op="gemm", dtype="f32")


@pytest.mark.parametrize("machine", ["cpu"], indirect=True)
@formats
def test_long_rows_match_float64_and_gemv(machine, statics):
    matrix = random_matrix(45, 4224 // statics["G"], statics)
    x, x8 = normal((6, 4224)), random_int8_rows(6, 4224, statics["G"])
    tensors = matrix.tensors(machine.warp) | {"x": x} | x8.tensors()
    for name, values in [("_q", wide(x)), ("_qi8", x8.values())]:
        got = both(machine, name, {"T": "f32"}, statics, tensors, matrix.dims)
        assert_close(got, values @ matrix.values().T, op="gemm", dtype="f32")


@pytest.mark.parametrize("name", ["gemm", "gemm_q"])
@pytest.mark.parametrize("bad", range(5))
def test_a_row_of_nan_stays_alone(machine, name, bad):
    statics = FORMATS[0] if name == "gemm_q" else {}
    matrix = random_matrix(7, 2, FORMATS[0])
    x = normal((5, 64))
    x[bad, 63] = np.nan
    tensors = matrix.tensors(machine.warp) | {"x": x, "w": matrix.values().astype(np.float32)}
    types = {"T": "f32"} if statics else {"T": "f32", "W": "f32"}
    got = run_kernel(machine, name, types, statics, tensors, dims=matrix.dims)["out"]
    assert_close(got, wide(x) @ matrix.values().T, op="gemm", dtype="f32")
