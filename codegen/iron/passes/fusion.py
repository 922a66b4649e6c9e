"""Fusion of ops: a float product that only feeds a sum becomes one fused multiply-add.

Done here and not by the C++ compilers, which may not contract, so that all targets and the
interpreter round alike. Kernels are not fused here: a fused kernel is written as a kernel, so that
it can be seen and profiled.
"""

from ..ir import Func, Op
from .rewrite import blocks, definitions, drop_dead, uses


def run(func: Func, target: str) -> None:
    """Fuse in every block; a product in another block stays where it is."""
    used, defs = uses(func), definitions(func)
    for block in blocks(func.body):
        here = set(map(id, block.ops))
        for op in list(block.ops):
            if op.kind in ("add", "sub") and op.result.type == "f32":
                _fuse(block.ops, op, used, defs, here)
    drop_dead(func)


def _fuse(ops: list[Op], op: Op, used: dict, defs: dict, here: set[int]) -> None:
    for i in (0, 1):
        product = defs.get(op.args[i])
        if (
            product is None
            or product.kind != "mul"
            or used[product.result] != 1
            or id(product) not in here
        ):
            continue
        a, b = product.args
        c = op.args[1 - i]
        if op.kind == "sub":
            # a*b - c = fma(a, b, -c) and c - a*b = fma(-a, b, c): negation is exact.
            source = c if i == 0 else a
            negated = Op("neg", [source], {}, [type(source)(source.type)], loc=op.loc)
            ops.insert(ops.index(op), negated)
            c, a = (negated.result, a) if i == 0 else (c, negated.result)
        op.kind, op.args, op.attrs = "fma", [a, b, c], {}
        return
