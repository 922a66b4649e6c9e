"""Schedule: map the group onto the target.

A CPU runs a group as one warp: loops over warps become plain loops, group reductions warp
reductions, and barriers vanish. A GPU group of 32 lanes is one warp as well; larger groups stay as
they are. A group reduction orders memory and a warp reduction does not, so a barrier is left in its
place.
"""

from ..ir import GROUP_REDUCE, Func, Op, Value
from .rewrite import blocks, drop_dead, replace


def run(func: Func, target: str) -> None:
    """Rewrite what concerns the whole group."""
    if target != "cpu":  # GPUs hide latency with other warps
        for block in blocks(func.body):
            block.ops = [op for op in block.ops if op.kind != "prefetch"]
    if target != "cpu" and func.group != 32:
        return
    ordered = target != "cpu" and (func.shared or any(p.kind == "inout" for p in func.params))
    mapping: dict[Value, Value] = {}
    for block in blocks(func.body):
        kept = []
        for op in block.ops:
            if op.kind == "barrier" and target == "cpu":
                continue
            if ordered and (op.kind in GROUP_REDUCE or op.kind == "across_warps_sum"):
                kept.append(Op("barrier", loc=op.loc))
            if op.kind == "across_warps_sum":
                mapping[op.result] = op.args[0]
                continue
            if op.kind == "for" and op.attrs["kind"] == "warps":
                op.attrs["kind"] = "range"
            elif op.kind in GROUP_REDUCE:
                op.kind = op.kind.replace("group", "warp")
            elif op.kind in ("warp_id", "num_warps"):
                op.kind, op.attrs = "const", {"value": 0 if op.kind == "warp_id" else 1}
            kept.append(op)
        block.ops = kept
    replace(func, mapping)
    drop_dead(func)
