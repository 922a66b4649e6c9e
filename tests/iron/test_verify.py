"""Planted faults: each breaks one rule of verify.py in IR that was legal before."""
# ruff: noqa: F821  shapes are strings that name dims

import pytest

from iron import In, Out, array, barrier, dim, dot_u8i8, f32, group, lane, lanes, parse, prefetch

from iron import u32, unroll, warps  # isort: skip
from iron.errors import IronError
from iron.ir import Func, Op, Value
from iron.passes import PIPELINE
from iron.verify import GONE, KNOWN, PASSES, SIGNATURES, TARGETS, verify
from support.kernels import compiled
from support.launch import KERNELS


def fresh(after: str, target: str, width: int = 64) -> Func:
    """A kernel with a bit of everything, after a pass."""

    def everything(x: In[u32, "n", "k"], y: In[f32, "n"], out: Out[f32, "n"]):
        words = array(u32, 2)
        for j in unroll(2):
            words[j] = x[0, j]
        total = f32(0)
        for r in warps(dim("n")):
            prefetch(y, r + 8)
            total += y[r]
        barrier()
        best = group.max(total) + f32(dot_u8i8(words, words, 4))
        for i in lanes(dim("n")):
            v = f32(lane())
            if y[i] > best:
                v = y[i] + best
            out[i] = v

    return compiled(everything, until=after, target=target, group=width)


def find(func: Func, kind: str) -> Op:
    return next(op for op in func.body.walk() if op.kind == kind)


def put(func: Func, *ops: Op) -> None:
    func.body.ops[-1:-1] = ops


def refused(func: Func, after: str, target: str, match: str) -> None:
    with pytest.raises(IronError, match=match):
        verify(func, after, target)


def test_rules_speak_of_the_passes_ops_and_targets_there_are():
    assert tuple(PIPELINE) == PASSES
    for rule in GONE:
        assert rule.after in PASSES and set(rule.targets) <= set(TARGETS)
        assert {op.partition(".")[0] for op in rule.ops} <= set(KNOWN)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("after", PASSES)
def test_what_the_passes_give_is_legal(after, target):
    verify(fresh(after, target), after, target)


GONE_CASES = [
    ("ConstFold", "cuda", "warp_width", "widths of a GPU"),
    ("Vectorize", "msl", "num_warps", "widths of a GPU"),
    ("TypeCheck", "cpu", "dp4a", "only CUDA"),
    ("Vectorize", "msl", "dp4a", "only CUDA"),
    ("Schedule", "cpu", "group_sum", "one warp"),
    ("Schedule", "cpu", "across_warps_sum", "one warp"),
    ("Vectorize", "cpu", "barrier", "one warp"),
]
ARGUMENTS = {"dp4a": ["i32", "u32", "u32"], "group_sum": ["f32"], "across_warps_sum": ["f32"]}


@pytest.mark.parametrize("after, target, kind, why", GONE_CASES)
def test_an_op_that_must_be_gone_is_refused(after, target, kind, why):
    func = fresh(after, target)
    consts = [
        Op("const", [], {"value": 0}, [Value(t, uniform=True)]) for t in ARGUMENTS.get(kind, [])
    ]
    gives = SIGNATURES[kind].split("->")[1].strip()
    results = [Value("f32" if gives == "N" else gives)] if gives else []
    put(func, *consts, Op(kind, [c.result for c in consts], {}, results))
    refused(func, after, target, f"{kind} .*must be gone: .*{why}")


@pytest.mark.parametrize("target", ["cuda", "msl"])
def test_dot_products_are_gone_from_gpus_after_tile_lowering(target):
    func = fresh("ConstFold", target)
    refused(func, "TileLowering", target, "dot_u8i8 .*must be gone")
    refused(fresh("Fusion", target), "Schedule", target, "prefetch .*must be gone")


def test_warps_loops_are_gone_where_a_group_is_one_warp():
    refused(fresh("Fusion", "cpu"), "Schedule", "cpu", r"\(for.warps\) must be gone")
    refused(fresh("Fusion", "cuda", 32), "Schedule", "cuda", "must be gone")
    verify(fresh("Schedule", "cuda", 64), "Schedule", "cuda")


def swap_types(func: Func) -> None:
    find(func, "add").result.type = "i32"


def drop_yield(func: Func) -> None:
    func.body.ops.pop()


def early_yield(func: Func) -> None:
    func.body.ops.insert(0, Op("yield"))


