"""Legality of the IR as data: what must hold after each pass."""

from .errors import IronError
from .ir import BINARY, COLLECTIVE, COMPARE, Block, Func, Op, Value

LOOP_KINDS = {"range", "lanes", "warps"}
# Ops that must be gone after a pass.
GONE = {"Schedule": {"cpu": ("barrier", "across_warps_sum", "group_sum", "group_max", "group_min")}}
SAME_TYPES = (*BINARY, *COMPARE)


def verify(func: Func, after: str) -> None:
    """Raise IronError if the function is not legal after the named pass."""
    _Verifier(func, after).block(func.body, set(), top=True)


class _Verifier:
    def __init__(self, func: Func, after: str):
        self.func, self.after = func, after
        self.params = {p.name: p for p in func.params}
        self.shared = {s.name: s for s in func.shared}

    def fail(self, op: Op, what: str) -> IronError:
        return IronError(
            f"internal: after {self.after}, {op.kind} in {self.func.symbol}: {what}", op.loc
        )

    def block(
        self, block: Block, known: set[Value], top: bool = False, lanes: bool = False
    ) -> None:
        known = known | set(block.params)
        if not block.ops or block.ops[-1].kind != "yield":
            raise IronError(
                f"internal: after {self.after}, a block of {self.func.symbol} does not end in yield"
            )
        for op in block.ops:
            for a in op.args:
                if a not in known:
                    raise self.fail(op, "uses a value that is not defined before it")
            self.op(op, top, lanes)
            inside = lanes or (op.kind == "for" and op.attrs["kind"] == "lanes")
            for inner in op.blocks:
                self.block(inner, known, lanes=inside)
            known |= set(op.results)

    def op(self, op: Op, top: bool, lanes: bool) -> None:
        for r in op.results:
            if r.type is None and op.kind != "const":
                raise self.fail(op, "has no type")
        if op.kind in SAME_TYPES and op.args[0].type != op.args[1].type:
            raise self.fail(op, f"mixes {op.args[0].type} and {op.args[1].type}")
        if op.kind == "return_if" and not top:
            raise self.fail(op, "is not at the top level")
        if op.kind in COLLECTIVE and lanes:
            raise IronError(f"{op.kind.replace('_', '.', 1)} inside a lanes loop: lanes take different numbers of "
                            "turns", op.loc, "collect in a variable and reduce after the loop")  # fmt: skip
        if op.kind in ("load", "store"):
            param = self.params[op.attrs["param"]]
            if len(param.shape) != len(op.args) - (op.kind == "store"):
                raise self.fail(op, f"has the wrong number of indices for {param.name}")
        if op.kind == "for":
            self.loop(op)
        if op.kind == "if" and any(len(b.ops[-1].args) != len(op.results) for b in op.blocks):
            raise self.fail(op, "yields another number of values than it has results")
        if (
            self.after == "Vectorize"
            and op.kind == "return_if"
            and self.flags
            and not op.args[0].uniform
        ):
            raise IronError(
                "a return that only some lanes take", op.loc, "use an if around the stores"
            )

    @property
    def flags(self) -> bool:
        """Uniformity is only known for CPU code."""
        return any(r.uniform for o in self.func.body.ops for r in o.results)

    def loop(self, op: Op) -> None:
        body = op.blocks[0]
        if op.attrs["kind"] not in LOOP_KINDS:
            raise self.fail(op, f"has kind {op.attrs['kind']}, legal: {sorted(LOOP_KINDS)}")
        counts = {len(op.args) - 3, len(op.results), len(body.params) - 1, len(body.ops[-1].args)}
        if len(counts) != 1:
            raise self.fail(op, f"carries {sorted(counts)} values")
