"""Embedding rows, dense and quantized, against numpy."""

import numpy as np
import pytest
from packing import FORMATS

from support.launch import run_kernel
from support.oracle import assert_close
from support.rand import normal
from support.tiles import random_matrix

SIZES = [1, 31, 32, 33, 576, 2048, 4097]
DENSE = [("f32", "f32"), ("f32", "f16"), ("f32", "bf16"), ("f16", "f16"), ("bf16", "bf16")]
IDS = np.array([0, 36, 5, 5], np.int32)  # first, last, and one twice
BAD = np.array([-1, 37, 2**31 - 1, -(2**31), 3], np.int32)


@pytest.mark.parametrize(("dtype", "weight"), DENSE)
@pytest.mark.parametrize("n", SIZES)
def test_gather_copies_rows(machine, dtype, weight, n):
    table = normal((37, n), weight)
    got = run_kernel(
        machine, "gather", {"T": dtype, "W": weight}, tensors={"table": table, "ids": IDS}
    )
    assert_close(got["out"], table[IDS].astype(np.float64), op="embed", dtype=dtype)


def test_ids_outside_the_vocabulary_give_rows_of_nan(machine):
    table = normal((37, 33))
    got = run_kernel(
        machine, "gather", {"T": "f32", "W": "f32"}, tensors={"table": table, "ids": BAD}
    )["out"]
    assert np.isnan(got[:4]).all()
    assert_close(got[4], table[3], op="embed", dtype="f32")


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("statics", FORMATS, ids=lambda s: "-".join(map(str, s.values())))
@pytest.mark.parametrize("groups", [1, 9, 33])
def test_gather_q_dequantizes_rows(machine, dtype, statics, groups):
    n = groups * statics["G"]
    matrix = random_matrix(37, groups, statics)
    tensors, table = matrix.tensors(machine.warp) | {"ids": IDS}, matrix.values()
    got = run_kernel(
        machine, "gather_q", {"T": dtype}, statics, tensors, dims={"vocab": 37, "n": n}
    )
    assert_close(got["out"], table[IDS], op="embed_q", dtype=dtype)


def test_gather_q_of_ids_outside_the_vocabulary_gives_nan(machine):
    matrix = random_matrix(37, 2, {"bits": 4, "G": 32, "SYM": 0})
    tensors, table = matrix.tensors(machine.warp) | {"ids": BAD}, matrix.values()
    got = run_kernel(
        machine, "gather_q", {"T": "f32"}, matrix.statics, tensors, dims={"vocab": 37, "n": 64}
    )["out"]
    assert np.isnan(got[:4]).all()
    assert_close(got[4], table[3], op="embed_q", dtype="f32")
