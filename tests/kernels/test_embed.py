"""Embedding rows, dense and quantized, against numpy."""

import numpy as np
import pytest
from packing import FORMATS

from support.launch import run_kernel
from support.oracle import assert_close
from support.rand import integers, normal

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


def quantized_table(vocab, n, bits, group, sym, warp):
    """Random codes, scales and biases in tile layout, and the float64 table they stand for."""
    tiles, groups = -(-vocab // warp), n // group
    codes = integers((tiles * warp, groups, group), 0, 2**bits, "u32", seed=bits)
    scales = normal((tiles * warp, groups), "f16", scale=0.1)
    biases = normal((tiles * warp, groups), "f16", seed=1)
    wide = scales.astype(np.float64)[..., None]
    if sym:
        table = (codes.astype(np.float64) - 2 ** (bits - 1)) * wide
    else:
        table = codes.astype(np.float64) * wide + biases.astype(np.float64)[..., None]
    per_word = 4 if bits == 8 else 8
    words = np.zeros((tiles * warp, groups, group // per_word), np.uint32)
    for j in range(group // per_word):
        for b in range(4):
            words[..., j] |= codes[..., 4 * j + b] << np.uint32(8 * b)
            if bits == 4:
                words[..., j] |= codes[..., group // 2 + 4 * j + b] << np.uint32(8 * b + 4)

    def tile(x):
        return np.ascontiguousarray(np.moveaxis(x.reshape(tiles, warp, *x.shape[1:]), 1, -1))

    tensors = {"codes": tile(words), "scales": tile(scales), "biases": tile(biases)}
    if sym:
        tensors["biases"] = tensors["scales"]
    return tensors, table.reshape(-1, n)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("statics", FORMATS, ids=lambda s: "-".join(map(str, s.values())))
@pytest.mark.parametrize("groups", [1, 9, 33])
def test_gather_q_dequantizes_rows(machine, dtype, statics, groups):
    n = groups * statics["G"]
    tensors, table = quantized_table(37, n, *statics.values(), machine.warp)
    tensors["ids"] = IDS
    got = run_kernel(
        machine, "gather_q", {"T": dtype}, statics, tensors, dims={"vocab": 37, "n": n}
    )
    assert_close(got["out"], table[IDS], op="embed_q", dtype=dtype)


def test_gather_q_of_ids_outside_the_vocabulary_gives_nan(machine):
    tensors, table = quantized_table(37, 64, 4, 32, 0, machine.warp)
    tensors["ids"] = BAD
    got = run_kernel(
        machine, "gather_q", {"T": "f32"}, FORMATS[0], tensors, dims={"vocab": 37, "n": 64}
    )["out"]
    assert np.isnan(got[:4]).all()
    assert_close(got[4], table[3], op="embed_q", dtype="f32")