def use_before_definition(func: Func) -> None:
    func.body.ops.insert(0, func.body.ops.pop(-2))


def assign_twice(func: Func) -> None:
    put(func, Op("lane", [], {}, [func.body.ops[0].result]))


def unknown_op(func: Func) -> None:
    put(func, Op("teleport"))


def untyped(func: Func) -> None:
    find(func, "add").result.type = None


def no_attribute(func: Func) -> None:
    del find(func, "const").attrs["value"]


def no_such_dim(func: Func) -> None:
    find(func, "dim").attrs["name"] = "m"


def no_such_tensor(func: Func) -> None:
    find(func, "store").attrs["param"] = "z"


def wrong_rank(func: Func) -> None:
    find(func, "load").args.pop()


def float_index(func: Func) -> None:
    store = find(func, "store")
    store.args[0] = store.args[-1]


def stores_another_type(func: Func) -> None:
    store = find(func, "store")
    store.args[-1] = store.args[0]


def stores_to_an_input(func: Func) -> None:
    find(func, "store").attrs["param"] = "y"


def unknown_loop(func: Func) -> None:
    find(func, "for").attrs["kind"] = "spiral"


def loses_a_carried_value(func: Func) -> None:
    find(func, "for").results.clear()


def carries_another_type(func: Func) -> None:
    find(func, "for").results[0].type = "f16"


def mixed_bounds(func: Func) -> None:
    find(func, "for").blocks[0].params[0].type = "i32"


def branches_disagree(func: Func) -> None:
    find(func, "if").blocks[1].ops[-1].args.clear()


def condition_is_a_number(func: Func) -> None:
    find(func, "gt").result.type = "u32"


def return_in_a_loop(func: Func) -> None:
    loop, cond = find(func, "for"), Op("const", [], {"value": True}, [Value("bool")])
    loop.blocks[0].ops[-1:-1] = [cond, Op("return_if", [cond.result])]


def masked_without_vectorize(func: Func) -> None:
    store = find(func, "store")
    store.attrs["mask"] = store.args[0]


def barrier_in_a_lanes_loop(func: Func) -> None:
    loop = [op for op in func.body.walk() if op.attrs.get("kind") == "lanes"][0]
    loop.blocks[0].ops.insert(0, Op("barrier"))


def reduction_in_a_warps_loop(func: Func) -> None:
    body = find(func, "for").blocks[0]
    body.ops.insert(0, Op("group_sum", [body.params[1]], {}, [Value("f32")]))


FAULTS = {
    swap_types: "gives u32, got i32",
    drop_yield: "does not end in yield",
    early_yield: "not the end of its block",
    use_before_definition: "not defined before it",
    assign_twice: "assigns a value a second time",
    unknown_op: "teleport in .* is not an op",
    untyped: "got None",
    no_attribute: "lacks value",
    no_such_dim: "names 'm', legal: n, k",
    no_such_tensor: "names 'z', legal: x, y, out",
    wrong_rank: "has 1 indices, x has 2 axes",
    float_index: "index that is no integer",
    stores_another_type: "puts u32 into out, which holds f32",
    stores_to_an_input: "of y, which is in",
    unknown_loop: "names 'spiral', legal: range, lanes, warps",
    loses_a_carried_value: "carries .* values",
    carries_another_type: "as one variable",
    mixed_bounds: "has bounds of",
    branches_disagree: "yields",
    condition_is_a_number: "gives bool, got u32",
    return_in_a_loop: "not at the top level",
    masked_without_vectorize: "has a mask",
    barrier_in_a_lanes_loop: "barrier inside a lanes loop",
    reduction_in_a_warps_loop: "group.sum inside a warps loop",
}


@pytest.mark.parametrize("plant", FAULTS, ids=lambda f: f.__name__)
def test_a_planted_fault_is_found(plant):
    func = fresh("ConstFold", "cuda")
    plant(func)
    refused(func, "ConstFold", "cuda", FAULTS[plant])


def test_cpu_code_may_not_branch_on_lanes():
    func = fresh("Schedule", "cpu")
    refused(func, "Vectorize", "cpu", "differs? between lanes")


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_is_legal_after_every_pass(target):
    for name in sorted(KERNELS):
        func = parse.instance(KERNELS[name], *parse.instances(KERNELS[name])[0])
        for stage, run in PIPELINE.items():
            run(func, target)
            verify(func, stage, target)
