"""Lanes, control flow and memory, and what the interpreter refuses."""
# ruff: noqa: F821  shapes are strings that name dims

import ml_dtypes
import numpy as np
import pytest

from iron import (
    Const,
    In,
    InOut,
    Out,
    array,
    barrier,
    bf16,
    dim,
    dot_u8i8,
    f32,
    group,
    i32,
    lane,
    lanes,
    shared,
    step,
    u32,
    unroll,
    warp,
    warps,
)  # fmt: skip
from iron.errors import IronError
from iron.interp import run
from support.kernels import compiled
from support.rand import integers, normal

SHAPES = [(32, 32), (32, 128), (8, 8), (4, 4), (1, 1), (16, 16)]  # (warp, lanes)


@pytest.mark.parametrize("warp_width, width", SHAPES)
@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 300])
def test_a_lanes_loop_visits_every_index_once(n, warp_width, width):
    def count(out: InOut[i32, "n"]):
        for i in lanes(dim("n")):
            out[i] = out[i] + 1

    out = np.zeros(n, np.int32)
    run(compiled(count), {"out": out}, warp=warp_width, lanes=width)
    assert (out == 1).all()


@pytest.mark.parametrize("warp_width, width", SHAPES)
def test_carried_values_of_a_lanes_loop_ignore_the_tail(warp_width, width):
    def total(x: In[f32, "n"], out: Out[f32, 2]):
        most = f32(-1e30)
        s = f32(0)
        for i in lanes(dim("n") // 2):
            s += x[2 * i + 1]
            most = max(most, x[2 * i + 1])
        out[0] = group.sum(s)
        out[1] = group.max(most)

    x = integers((77,), -50, 50).astype(np.float32)
    out = np.zeros(2, np.float32)
    run(compiled(total), {"x": x, "out": out}, warp=warp_width, lanes=width)
    assert out.tolist() == [x[1::2].sum(), x[1::2].max()]


@pytest.mark.parametrize("warp_width, width", [(32, 128), (8, 8)])
def test_warps_take_rows_and_their_lanes_the_columns(warp_width, width):
    def row_sums(x: In[f32, "rows", "n"], out: Out[f32, "rows"]):
        for r in warps(dim("rows")):
            s = f32(0)
            for i in lanes(dim("n")):
                s += x[r, i]
            out[r] = warp.sum(s)

    x = integers((7, 45), -50, 50).astype(np.float32)
    out = np.zeros(7, np.float32)
    run(compiled(row_sums, group=128), {"x": x, "out": out}, warp=warp_width, lanes=width)
    np.testing.assert_array_equal(out, x.sum(axis=1))


def test_collectives_of_four_warps():
    def all_of_them(x: In[i32, 128], out: Out[i32, 6, 128]):
        me = warp.id() * 32 + lane()
        out[0, me] = warp.sum(x[me])
        out[1, me] = warp.min(x[me])
        out[2, me] = warp.scan_sum(x[me])
        out[3, me] = warp.read(x[me], 5)
        out[4, me] = group.across_warps_sum(x[me])
        out[5, me] = group.sum(x[me])

    x, out = integers((128,), -1000, 1000), np.zeros((6, 128), np.int32)
    run(compiled(all_of_them, group=128), {"x": x, "out": out})
    rows = x.reshape(4, 32)
    np.testing.assert_array_equal(out[0], np.repeat(rows.sum(1), 32))
    np.testing.assert_array_equal(out[1], np.repeat(rows.min(1), 32))
    np.testing.assert_array_equal(out[2], rows.cumsum(1).reshape(-1))
    np.testing.assert_array_equal(out[3], np.repeat(rows[:, 5], 32))
    np.testing.assert_array_equal(out[4], np.tile(rows.sum(0), 4))
    assert (out[5] == x.sum()).all()


def test_a_branch_per_lane_merges_values():
    def collatz(x: In[i32, "n"], out: Out[i32, "n"]):
        for i in lanes(dim("n")):
            v = x[i]
            if v % 2 == 0:
                v = v // 2
            else:
                if v < 100:
                    v = 3 * v + 1
            out[i] = v

    x = integers((45,), 1, 200)
    out = np.zeros_like(x)
    run(compiled(collatz), {"x": x, "out": out})
    want = np.where(x % 2 == 0, x // 2, np.where(x < 100, 3 * x + 1, x))
    np.testing.assert_array_equal(out, want)


def test_lanes_that_are_not_active_may_point_anywhere():
    def shifted(x: In[f32, "n"], out: Out[f32, "n"]):
        for i in lanes(dim("n")):
            v = f32(0)
            if i > 0:
                v = x[i - 1]
            out[i] = v

    x, out = normal((40,)), np.zeros(40, np.float32)
    run(compiled(shifted), {"x": x, "out": out})
    np.testing.assert_array_equal(out, np.concatenate([[0], x[:-1]]))


def test_an_early_return_ends_its_group_only():
    def even_rows(out: InOut[i32, "rows"]):
        row = group.id(0)
        if row % 2 == 1:
            return
        out[row] = 7

    out = np.zeros(5, np.int32)
    run(compiled(even_rows, grid="rows"), {"out": out})
    assert out.tolist() == [7, 0, 7, 0, 7]


def test_shared_memory_and_register_arrays():
    def reverse(x: In[f32, 64], out: Out[f32, 64]):
        tile = shared(f32, 64)
        for i in lanes(64):
            tile[i] = x[i]
        barrier()
        parts = array(f32, 2)
        for j in unroll(2):
            parts[j] = tile[63 - (lane() + 32 * j)]
        for j in unroll(2):
            out[lane() + 32 * j] = parts[j]

    x, out = normal((64,)), np.zeros(64, np.float32)
    run(compiled(reverse), {"x": x, "out": out})
    np.testing.assert_array_equal(out, x[::-1])


def test_the_step_block_is_read_and_written():
    def advance(out: Out[f32, 1]):
        out[0] = f32(step.pos) + step.temperature
        step.out_token = i32(step.pos) + 1

    words, out = np.zeros(64, np.uint32), np.zeros(1, np.float32)
    words[0], words[7] = 41, np.float32(0.5).view(np.uint32)
    func = compiled(advance)
    run(func, {"out": out}, step=words)
    assert (out[0], words[32]) == (41.5, 42)
    with pytest.raises(IronError, match="pass step="):
        run(func, {"out": out})


def test_bf16_arrays_come_as_bits_or_as_ml_dtypes():
    def double(x: In[bf16, 32], out: Out[bf16, 32], k: Const[f32]):
        out[lane()] = bf16(f32(x[lane()]) * k)

    x, out = normal((32,), "bf16"), np.zeros(32, ml_dtypes.bfloat16)
    bits = np.zeros(32, np.uint16)
    func = compiled(double)
    run(func, {"x": x, "out": out}, {"k": 2})
    run(func, {"x": x.view(np.uint16), "out": bits}, {"k": 2})
    np.testing.assert_array_equal(out, (x.astype(np.float32) * 2).astype(x.dtype))
    np.testing.assert_array_equal(out.view(np.uint16), bits)


@pytest.mark.parametrize("target", ["cuda", "msl"])
def test_tile_lowering_keeps_dot_products(target):
    def dots(c: In[u32, 3, 32], x: In[u32, 3, 32], out: Out[i32, 32]):
        me = lane()
        codes = array(u32, 3)
        words = array(u32, 3)
        for j in unroll(3):
            codes[j] = c[j, me]
            words[j] = x[j, me]
        out[me] = dot_u8i8(codes, words, 8)

    c, x = integers((3, 32), 0, 2**32, "u32", 1), integers((3, 32), 0, 2**32, "u32", 2)
    want, got = np.zeros(32, np.int32), np.zeros(32, np.int32)
    run(compiled(dots), {"c": c, "x": x, "out": want})
    func = compiled(dots, target=target, until="TileLowering")
    assert all(op.kind != "dot_u8i8" for op in func.body.walk())
    run(func, {"c": c, "x": x, "out": got})
    np.testing.assert_array_equal(got, want)


# -- refusals -----------------------------------------------------------------------------------


def refuses(fn, match, *, group=32, dims=None, **tensors):
    with pytest.raises(IronError, match=match) as error:
        run(compiled(fn, group=group), tensors, dims=dims)
    return str(error.value)


def test_out_of_range_names_the_place_and_the_line():
    def reads_past_the_end(x: In[f32, "rows", "n"], out: Out[f32, 32]):
        out[lane()] = x[0, lane()]

    out = np.zeros(32, np.float32)
    text = refuses(reads_past_the_end, r"x\[0, 20\] in lane 20", x=normal((2, 20)), out=out)
    assert "reads_past_the_end" in text and "(2, 20)" in text
    assert "out[lane()] = x[0, lane()]" in text and "^" in text


def test_lanes_that_disagree_about_an_element_are_a_race():
    def race(out: Out[u32, 1]):
        out[0] = lane()

    refuses(race, "different values to out", out=np.zeros(1, np.uint32))


def test_a_missing_barrier_is_found():
    def no_barrier(out: Out[u32, 32]):
        tile = shared(u32, 32)
        tile[lane()] = lane()
        out[lane()] = tile[31 - lane()]

    refuses(no_barrier, "since the last barrier", out=np.zeros(32, np.uint32))


def test_uninitialized_shared_memory_is_poison():
    def forgets(out: Out[f32, 32]):
        tile = shared(f32, 32)
        out[lane()] = tile[lane()]

    out = np.zeros(32, np.float32)
    run(compiled(forgets), {"out": out})
    assert np.isnan(out).all()


@pytest.fixture
def unchecked(monkeypatch):
    """The compiler refuses such kernels; the interpreter does so on its own."""
    monkeypatch.setattr("iron.uniformity.check", lambda func: None)


def test_a_return_that_some_lanes_take_is_refused(unchecked):
    def leaves(out: Out[u32, 32]):
        if lane() > 3:
            return
        out[lane()] = 1

    refuses(leaves, "condition of a return", out=np.zeros(32, np.uint32))


def test_collectives_need_every_lane(unchecked):
    def some(out: Out[u32, 32]):
        s = u32(0)
        if lane() > 3:
            s = warp.sum(lane())
        out[lane()] = s

    refuses(some, "only some lanes of a warp", out=np.zeros(32, np.uint32))

    def one_warp(out: Out[u32, 64]):
        s = u32(0)
        if warp.id() == 0:
            s = group.sum(lane())
        out[warp.id() * 32 + lane()] = s

    refuses(one_warp, "only some lanes of the group", group=64, out=np.zeros(64, np.uint32))


def test_one_warp_may_reduce_alone():
    def one_warp(out: Out[u32, 64]):
        s = u32(0)
        if warp.id() == 0:
            s = warp.sum(lane())
        out[warp.id() * 32 + lane()] = s

    out = np.zeros(64, np.uint32)
    run(compiled(one_warp, group=64), {"out": out})
    assert out.tolist() == [496] * 32 + [0] * 32


def test_a_range_needs_the_same_bounds_in_all_lanes():
    def ragged(out: Out[u32, 32]):
        s = u32(0)
        for j in range(lane()):
            s += j
        out[lane()] = s

    refuses(ragged, "loop bound", out=np.zeros(32, np.uint32))


def test_arrays_must_fit_the_parameters():
    def copy(x: In[f32, "n"], out: Out[f32, "n"]):
        for i in lanes(dim("n")):
            out[i] = x[i]

    f, n = normal((8,)), np.zeros(9, np.float32)
    refuses(copy, r"out has shape \(9,\), needs \(8,\)", x=f, out=n)
    refuses(copy, "x is float64, needs f32", x=f.astype(float), out=f.copy())
    refuses(copy, "no array for x", out=n)
    refuses(copy, "x has shape", x=f.reshape(2, 4), out=n)
