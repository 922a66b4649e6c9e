"""Legality of the IR as data: which ops may exist after which pass, and what each op needs.

Runs after every pass, so that a fault shows at the pass that made it and emitters need no checks.
"""

from dataclasses import dataclass

from . import uniformity
from .builtins import spoken
from .errors import IronError
from .ir import COLLECTIVE, GROUP_REDUCE, Block, Func, Op, Value
from .names import DTYPES, FLOATS, INTS, WIDE
from .step_block import FIELDS

PASSES = ("TypeCheck", "ConstFold", "TileLowering", "Fusion", "Schedule", "Vectorize")
TARGETS = ("cpu", "cuda", "msl")
GPUS = ("cuda", "msl")
WHOLE_GROUP = (*GROUP_REDUCE, "across_warps_sum", "warp_id", "num_warps", "for.warps")


@dataclass(frozen=True)
class Gone:
    """Ops that no longer exist after a pass on some targets; `for.KIND` is a kind of loop."""

    after: str
    targets: tuple[str, ...]
    ops: tuple[str, ...]
    why: str
    one_warp: bool = False  # only in kernels whose group is one warp


GONE = (
    Gone("ConstFold", GPUS, ("warp_width", "num_warps"), "widths of a GPU are known"),
    Gone("TileLowering", GPUS, ("dot_u8i8", "dot_bf16"), "only the CPU has it"),
    Gone("TypeCheck", ("cpu", "msl"), ("dp4a",), "only CUDA has it"),
    Gone("Schedule", ("cpu",), ("barrier", *WHOLE_GROUP), "a group is one warp"),
    Gone("Schedule", GPUS, ("prefetch",), "other warps hide latency"),
    Gone("Schedule", GPUS, WHOLE_GROUP, "the group is one warp", one_warp=True),
)

# What an op needs -> what it gives. T, N, F, I and S are each one type throughout an op: any,
# a number, a float, an integer, one of 32 bits; an op that is not here has rules of its own.
SIGNATURES = {
    "const": "-> T", "arg": "-> N", "step": "-> N",
    **dict.fromkeys(("dim", "group_id", "lane", "warp_id", "warp_width", "num_warps"), "-> u32"),
    **dict.fromkeys(("add", "sub", "mul", "div", "min", "max"), "N N -> N"),
    **dict.fromkeys(("mod", "and", "or", "xor", "shl", "shr"), "I I -> I"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), "T T -> bool"),
    **dict.fromkeys(("land", "lor"), "bool bool -> bool"), "lnot": "bool -> bool",
    **dict.fromkeys(("neg", "abs"), "N -> N"),
    **dict.fromkeys(("sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "floor", "ceil", "rint"),
                    "F -> F"),
    "fma": "N N N -> N", "mulhi": "u32 u32 -> u32", "select": "bool T T -> T",
    "cast": "T -> to", "bitcast": "S -> to", "dp4a": "i32 u32 u32 -> i32",
    "dot_bf16": "f32 u32 u32 -> f32",
    **dict.fromkeys(("warp_sum", "warp_max", "warp_min", "warp_scan_sum"), "N -> N"),
    **dict.fromkeys((*GROUP_REDUCE, "across_warps_sum"), "N -> N"), "warp_read": "T u32 -> T",
    "barrier": "->", "return_if": "bool ->", "step_store": "N ->",
}  # fmt: skip
LETTERS = {
    "T": (*DTYPES, "bool"), "N": tuple(DTYPES), "F": FLOATS, "I": INTS, "S": ("f32", "i32", "u32"),
}  # fmt: skip
ATTRIBUTES = {
    "const": "value", "dim": "name", "arg": "name", "step": "field", "step_store": "field",
    "group_id": "axis", "cast": "to", "bitcast": "to", "load": "param", "store": "param",
    "prefetch": "param", "shared_load": "name", "shared_store": "name", "dot_u8i8": "bits",
    "for": "kind",
}  # fmt: skip
LOOP_KINDS = ("range", "lanes", "warps")
MASKED = ("load", "store", "shared_load", "shared_store", "div", "mod")
ACCESS = ("load", "store", "prefetch", "shared_load", "shared_store")
KNOWN = (*SIGNATURES, *ACCESS, "dot_u8i8", "for", "if", "yield")
# Lanes (or warps) of one loop take different numbers of turns, so these could wait for ever.
IN_NO_LANES_LOOP = (*COLLECTIVE, "barrier")
IN_NO_WARPS_LOOP = (*GROUP_REDUCE, "across_warps_sum", "barrier")


