"""What several passes need: replacing values and dropping dead ops."""

from ..ir import EFFECTS, Block, Func, Op, Value


def replace(func: Func, mapping: dict[Value, Value]) -> None:
    """Use `mapping[v]` wherever v was used; chains are followed."""
    if not mapping:
        return
    for op in func.body.walk():
        op.args = [final(mapping, a) for a in op.args]
        if "mask" in op.attrs:
            op.attrs["mask"] = final(mapping, op.attrs["mask"])


def final(mapping: dict[Value, Value], v: Value) -> Value:
    """What stands for v at the end of a chain of replacements."""
    while v in mapping:
        v = mapping[v]
    return v


def uses(func: Func) -> dict[Value, int]:
    """How often each value is read."""
    count: dict[Value, int] = {}
    for op in func.body.walk():
        for a in op.args + ([op.attrs["mask"]] if "mask" in op.attrs else []):
            count[a] = count.get(a, 0) + 1
    return count


def has_effect(op: Op) -> bool:
    """Whether an op, or one inside it, does more than give its results."""
    return op.kind in EFFECTS or any(
        has_effect(o) for b in op.blocks for o in b.ops if o.kind != "yield"
    )


def drop_dead(func: Func) -> None:
    """Remove ops whose results nobody uses and that change nothing."""
    while True:
        used, removed = uses(func), False
        for op in func.body.walk():
            removed |= op.kind == "for" and _drop_carried(op, used)
        for block in blocks(func.body):
            keep = [o for o in block.ops if has_effect(o) or any(used.get(r) for r in o.results)]
            removed |= len(keep) != len(block.ops)
            block.ops = keep
        if not removed:
            return


def _drop_carried(op: Op, used: dict[Value, int]) -> bool:
    """A carried value that is neither read in the loop nor after it is no carried value."""
    body = op.blocks[0]
    end = body.ops[-1]
    dead = [
        i for i, r in enumerate(op.results) if not used.get(r) and not used.get(body.params[1 + i])
    ]
    for i in reversed(dead):
        del op.results[i], op.args[3 + i], body.params[1 + i], end.args[i]
    return bool(dead)


def blocks(block: Block) -> list[Block]:
    """A block and all blocks inside it."""
    found = [block]
    for op in block.ops:
        for inner in op.blocks:
            found += blocks(inner)
    return found


def definitions(func: Func) -> dict[Value, Op]:
    """The op that gives each value; block parameters have none."""
    return {r: op for op in func.body.walk() for r in op.results}
