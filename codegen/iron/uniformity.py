"""Which values and branches are equal across a group, a warp or only in one lane.

Lanes that wait for others must all arrive: what some lanes or warps skip may hold no barrier and
no collective. The rules are those of the widest target, so a kernel is legal everywhere or nowhere.
"""

from enum import IntEnum

from .builtins import spoken
from .errors import IronError
from .ir import COLLECTIVE, GROUP_REDUCE, WARP_REDUCE, Block, Func, Op, Value

WHOLE_GROUP = (*GROUP_REDUCE, "across_warps_sum", "barrier")
HINTS = {
    "barrier": "move the barrier out; guard only the loads and stores",
    "for": "move the loop out, and put the condition inside it",
    "return_if": "use an if around the stores",
    "step_store": "store it outside; choose the value with `a if c else b`",
}


class Level(IntEnum):
    """How far apart two lanes must be to hold different values."""

    GROUP, WARP, LANE = 0, 1, 2


SCOPE = {Level.WARP: "warps", Level.LANE: "lanes"}


def check(func: Func) -> None:
    """Raise IronError where only some lanes or warps would reach what needs all of them."""
    _Checker(func).block(func.body, Level.GROUP, "", False)


class _Checker:
    def __init__(self, func: Func):
        self.levels: dict[Value, Level] = {}
        self.one_warp = func.group == 32
        self.settled = True  # False while the levels of a loop are still rising

    def of(self, *values: Value) -> Level:
        return max((self.levels[v] for v in values), default=Level.GROUP)

    def set(self, v: Value, level: Level) -> None:
        self.levels[v] = Level.GROUP if self.one_warp and level == Level.WARP else level

    def block(self, block: Block, context: Level, why: str, in_warps: bool) -> None:
        """`context` says who may skip the block because of `why`."""
        for op in block.ops:
            if self.settled:
                self.place(op, context, why, in_warps)
            if op.kind == "for":
                self.loop(op, context, why, in_warps)
            elif op.kind == "if":
                self.branch(op, context, why, in_warps)
            elif op.results:
                self.set(op.result, self.level(op))

    def level(self, op: Op) -> Level:
        level = self.of(*op.args)
        if op.kind in GROUP_REDUCE:
            return Level.GROUP
        if op.kind in ("lane", "warp_scan_sum"):
            return Level.LANE
        if op.kind == "warp_id":
            return Level.WARP
        if op.kind in WARP_REDUCE or op.kind == "warp_read":
            return min(level, Level.WARP)
        if op.kind == "across_warps_sum" and level == Level.WARP:
            return Level.GROUP
        return level

    # -- control flow ---------------------------------------------------------------------------

    def branch(self, op: Op, context: Level, why: str, in_warps: bool) -> None:
        level = self.of(op.args[0])
        if level > context:
            context, why = level, f"under a condition that differs between {SCOPE[level]}"
        for block in op.blocks:
            self.block(block, context, why, in_warps)
        for i, r in enumerate(op.results):
            self.set(r, max(level, *(self.of(b.ops[-1].args[i]) for b in op.blocks)))

    def loop(self, op: Op, context: Level, why: str, in_warps: bool) -> None:
        kind, body = op.attrs["kind"], op.blocks[0]
        bounds = self.of(*op.args[:3])
        own = {"range": bounds, "warps": Level.WARP, "lanes": Level.LANE}[kind]
        self.set(body.params[0], own)
        least = self.levels[body.params[0]]
        for p, init in zip(body.params[1:], op.args[3:], strict=True):
            self.set(p, max(least, self.of(init)))
        inner = (context, why)
        if least > context:
            inner = (least, f"inside a {kind} loop" if kind != "range" else
                     f"inside a loop whose bounds differ between {SCOPE[least]}")  # fmt: skip
        was_settled, self.settled = self.settled, False
        rising = True
        while rising:
            self.block(body, *inner, in_warps or kind == "warps")
            rising = False
            for p, y in zip(body.params[1:], body.ops[-1].args, strict=True):
                if self.of(y) > self.levels[p]:
                    self.set(p, self.of(y))
                    rising = True
        self.settled = was_settled
        if self.settled:
            self.block(body, *inner, in_warps or kind == "warps")
        for p, r in zip(body.params[1:], op.results, strict=True):
            self.set(r, self.levels[p])

    # -- rules ----------------------------------------------------------------------------------

    def place(self, op: Op, context: Level, why: str, in_warps: bool) -> None:
        allowed = Level.LANE
        if op.kind == "for":
            allowed = self.place_loop(op, in_warps)
        elif op.kind in WHOLE_GROUP:
            allowed = Level.GROUP
        elif op.kind in COLLECTIVE or op.kind == "step_store":
            allowed = Level.WARP
        if context > allowed:
            hint = HINTS.get(op.kind, "collect in a variable and reduce after it")
            raise IronError(f"{spoken(op)} {why}", op.loc, hint)
        if op.kind == "return_if" and (level := self.of(op.args[0])):
            raise IronError(f"a return that only some {SCOPE[level]} take", op.loc, HINTS[op.kind])
        if op.kind == "step_store" and (level := self.of(op.args[0])):
            raise IronError(
                f"the value for step.{op.attrs['field']} differs between {SCOPE[level]}",
                op.loc,
                "reduce it first: group.max(…)",
            )
        if op.kind == "warp_read" and self.of(op.args[1]) == Level.LANE:
            raise IronError(
                "warp.read from a lane number that differs between lanes",
                op.loc,
                "all lanes read the same lane; for other patterns use shared(…)",
            )

    def place_loop(self, op: Op, in_warps: bool) -> Level:
        """Whom a loop may be skipped by, after a look at its bounds."""
        kind, bounds = op.attrs["kind"], self.of(*op.args[:3])
        legal = Level.GROUP if kind != "range" and not in_warps else Level.WARP
        if bounds > legal:
            raise IronError(
                f"loop bounds must be the same for all {SCOPE[bounds]}",
                op.loc,
                "loop to the largest bound and test inside, or reduce it with "
                + ("warp.max(…)" if legal == Level.WARP else "group.max(…)"),
            )
        return Level.LANE if kind == "range" else legal