def verify(func: Func, after: str, target: str) -> None:
    """Raise IronError if the function is not legal after the named pass for that target."""
    _Verifier(func, after, target).block(func.body, set(), ())
    if after == "TypeCheck":  # later passes change which ops there are, not where they stand
        uniformity.check(func)


class _Verifier:
    def __init__(self, func: Func, after: str, target: str):
        self.func, self.after, self.target = func, after, target
        self.places = {p.name: (p.dtype, len(p.shape)) for p in func.params}
        self.shared = {s.name: (s.dtype, len(s.shape)) for s in func.shared}
        self.kinds = {p.name: p.kind for p in func.params}
        self.assigned: set[Value] = set()
        reached = PASSES[: PASSES.index(after) + 1]
        self.gone = {
            op: rule.why
            for rule in GONE
            if rule.after in reached and target in rule.targets
            if not rule.one_warp or func.group == 32
            for op in rule.ops
        }
        self.folded = "ConstFold" in reached
        self.masks = after == "Vectorize" and target == "cpu"

    def fail(self, op: Op, what: str) -> IronError:
        where = f"after {self.after} for {self.target}, {op.kind} in {self.func.symbol}"
        return IronError(f"internal: {where} {what}", op.loc)

    # -- structure ------------------------------------------------------------------------------

    def block(self, block: Block, known: set[Value], loops: tuple[str, ...]) -> None:
        if not block.ops or block.ops[-1].kind != "yield":
            raise IronError(
                f"internal: after {self.after}, a block of {self.func.symbol} does not end in yield"
            )
        self.assign(block.ops[-1], block.params)
        known = known | set(block.params)
        for op in block.ops:
            for a in op.args + ([op.attrs["mask"]] if "mask" in op.attrs else []):
                if a not in known:
                    raise self.fail(op, "uses a value that is not defined before it")
            if op.kind == "yield" and op is not block.ops[-1]:
                raise self.fail(op, "is not the end of its block")
            self.op(op, block, loops)
            for inner in op.blocks:
                kind = (op.attrs["kind"],) if op.kind == "for" else ("if",)
                self.block(inner, known, loops + kind)
            self.assign(op, op.results)
            known |= set(op.results)

    def assign(self, op: Op, values: list[Value]) -> None:
        for v in values:
            if v in self.assigned:
                raise self.fail(op, "assigns a value a second time")
            self.assigned.add(v)

    def op(self, op: Op, block: Block, loops: tuple[str, ...]) -> None:
        kind = f"for.{op.attrs.get('kind')}" if op.kind == "for" else op.kind
        if op.kind not in KNOWN:
            raise self.fail(op, "is not an op")
        if kind in self.gone:
            raise self.fail(op, f"({kind}) must be gone: {self.gone[kind]}")
        if op.kind in ATTRIBUTES and ATTRIBUTES[op.kind] not in op.attrs:
            raise self.fail(op, f"lacks {ATTRIBUTES[op.kind]}")
        if "mask" in op.attrs and not (self.masks and op.kind in MASKED):
            raise self.fail(op, "has a mask")
        self.place_in_loops(op, loops)
        self.names(op)
        if op.kind in SIGNATURES:
            self.signature(op)
        elif op.kind in ACCESS:
            self.access(op)
        elif op.kind == "dot_u8i8":
            self.types(op, ["u32"] * len(op.args), "i32")
        elif op.kind == "for":
            self.loop(op)
        elif op.kind == "if":
            self.branch(op)
        if self.masks:
            self.uniform(op)

    def place_in_loops(self, op: Op, loops: tuple[str, ...]) -> None:
        if op.kind == "return_if" and loops:
            raise self.fail(op, "is not at the top level")
        for kind, refused in (("lanes", IN_NO_LANES_LOOP), ("warps", IN_NO_WARPS_LOOP)):
            if op.kind in refused and kind in loops:
                raise IronError(
                    f"{spoken(op)} inside a {kind} loop: {kind} take different numbers of turns",
                    op.loc,
                    "move the barrier out of the loop"
                    if op.kind == "barrier"
                    else "collect in a variable and reduce after the loop",
                )

    def names(self, op: Op) -> None:
        """What attributes name exists."""
        legal = {
            "dim": self.func.dims, "arg": [c.name for c in self.func.consts],
            "step": FIELDS, "step_store": FIELDS, "group_id": (0, 1, 2), "for": LOOP_KINDS,
            "load": self.places, "store": self.places, "prefetch": self.places,
            "shared_load": self.shared, "shared_store": self.shared,
            "cast": DTYPES, "bitcast": LETTERS["S"],
        }  # fmt: skip
        if op.kind in legal and (name := op.attrs[ATTRIBUTES[op.kind]]) not in legal[op.kind]:
            raise self.fail(op, f"names {name!r}, legal: {', '.join(map(str, legal[op.kind]))}")

    # -- types ----------------------------------------------------------------------------------

    def signature(self, op: Op) -> None:
        needs, gives = SIGNATURES[op.kind].split("->")
        self.types(op, needs.split(), gives.strip())

    def types(self, op: Op, needs: list[str], gives: str) -> None:
        if len(op.args) != len(needs) or len(op.results) != (gives != ""):
            raise self.fail(op, f"has {len(op.args)} arguments and {len(op.results)} results")
        bound: dict[str, str] = {}
        pairs = [(a, n, "needs") for a, n in zip(op.args, needs, strict=True)]
        for v, want, verb in pairs + [(r, gives, "gives") for r in op.results]:
            if v.type is None and op.kind == "const" and not self.folded:
                continue  # a literal that nothing has used
            want = op.attrs["to"] if want == "to" else want
            legal = (bound[want],) if want in bound else LETTERS.get(want, (want,))
            if v.type not in legal:
                raise self.fail(op, f"{verb} {' or '.join(legal)}, got {v.type}")
            if want in LETTERS:
                bound[want] = v.type

    def access(self, op: Op) -> None:
        name = op.attrs[ATTRIBUTES[op.kind]]
        dtype, rank = (self.shared if op.kind.startswith("shared") else self.places)[name]
        stores = op.kind.endswith("store")
        wide = WIDE.get(dtype, dtype)
        if len(op.args) != rank + stores:
            raise self.fail(op, f"has {len(op.args) - stores} indices, {name} has {rank} axes")
        if any(a.type not in ("u32", "i32") for a in op.args[:rank]):
            raise self.fail(op, "has an index that is no integer")
        if stores and op.args[-1].type not in (dtype, wide):
            raise self.fail(op, f"puts {op.args[-1].type} into {name}, which holds {dtype}")
        if op.kind.endswith("load") and [r.type for r in op.results] not in ([wide], [dtype]):
            raise self.fail(op, f"gives {[r.type for r in op.results]}, {name} holds {dtype}")
        forbidden = {"store": "in", "load": "out"}.get(op.kind)
        if forbidden and self.kinds[name] == forbidden:
            raise self.fail(op, f"of {name}, which is {forbidden}")

    def loop(self, op: Op) -> None:
        body = op.blocks[0]
        end = body.ops[-1].args if body.ops else []
        counts = {len(op.args) - 3, len(op.results), len(body.params) - 1, len(end)}
        if len(counts) != 1:
            raise self.fail(op, f"carries {sorted(counts)} values")
        bounds = {v.type for v in (*op.args[:3], body.params[0])}
        if bounds not in ({"u32"}, {"i32"}):
            raise self.fail(op, f"has bounds of {sorted(map(str, bounds))}")
        for same in zip(op.args[3:], body.params[1:], end, op.results, strict=True):
            if len({v.type for v in same}) != 1:
                raise self.fail(op, f"carries {[v.type for v in same]} as one variable")

    def branch(self, op: Op) -> None:
        if len(op.args) != 1 or op.args[0].type != "bool" or len(op.blocks) != 2:
            raise self.fail(op, "needs one condition and two blocks")
        for block in op.blocks:
            end = [a.type for a in block.ops[-1].args] if block.ops else None
            if end != [r.type for r in op.results]:
                raise self.fail(op, f"yields {end}, gives {[r.type for r in op.results]}")

    # -- lanes, for CPU code --------------------------------------------------------------------

    def uniform(self, op: Op) -> None:
        """Branches and bounds are one value per warp; what only some lanes do is under a mask."""
        if op.kind == "return_if" and not op.args[0].uniform:
            raise IronError(
                "a return that only some lanes take", op.loc, "use an if around the stores"
            )
        if op.kind == "if" and not op.args[0].uniform:
            raise self.fail(op, "branches on a condition that differs between lanes")
        if op.kind == "for" and not all(a.uniform for a in op.args[:3]):
            raise self.fail(op, "has bounds that differ between lanes")
        scalar = op.kind in ("store", "shared_store") and all(a.uniform for a in op.args[:-1])
        if scalar and not op.args[-1].uniform:
            raise IronError(
                "all lanes store different values to one place",
                op.loc,
                "reduce the value first, or index by lane",
            )
