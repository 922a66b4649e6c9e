"""What each pass does to small kernels: counts of ops, and one kernel as text after every pass."""
# ruff: noqa: F821  shapes are strings that name dims

import pytest

from iron import (
    Const,
    In,
    InOut,
    Out,
    barrier,
    dim,
    f16,
    f32,
    group,
    lane,
    lanes,
    num_warps,
    shared,
)

from iron import u32, unroll, warps  # isort: skip
from iron.errors import IronError
from iron.ir import Func, clone, show
from iron.passes import lower
from support.kernels import compiled


def kinds(func: Func) -> list[str]:
    return [op.kind for op in func.body.walk()]


def after(fn, stage: str, target: str = "cpu", **options) -> Func:
    return compiled(fn, until=stage, target=target, **options)


def scaled_sum(x: In[f32, "n"], out: Out[f32, 1], scale: Const[f32]):
    total = f32(0)
    for i in lanes(dim("n")):
        if i > 0:
            total += x[i] * scale
    s = group.sum(total)
    if lane() == 0:
        out[0] = s


STAGES = ["TypeCheck", "ConstFold", "Fusion", "Schedule", "Vectorize"]


@pytest.mark.parametrize("stage", STAGES)
def test_ir_of_a_small_kernel_is_as_reviewed(stage, golden):
    def small(x: In[f32, "n"], out: Out[f32, "n"], scale: Const[f32]):
        best = f32(0)
        for i in lanes(dim("n")):
            if x[i] > 0:
                best = max(best, x[i] * scale + 1)
        peak = group.max(best)
        for i in lanes(dim("n")):
            out[i] = x[i] - peak * (4 // 2)

    golden(f"pass_{stage.lower()}.txt", show(after(small, stage)))


# -- ConstFold ------------------------------------------------------------------------------------


def test_constants_fold_and_equal_ops_are_shared():
    def fn(x: In[f32, "n"], out: Out[f32, "n"]):
        n = u32(3) * 4 + 1
        out[lane() * 1 + n] = x[lane() + n] + x[lane() + n]

    func = after(fn, "ConstFold")
    assert "mul" not in kinds(func) and kinds(func).count("lane") == 1
    assert [op.attrs["value"] for op in func.body.walk() if op.kind == "const"] == [13]
    assert kinds(func).count("load") == 2  # memory may change between two loads


def test_dead_code_goes_with_its_carried_variables():
    def fn(x: In[f32, "n"], out: Out[f32, 1]):
        unused, total = f32(0), f32(0)
        for i in range(dim("n")):
            unused = x[i] * 2  # noqa: F841
            total += x[i]
        out[0] = total

    func = after(fn, "ConstFold")
    loop = next(op for op in func.body.walk() if op.kind == "for")
    assert len(loop.results) == 1 and "mul" not in kinds(func)


def test_a_branch_on_a_constant_is_chosen():
    def fn(out: Out[f32, 1]):
        if u32(3) > 2:
            out[0] = f32(1)
        else:
            out[0] = f32(2)

    func = after(fn, "ConstFold")
    assert "if" not in kinds(func) and kinds(func).count("store") == 1


def test_widths_are_numbers_on_gpus_only():
    def fn(out: Out[u32, 1]):
        out[0] = num_warps()

    gpu = after(fn, "ConstFold", "msl", group=128)
    assert {op.attrs["value"] for op in gpu.body.walk() if op.kind == "const"} == {0, 4}
    assert "num_warps" in kinds(after(fn, "ConstFold", "cpu", group=128))


def test_float_zero_is_not_neutral():
    def fn(x: In[f32, 1], out: Out[f32, 1]):
        out[0] = x[0] + 0  # -0 + 0 is 0

    assert "add" in kinds(after(fn, "ConstFold"))


# -- Fusion ---------------------------------------------------------------------------------------


def test_a_product_that_only_feeds_a_sum_is_fused():
    def fn(x: In[f32, 4], out: Out[f32, 3]):
        out[0] = x[0] * x[1] + x[2]
        out[1] = x[2] - x[0] * x[3]
        p = x[1] * x[2]
        out[2] = p + p * x[3]

    func = after(fn, "Fusion")
    assert kinds(func).count("fma") == 3 and kinds(func).count("neg") == 1
    assert kinds(func).count("mul") == 1  # p is used twice and stays


def test_narrow_types_round_after_every_op_and_are_not_fused():
    def fn(x: In[f16, 4], out: Out[f16, 1]):
        out[0] = x[0] * x[1] + x[2]

    assert "fma" not in kinds(after(fn, "Fusion"))


# -- Schedule -------------------------------------------------------------------------------------


def reverse(x: In[f32, "n"], out: InOut[f32, "n"]):
    tile = shared(f32, 64)
    for w in warps(2):
        tile[w * 32 + lane()] = x[w * 32 + lane()]
    barrier()
    out[lane()] = tile[63 - lane()] + group.sum(x[lane()])


def test_a_cpu_runs_a_group_as_one_warp():
    func = after(reverse, "Schedule", "cpu", group=64)
    assert not {"barrier", "group_sum"} & set(kinds(func)) and "warp_sum" in kinds(func)
    assert [op.attrs["kind"] for op in func.body.walk() if op.kind == "for"] == ["range"]


def test_a_gpu_group_of_one_warp_keeps_its_memory_order():
    wide = after(reverse, "Schedule", "cuda", group=64)
    assert "group_sum" in kinds(wide) and kinds(wide).count("barrier") == 1
    narrow = after(reverse, "Schedule", "cuda", group=32)
    assert "warp_sum" in kinds(narrow) and kinds(narrow).count("barrier") == 2


# -- Vectorize ------------------------------------------------------------------------------------


def test_branches_of_lanes_become_masks_and_uniform_ones_stay():
    def fn(x: In[f32, "n"], out: Out[f32, "n"]):
        if dim("n") > 4:
            for i in lanes(dim("n")):
                if x[i] > 0:
                    out[i] = x[i]

    func = after(fn, "Vectorize")
    assert kinds(func).count("if") == 1
    (store,) = [op for op in func.body.walk() if op.kind == "store"]
    assert "mask" in store.attrs


def test_strides_follow_sums_and_uniform_values_stay_uniform():
    def fn(x: In[f32, "n"], out: Out[f32, "n"]):
        for i in lanes(dim("n")):
            out[i + 3] = x[group.id(0)]

    func = after(fn, "Vectorize")
    add = next(op for op in func.body.walk() if op.kind == "add")
    load = next(op for op in func.body.walk() if op.kind == "load")
    assert add.result.stride == 1 and not add.result.uniform and load.result.uniform


def test_gpus_are_left_alone():
    func = after(scaled_sum, "Schedule", "cuda", group=64)
    assert show(lower(clone(func), "cuda")) == show(func)


def test_a_collective_under_a_condition_of_lanes_is_refused():
    def fn(x: In[f32, 32], out: Out[f32, 32]):
        s = f32(0)
        if x[lane()] > 0:
            s = group.sum(x[lane()])
        out[lane()] = s

    with pytest.raises(IronError, match="condition that differs between lanes"):
        after(fn, "Vectorize")


def test_loop_bounds_of_lanes_are_refused():
    def fn(out: Out[u32, 32]):
        s = u32(0)
        for j in range(lane()):
            s += j
        out[lane()] = s

    with pytest.raises(IronError, match="loop bounds must be the same for all lanes"):
        after(fn, "Vectorize")


def test_unrolled_loops_leave_no_loop():
    def fn(out: Out[u32, 4]):
        for j in unroll(4):
            out[j] = u32(j)

    assert kinds(after(fn, "ConstFold")).count("store") == 4
