"""Appending to the cache against float64."""

import numpy as np
import pytest

from support.launch import run_kernel
from support.oracle import assert_close
from support.rand import DTYPES, normal, poisoned
from support.rotary import rotated, tables

TYPES = [("f32", "f32"), ("f32", "f16"), ("f32", "bf16"), ("f16", "f16"), ("bf16", "bf16")]


def append(machine, k, v, half, pos, capacity, types=("f32", "f32"), step=None, positions=None):
    """The caches after one append, as [Hkv, positions, D], poison where nothing was written."""
    (_, heads, size), warp = k.shape, machine.warp
    cos, sin = tables(positions or capacity, half)
    kc = poisoned((heads, capacity // warp, size, warp), types[1])
    vc = poisoned((heads, capacity, size), types[1])
    got = run_kernel(
        machine, "rope_kv_append", {"T": types[0], "K": types[1]},
        tensors={"k": k, "v": v, "cos": cos, "sin": sin, "kc": kc, "vc": vc},
        dims={"P": capacity}, step={"pos": pos, "rows": len(k)} | (step or {}),
    )  # fmt: skip
    keys = np.moveaxis(got["kc"], -1, -2).reshape(heads, capacity, size)
    return keys, got["vc"]


@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize(
    ("heads", "size", "half"), [(1, 2, 1), (3, 64, 32), (2, 66, 33), (2, 80, 16)]
)
@pytest.mark.parametrize(("pos", "rows"), [(0, 1), (31, 1), (30, 5), (0, 33), (63, 1)])
def test_append_writes_rotated_keys_and_plain_values(machine, types, heads, size, half, pos, rows):
    k, v = normal((rows, heads, size), types[0]), normal((rows, heads, size), types[0], seed=1)
    keys, values = append(machine, k, v, half, pos, 64, types)
    place = slice(pos, pos + rows)
    want = rotated(k, range(pos, pos + rows), half)
    assert_close(keys[:, place], np.moveaxis(want, 1, 0), op="rope", dtype=types[1])
    exact = v.astype(DTYPES[types[1]]).astype(np.float64)
    assert_close(values[:, place], np.moveaxis(exact, 1, 0), op="copy", dtype=types[1])


def test_append_leaves_other_positions_alone(machine):
    k, v = normal((2, 2, 64)), normal((2, 2, 64), seed=1)
    before = np.moveaxis(poisoned((2, 64, 64)), 1, 0).view(np.uint32)
    keys, values = append(machine, k, v, 32, 10, 64)
    for cache in (keys, values):
        rest = np.delete(cache, [10, 11], axis=1)
        assert (rest.view(np.uint32) == before[0, 0, 0]).all()


def test_append_beyond_32768(machine):
    k, v = normal((3, 1, 8)), normal((3, 1, 8), seed=1)
    keys, values = append(machine, k, v, 4, 32767, 32800)
    want = rotated(k, range(32767, 32770), 4)
    assert_close(keys[0, 32767:32770], want[:, 0], op="rope", dtype="f32")
    assert_close(values[0, 32767:32770], v[:, 0], op="copy", dtype="f32")
    assert np.isnan(keys[0, :32767]).all() and np.isnan(values[0, 32770:]).all()


def test_rows_of_the_program_that_the_step_lacks_are_dropped(machine):
    k = normal((4, 1, 8))
    keys, values = append(machine, k, k, 4, 0, 32, step={"rows": 2})
    assert np.isfinite(keys[:, :2]).all() and np.isnan(keys[:, 2:]).all()
    assert np.isfinite(values[:, :2]).all() and np.isnan(values[:, 2:]).all()


def test_what_does_not_fit_is_dropped(machine):
    k = normal((4, 2, 8))
    keys, values = append(machine, k, k, 4, 30, 32, positions=64)
    assert np.isfinite(values[:, 30:]).all() and np.isnan(values[:, :30]).all()
    assert np.isfinite(keys[:, 30:]).all() and np.isnan(keys[:, :30]).all()


def test_a_position_beyond_the_rotary_tables_gives_nan_keys(machine):
    k = normal((2, 1, 8))
    keys, values = append(machine, k, k, 4, 7, 32, positions=8)
    assert np.isfinite(keys[0, 7]).all() and np.isnan(keys[0, 8]).all()
    assert np.isfinite(values[0, 7:9]).all()
