"""Rotary embedding against float64, also where positions no longer fit 15 bits."""

import numpy as np
import pytest

from support.launch import run_kernel
from support.oracle import assert_close
from support.rand import normal
from support.rotary import rotated, tables

HEADS = [(1, 2, 1), (3, 64, 32), (2, 62, 31), (2, 66, 33), (2, 128, 32), (1, 80, 20), (1, 256, 128)]
FLOATS = ["f32", "f16", "bf16"]


def rope(machine, x, half, pos, positions, dtype="f32"):
    cos, sin = tables(positions, half)
    return run_kernel(
        machine, "rope", {"T": dtype}, tensors={"x": x, "cos": cos, "sin": sin}, step={"pos": pos}
    )["out"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("heads", "size", "half"), HEADS)
def test_rope_turns_pairs_half_a_head_apart(machine, dtype, heads, size, half):
    x = normal((3, heads, size), dtype)
    got = rope(machine, x, half, 5, 8, dtype)
    assert_close(got, rotated(x, [5, 6, 7], half), op="rope", dtype=dtype)


@pytest.mark.parametrize("pos", [0, 32766, 65535, 131070])
def test_rope_at_far_positions(machine, pos):
    x = normal((4, 2, 64))
    got = rope(machine, x, 32, pos, pos + 4)
    assert_close(got, rotated(x, range(pos, pos + 4), 32), op="rope", dtype="f32")


def test_channels_beyond_the_rotated_ones_keep_their_bits(machine):
    x = normal((2, 3, 96), "bf16")
    got = rope(machine, x, 16, 0, 2, "bf16")
    assert_close(got[..., 32:], x[..., 32:].astype(np.float64), op="copy", dtype="bf16")


def test_a_position_beyond_the_tables_gives_nan(machine):
    x = normal((3, 2, 64))
    got = rope(machine, x, 32, 6, 8)
    assert np.isfinite(got[:2]).all() and np.isnan(got[2]).all()


def test_more_rotated_channels_than_a_head_has_are_refused(machine):
    with pytest.raises(Exception, match=r"2 \* half <= D"):
        rope(machine, normal((1, 1, 32)), 17, 0, 1)
