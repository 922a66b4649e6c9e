"""Activations to int8 against float64."""

import numpy as np
import pytest

from support.int8 import BLOCKS, check_blocks
from support.launch import run_kernel
from support.rand import normal

FLOATS = ["f32", "f16", "bf16"]


def quantized(machine, x, dtype="f32", block=32):
    return run_kernel(machine, "quantize_rows", {"T": dtype}, {"QB": block}, {"x": x})


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "block"), BLOCKS)
def test_quantize_rows_is_off_by_half_a_step_at_most(machine, dtype, n, block):
    x = normal((3, n), dtype)
    check_blocks(quantized(machine, x, dtype, block), x.astype(np.float64), "f32", block)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "block"), BLOCKS)
def test_silu_mul_quantize_is_silu_mul_in_int8(machine, dtype, n, block):
    gate, up = normal((3, n), dtype, scale=4), normal((3, n), dtype, seed=1)
    tensors = {"gate": gate, "up": up}
    got = run_kernel(machine, "silu_mul_quantize", {"T": dtype}, {"QB": block}, tensors)
    g = gate.astype(np.float64)
    check_blocks(got, g / (1 + np.exp(-g)) * up.astype(np.float64), "f32", block)


def test_a_block_of_zeros_has_scale_zero(machine):
    x = np.concatenate([np.zeros((1, 32)), np.ones((1, 32))], axis=1).astype(np.float32)
    got = quantized(machine, x)
    assert got["qs"][0].tolist() == [0, np.float32(1 / 127)]
    assert not got["q"][0, :32].any() and (got["q"][0, 32:] == 127).all()
    assert got["qm"][0, 0] == 0


def test_the_smallest_and_largest_floats_are_no_trouble(machine):
    tiny = np.full(32, 1e-44, np.float32)
    huge = np.linspace(-3.4e38, 3.4e38, 32).astype(np.float32)
    got = quantized(machine, np.stack([tiny, huge]))
    assert not got["q"][0].any()  # below 1e-30 all codes are 0
    check_blocks({k: v[1:] for k, v in got.items()}, huge[None].astype(np.float64), "f32", 32)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 7, 31])
def test_what_is_not_finite_shows_in_its_block_only(machine, bad, at):
    x = normal((1, 96))
    x[0, 32 + at] = bad
    scales = quantized(machine, x)["qs"][0]
    assert np.isfinite(scales).tolist() == [True, False, True]


@pytest.mark.parametrize("name", ["quantize_rows", "silu_mul_quantize"])
@pytest.mark.parametrize(("n", "block"), [(1, 16), (31, 16), (33, 32), (48, 32), (4097, 32)])
def test_a_row_that_is_no_multiple_of_the_block_is_refused(machine, name, n, block):
    x = normal((1, n))
    with pytest.raises(Exception, match="n % "):
        run_kernel(machine, name, {"T": "f32"}, {"QB": block}, {"x": x, "gate": x, "up": x})
