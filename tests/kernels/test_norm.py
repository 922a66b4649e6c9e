"""Row normalizations against float64."""

import numpy as np
import pytest

from support.int8 import BLOCKS, check_blocks
from support.launch import run_kernel
from support.oracle import assert_close
from support.rand import normal

SIZES = [1, 31, 32, 33, 576, 2048, 4097]
FLOATS = ["f32", "f16", "bf16"]
EPS = 1e-5


def wide(x):
    return x.astype(np.float64)


def rms_norm64(x, w, eps=EPS):
    return wide(w) * wide(x) / np.sqrt(np.mean(wide(x) ** 2, axis=-1, keepdims=True) + eps)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_rms_norm_matches_float64(machine, dtype, n):
    x, w = normal((3, n), dtype), normal((n,), dtype)
    got = run_kernel(
        machine, "rms_norm", {"T": dtype}, tensors={"x": x, "w": w}, consts={"eps": EPS}
    )
    assert_close(got["out"], rms_norm64(x, w), op="rms_norm", dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_add_rms_norm_matches_float64(machine, dtype, n):
    x, r, w = normal((3, n), dtype), normal((3, n), dtype, seed=1), normal((n,), dtype)
    got = run_kernel(
        machine, "add_rms_norm", {"T": dtype}, tensors={"x": x, "r": r, "w": w}, consts={"eps": EPS}
    )
    assert_close(got["sum"], wide(x) + wide(r), op="add", dtype=dtype)
    assert_close(got["out"], rms_norm64(got["sum"], w), op="rms_norm", dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "block"), BLOCKS)
def test_rms_norm_quantize_is_rms_norm_in_int8(machine, dtype, n, block):
    x, w = normal((3, n), dtype), normal((n,), dtype)
    got = run_kernel(
        machine, "rms_norm_quantize", {"T": dtype}, {"QB": block}, {"x": x, "w": w}, {"eps": EPS}
    )
    check_blocks(got, rms_norm64(x, w), dtype, block)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "block"), BLOCKS)
def test_add_rms_norm_quantize_is_add_rms_norm_in_int8(machine, dtype, n, block):
    x, r, w = normal((3, n), dtype), normal((3, n), dtype, seed=1), normal((n,), dtype)
    tensors = {"x": x, "r": r, "w": w}
    got = run_kernel(
        machine, "add_rms_norm_quantize", {"T": dtype}, {"QB": block}, tensors, {"eps": EPS}
    )
    assert_close(got["sum"], wide(x) + wide(r), op="add", dtype=dtype)
    check_blocks(got, rms_norm64(got["sum"], w), dtype, block)


def test_rows_of_zeros_and_huge_rows_stay_finite(machine):
    x = np.stack([np.zeros(64), np.full(64, 1e18), np.full(64, 1e-20)]).astype(np.float32)
    w = np.ones(64, np.float32)
    got = run_kernel(
        machine, "rms_norm", {"T": "f32"}, tensors={"x": x, "w": w}, consts={"eps": EPS}
    )
    assert_close(got["out"], rms_norm64(x, w), op="rms_norm", dtype="f32")


@pytest.mark.parametrize("name", ["rms_norm_quantize", "add_rms_norm_quantize"])
def test_a_row_that_is_no_multiple_of_the_block_is_refused(machine, name):
    x = normal((1, 33))
    tensors = {"x": x, "r": x, "w": x[0]}
    with pytest.raises(Exception, match="n % QB == 0|n % 32 == 0"):
        run_kernel(machine, name, {"T": "f32"}, {"QB": 32}, tensors, {"eps": EPS})
