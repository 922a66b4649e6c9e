"""Vectorize: decide what is one value per warp and what one per lane; lane-wise branches get masks.

Every value gets `uniform`, and `stride` where lane l holds base + l*stride: such a value stays a
scalar and makes memory accesses contiguous. GPUs need none of this, since their hardware does it.
"""

from ..errors import IronError
from ..ir import COLLECTIVE, WARP_REDUCE, Block, Func, Op, Value

SCALAR = ("const", "dim", "arg", "step", "group_id", "warp_width", "warp_id", "num_warps")


def run(func: Func, target: str) -> None:
    """Analyze, then flatten branches; only for CPUs."""
    if target != "cpu":
        return
    _analyze(func.body)
    func.body.ops = _convert(func.body.ops, None)


# -- analysis -----------------------------------------------------------------------------------


def _analyze(block: Block) -> None:
    for op in block.ops:
        _op(op)


def _set(v: Value, uniform: bool, stride: int | None) -> None:
    v.uniform, v.stride = uniform, 0 if uniform else stride


def _op(op: Op) -> None:
    if op.kind == "for":
        return _loop(op)
    if op.kind == "if":
        for block in op.blocks:
            _analyze(block)
        same = op.args[0].uniform
        for i, r in enumerate(op.results):
            _set(r, same and all(b.ops[-1].args[i].uniform for b in op.blocks), None)
        return None
    if not op.results:
        return None
    if op.kind in SCALAR or op.kind in WARP_REDUCE or op.kind == "warp_read":
        return _set(op.result, True, None)
    if op.kind == "lane":
        return _set(op.result, False, 1)
    if op.kind == "warp_scan_sum":
        return _set(op.result, False, None)
    return _set(op.result, all(a.uniform for a in op.args), _stride(op))


def _stride(op: Op) -> int | None:
    strides = [0 if a.uniform else a.stride for a in op.args]
    if op.result.type not in ("u32", "i32") or any(s is None for s in strides):
        return None
    if op.kind == "cast" and op.args[0].type in ("u32", "i32"):
        return strides[0]
    if op.kind == "add":
        return strides[0] + strides[1]  # type: ignore[operator]
    if op.kind == "sub":
        return strides[0] - strides[1]  # type: ignore[operator]
    return None


def _loop(op: Op) -> None:
    body, lanes = op.blocks[0], op.attrs["kind"] == "lanes"
    if not all(a.uniform for a in op.args[:3]):
        raise IronError(
            "loop bounds must be the same for all lanes",
            op.loc,
            "loop to the largest bound and test inside, or reduce it with warp.max(…)",
        )
    _set(body.params[0], not lanes, 1)
    for p, init in zip(body.params[1:], op.args[3:], strict=True):
        _set(p, init.uniform and not lanes, None)
    while True:  # a carried value that becomes lane-wise in the body is lane-wise from the start
        _analyze(body)
        end, changed = body.ops[-1], False
        for p, y in zip(body.params[1:], end.args, strict=True):
            if p.uniform and not y.uniform:
                _set(p, False, None)
                changed = True
        if not changed:
            break
    for p, r in zip(body.params[1:], op.results, strict=True):
        _set(r, p.uniform, None)


# -- branches to masks --------------------------------------------------------------------------


def _convert(ops: list[Op], mask: Value | None) -> list[Op]:
    out: list[Op] = []
    for op in ops:
        if op.kind == "if" and (mask is not None or not op.args[0].uniform):
            out += _flatten(op, mask)
            continue
        for block in op.blocks:
            block.ops = _convert(block.ops, mask)
        if mask is not None:
            _masked(op, mask)
        out.append(op)
    return out


def _masked(op: Op, mask: Value) -> None:
    if op.kind in COLLECTIVE or op.kind == "step_store" or op.attrs.get("kind") == "lanes":
        raise IronError(f"internal: {op.kind} has no mask; uniformity.py refuses it", op.loc)
    if op.kind in ("load", "store", "shared_load", "shared_store", "div", "mod"):
        op.attrs["mask"] = mask


def _flatten(op: Op, mask: Value | None) -> list[Op]:
    def logic(kind: str, *args: Value) -> Op:
        return Op(kind, list(args), {}, [Value("bool", uniform=False)], loc=op.loc)

    cond, out = op.args[0], []
    inverse = logic("lnot", cond)
    out.append(inverse)
    for block, condition in zip(op.blocks, (cond, inverse.result), strict=True):
        inner = condition
        if mask is not None:
            both = logic("land", mask, condition)
            out.append(both)
            inner = both.result
        out += _convert(block.ops[:-1], inner)
    then, other = (b.ops[-1] for b in op.blocks)
    for i, r in enumerate(op.results):
        _set(r, False, None)
        out.append(Op("select", [cond, then.args[i], other.args[i]], {}, [r], loc=op.loc))
    return out
