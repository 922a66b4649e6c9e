"""Matrix times vector, dense and quantized, against float64."""

import numpy as np
import pytest
from packing import FORMATS

from support.launch import run_kernel
from support.oracle import assert_close
from support.places import format_id, on
from support.rand import normal
from support.tiles import Int8Rows, Matrix, random_int8_rows, random_matrix

# (n, k): rows of w that end a group early, columns that end a vector early.
SHAPES = [
    (1, 1), (31, 33), (33, 31), (32, 32), (3, 576), (576, 3), (33, 576), (1, 4097), (5, 4097),
]  # fmt: skip
LARGE = [(4097, 1), (4097, 33), (99, 4097)]  # too many groups for the interpreter
# (n, groups of k).
TILES = [(1, 1), (32, 5), (65, 3)]
formats = pytest.mark.parametrize("statics", FORMATS, ids=format_id)


def wide(x):
    return x.astype(np.float64)


@on("gemv")
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_gemv_matches_float64(machine, types, n, k):
    x, w = normal((2, k), types["T"]), normal((n, k), types["W"])
    got = run_kernel(machine, "gemv", types, tensors={"x": x, "w": w})["out"]
    assert_close(got, wide(x) @ wide(w).T, op="gemv", dtype=types["T"])


@pytest.mark.parametrize("machine", ["cpu"], indirect=True)
@pytest.mark.parametrize("weight", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("n", "k"), LARGE)
def test_large_gemv_matches_float64(machine, weight, n, k):
    x, w = normal((1, k)), normal((n, k), weight)
    got = run_kernel(machine, "gemv", {"T": "f32", "W": weight}, tensors={"x": x, "w": w})["out"]
    assert_close(got, wide(x) @ wide(w).T, op="gemv", dtype="f32")


@on("gemv_q")
@formats
@pytest.mark.parametrize(("n", "groups"), TILES)
def test_gemv_q_matches_float64(machine, types, statics, n, groups):
    matrix = random_matrix(n, groups, statics)
    x = normal((2, groups * statics["G"]), types["T"])
    tensors = matrix.tensors(machine.warp) | {"x": x}
    got = run_kernel(machine, "gemv_q", types, statics, tensors, dims=matrix.dims)["out"]
    assert_close(got, wide(x) @ matrix.values().T, op="gemv", dtype=types["T"])


@on("gemv_qi8")
@formats
@pytest.mark.parametrize(("n", "groups"), TILES)
def test_gemv_qi8_loses_nothing_beyond_the_int8_activations(machine, types, statics, n, groups):
    matrix = random_matrix(n, groups, statics)
    x = random_int8_rows(2, groups * statics["G"], statics["G"])
    tensors = matrix.tensors(machine.warp) | x.tensors()
    got = run_kernel(machine, "gemv_qi8", types, statics, tensors, dims=matrix.dims)["out"]
    assert_close(got, x.values() @ matrix.values().T, op="gemv", dtype=types["T"])


@pytest.mark.parametrize("machine", ["cpu"], indirect=True)
@formats
def test_long_rows_match_float64(machine, statics):
    matrix = random_matrix(45, 4224 // statics["G"], statics)
    x, x8 = normal((1, 4224)), random_int8_rows(1, 4224, statics["G"])
    tensors = matrix.tensors(machine.warp) | {"x": x} | x8.tensors()
    for name, rows in [("gemv_q", wide(x)), ("gemv_qi8", x8.values())]:
        got = run_kernel(machine, name, {"T": "f32"}, statics, tensors, dims=matrix.dims)["out"]
        assert_close(got, rows @ matrix.values().T, op="gemv", dtype="f32")


@formats
@pytest.mark.parametrize("name", ["gemv_qi8", "gemm_qi8"])
def test_extreme_codes_and_activations_do_not_saturate(machine, name, statics):
    """Every sum is an integer below 2**24, so f32 must hold it exactly."""
    n, k, top = 5, 4 * statics["G"], 2 ** statics["bits"] - 1
    codes = np.zeros((n, k), np.uint8)
    codes[1], codes[2, ::2], codes[3, 1::2], codes[4, : k // 2] = top, top, top, top
    ones = np.ones((n, 4), np.float16)
    biases = None if statics["SYM"] else -ones
    matrix = Matrix(codes.reshape(n, 4, -1), ones, biases, statics["bits"])
    x = np.full((4, k), 127, np.int8)
    x[1], x[2, ::2], x[3, 1::2] = -127, -127, -127
    rows = Int8Rows(x, np.ones((4, k // min(statics["G"], 32)), np.float32))
    tensors = matrix.tensors(machine.warp) | rows.tensors()
    got = run_kernel(machine, name, {"T": "f32"}, statics, tensors, dims=matrix.dims)["out"]
    assert_close(got, rows.values() @ matrix.values().T, op="copy", dtype="f32")


@pytest.mark.parametrize("name", ["gemv_q", "gemv_qi8", "gemm_q", "gemm_qi8"])
@formats
def test_columns_that_are_no_multiple_of_the_group_are_refused(machine, name, statics):
    matrix, k = random_matrix(3, 2, statics), 2 * statics["G"] + 4
    tensors = matrix.tensors(machine.warp) | {"x": normal((1, k))}
    tensors |= random_int8_rows(1, 2 * statics["G"], statics["G"]).tensors()
    with pytest.raises(Exception, match=f"k % G == 0|k % {statics['G']} == 0"):
        run_kernel(machine, name, {"T": "f32"}, statics, tensors, dims={"n": 3, "k": k})
