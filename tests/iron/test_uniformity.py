"""What only some lanes or warps reach may hold nothing that waits for the others."""
# ruff: noqa: F821  shapes are strings that name dims

import pytest

from iron import In, Out, barrier, dim, f32, group, i32, lane, lanes, num_warps, step, u32, warp

from iron import warps  # isort: skip
from iron.errors import IronError
from iron.passes import lower
from iron.verify import TARGETS
from support.kernels import compiled

X = In[f32, "n"]
Y = Out[f32, "n"]


def barrier_for_some_lanes(x: X, out: Y):
    out[0] = 0.0
    if lane() == 0:
        barrier()


def barrier_for_some_warps(x: X, out: Y):
    out[0] = 0.0
    if warp.id() == 0:
        barrier()


def group_sum_for_some_lanes(x: X, out: Y):
    s = f32(0)
    if x[lane()] > 0:
        s = group.sum(x[lane()])
    out[lane()] = s


def group_sum_for_some_warps(x: X, out: Y):
    s = f32(0)
    if warp.sum(x[lane() + WARP_LANES * warp.id()]) > 0:
        s = group.sum(x[lane()])
    out[lane()] = s


def across_warps_for_some_warps(x: X, out: Y):
    s = f32(0)
    if warp.id() > 1:
        s = group.across_warps_sum(x[lane()])
    out[lane()] = s


def warp_sum_for_some_lanes(x: X, out: Y):
    s = f32(0)
    if lane() < 3:
        s = warp.sum(x[lane()])
    out[lane()] = s


def lanes_for_some_warps(x: X, out: Y):
    if warp.id() == 0:
        for i in lanes(dim("n")):
            out[i] = x[i]


def warps_for_some_lanes(x: X, out: Y):
    if lane() == 0:
        for i in warps(dim("n")):
            out[i] = x[i]


def warps_in_lanes(x: X, out: Y):
    for i in lanes(dim("n")):
        for j in warps(dim("n")):
            out[j] = x[i]


def return_of_some_warps(x: X, out: Y):
    if warp.id() > 0:
        return
    out[0] = x[0]


def return_of_some_lanes(x: X, out: Y):
    if lane() > 0:
        return
    out[0] = x[0]


def bounds_of_warps(x: X, out: Y):
    for i in lanes(warp.id()):
        out[i] = x[i]


def barrier_in_a_loop_of_warps(x: X, out: Y):
    for j in range(warp.id()):
        out[j] = x[j]
        barrier()


def a_level_that_rises_in_a_loop(x: X, out: Y):
    seen = u32(0)
    for _ in range(4):
        if seen > 0:
            barrier()
        seen = lane()
    out[0] = x[0]


def step_for_some_lanes(x: X, out: Y):
    out[0] = x[0]
    if lane() == 0:
        step.out_token = 1


def step_of_a_lane(x: X, out: Y):
    out[0] = x[0]
    step.out_token = i32(lane())


def read_of_own_lane(x: X, out: Y):
    out[lane()] = warp.read(x[lane()], lane())


WARP_LANES = 32
LANES, WARPS = "condition that differs between lanes", "condition that differs between warps"
REFUSED = {
    barrier_for_some_lanes: (f"barrier under a {LANES}", "move the barrier out"),
    barrier_for_some_warps: (f"barrier under a {WARPS}", "move the barrier out"),
    group_sum_for_some_lanes: (f"group.sum under a {LANES}", "collect in a variable"),
    group_sum_for_some_warps: (f"group.sum under a {WARPS}", "collect in a variable"),
    across_warps_for_some_warps: (f"group.across_warps_sum under a {WARPS}", "collect"),
    warp_sum_for_some_lanes: (f"warp.sum under a {LANES}", "collect in a variable"),
    lanes_for_some_warps: (f"a lanes loop under a {WARPS}", "move the loop out"),
    warps_for_some_lanes: (f"a warps loop under a {LANES}", "move the loop out"),
    warps_in_lanes: ("a warps loop inside a lanes loop", "move the loop out"),
    return_of_some_warps: ("a return that only some warps take", "use an if around"),
    return_of_some_lanes: ("a return that only some lanes take", "use an if around"),
    bounds_of_warps: ("loop bounds must be the same for all warps", "group.max"),
    barrier_in_a_loop_of_warps: ("barrier inside a loop whose bounds differ between warps", "out"),
    a_level_that_rises_in_a_loop: (f"barrier under a {LANES}", "move the barrier out"),
    step_for_some_lanes: (f"step.out_token under a {LANES}", "a if c else b"),
    step_of_a_lane: ("the value for step.out_token differs between lanes", "group.max"),
    read_of_own_lane: ("warp.read from a lane number that differs", "shared(…)"),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fn", REFUSED, ids=lambda f: f.__name__)
def test_what_needs_all_lanes_is_refused_where_only_some_come(fn, target):
    message, hint = REFUSED[fn]
    with pytest.raises(IronError) as error:
        compiled(fn, target=target, group=128)
    head, *_, caret, last = str(error.value).splitlines()
    assert head.startswith("test_uniformity.py:") and message in head
    assert "^" in caret and hint in last


def warp_work_of_one_warp(x: X, out: Y):
    if warp.id() == 0:
        s = warp.sum(x[lane()])
        out[0] = s


def names_of_the_group_in_a_branch(x: X, out: Y):
    if x[lane()] > 0:
        out[lane()] = x[group.id(0)] + f32(dim("n")) + f32(warp.id() + num_warps())


def reduced_condition(x: X, out: Y):
    if group.max(x[lane()]) > 0:
        barrier()
        for i in lanes(dim("n")):
            out[i] = x[i]


def lanes_of_a_warp(x: X, out: Y):
    for w in warps(dim("n")):
        s = f32(0)
        for i in lanes(w):
            s += x[i]
        out[w] = warp.sum(s)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fn", [warp_work_of_one_warp, names_of_the_group_in_a_branch,
                                reduced_condition, lanes_of_a_warp])  # fmt: skip
def test_what_all_lanes_or_whole_warps_reach_is_legal(fn, target):
    compiled(fn, target=target, group=128, until="Vectorize")


def test_a_group_of_one_warp_has_no_other_warps():
    func = compiled(barrier_for_some_warps, target="cuda", group=32)
    lower(func, "cuda")


def test_loops_of_warps_do_not_nest():
    def nested(x: X, out: Y):
        for i in warps(dim("n")):
            for j in warps(dim("n")):
                out[j] = x[i]

    with pytest.raises(IronError, match="warps loops cannot be nested"):
        compiled(nested)
