"""TypeCheck: give every value a type and make every conversion explicit.

Literals take the type of the other operand. Integers meet floats as floats, f16 and bf16 meet f32
as f32; i32 never meets u32 silently, since division and comparison then depend on the language.
Loads of i8 and i16 give i32, of u8 and u16 u32: small integers exist only in memory.
"""

from ..builtins import spoken
from ..errors import IronError
from ..ir import BINARY, COMPARE, UNARY, Block, Func, Op, Value
from ..names import FLOATS, WIDE, int_range
from ..step_block import FIELDS

INTEGER_ONLY = ("mod", "and", "or", "xor", "shl", "shr")


def run(func: Func, target: str) -> None:
    """Set the type of every value and insert casts, or raise with the author's line."""
    _Checker(func).block(func.body)


class _Checker:
    def __init__(self, func: Func):
        self.func = func
        self.consts: dict[int, Op] = {}
        self.args = {c.name: c.dtype for c in func.consts}

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            self.here = block
            self.op(op)
            self.here = block

    def fail(self, op: Op, message: str, hint: str = "") -> IronError:
        return IronError(message, op.loc, hint)

    # -- coercion -------------------------------------------------------------------------------

    def coerce(self, op: Op, i: int, to: str) -> None:
        """Make args[i] a value of type `to`, or refuse."""
        v = op.args[i]
        if v.type is None:
            self.settle(op, v, to)
        elif v.type != to:
            int_to_float = v.type in ("i32", "u32") and to in FLOATS
            if not int_to_float and (v.type, to) not in (("f16", "f32"), ("bf16", "f32")):
                raise self.fail(
                    op, f"{spoken(op)} needs {to}, got {v.type}", f"convert with {to}(…)"
                )
            cast = Op("cast", [v], {"to": to}, [Value(to)], loc=op.loc)
            self.here.ops.insert(self.here.ops.index(op), cast)
            op.args[i] = cast.result

    def settle(self, op: Op, v: Value, to: str) -> None:
        """A literal takes its type."""
        const = self.consts[id(v)]
        x = const.attrs["value"]
        if to == "bool" and not isinstance(x, bool):
            raise self.fail(op, f"{x} is not a condition", "compare it")
        if to in ("i32", "u32") and isinstance(x, float):
            raise self.fail(op, f"{x} cannot become {to}", f"convert with {to}(…)")
        low, high = int_range(to)
        if to in ("i32", "u32") and not low <= x <= high:
            raise self.fail(op, f"{x} does not fit {to}", f"it holds up to {high}")
        const.attrs["value"] = float(x) if to in FLOATS else (bool(x) if to == "bool" else int(x))
        if to == "u32":
            const.attrs["value"] &= 0xFFFFFFFF
        v.type = to

    def default(self, op: Op, v: Value) -> str:
        if v.type is None:
            x = self.consts[id(v)].attrs["value"]
            self.settle(
                op, v, "bool" if isinstance(x, bool) else "f32" if isinstance(x, float) else "i32"
            )
        return v.type  # type: ignore[return-value]

    def join(self, op: Op, indices: range | list[int]) -> str:
        """One common type for some arguments."""
        known = {op.args[i].type for i in indices} - {None}
        if not known:
            kinds = [self.consts[id(op.args[i])].attrs["value"] for i in indices]
            to = "f32" if any(isinstance(k, float) for k in kinds) else "i32"
        elif len(known) == 1:
            (to,) = known
            literal_float = any(
                op.args[i].type is None
                and isinstance(self.consts[id(op.args[i])].attrs["value"], float)
                for i in indices
            )
            if to in ("i32", "u32") and literal_float:
                to = "f32"
        elif known & set(FLOATS):
            floats = known & set(FLOATS)
            to = next(iter(floats)) if len(floats) == 1 else "f32"
        else:
            raise self.fail(
                op,
                f"{spoken(op)} of {' and '.join(sorted(known))}",
                "convert one side: i32(…) or u32(…)",
            )
        for i in indices:
            self.coerce(op, i, to)
        return to

    # -- ops ------------------------------------------------------------------------------------

    def op(self, op: Op) -> None:
        kind = op.kind
        if kind == "const":
            self.consts[id(op.result)] = op
        elif kind in ("dim", "group_id", "lane", "warp_id", "warp_width", "num_warps"):
            op.result.type = "u32"
        elif kind == "arg":
            op.result.type = self.args[op.attrs["name"]]
        elif kind == "step":
            op.result.type = FIELDS[op.attrs["field"]][1]
        elif kind in BINARY:
            self.binary(op)
        elif kind in COMPARE:
            self.join(op, range(2))
            op.result.type = "bool"
        elif kind in ("land", "lor", "lnot"):
            for i in range(len(op.args)):
                self.coerce(op, i, "bool")
            op.result.type = "bool"
        elif kind in UNARY:
            self.unary(op)
        elif kind == "fma":
            op.result.type = self.join(op, range(3))
        elif kind == "mulhi":
            for i in range(2):
                self.coerce(op, i, "u32")
            op.result.type = "u32"
        elif kind in ("cast", "bitcast"):
            self.cast(op)
        elif kind == "select":
            self.coerce(op, 0, "bool")
            op.result.type = self.join(op, [1, 2])
        elif kind in ("load", "shared_load"):
            self.indices(op, len(op.args))
            dtype = self.storage(op)
            op.result.type = WIDE.get(dtype, dtype)
        elif kind in ("store", "shared_store"):
            self.indices(op, len(op.args) - 1)
            self.stored(op, self.storage(op))
        elif kind == "warp_read":
            self.coerce(op, 1, "u32")
            op.result.type = self.default(op, op.args[0])
        elif kind.startswith(("warp_", "group_", "across_")):
            op.result.type = self.default(op, op.args[0])
            if op.result.type == "bool":
                raise self.fail(op, f"{spoken(op)} of a condition", "count it: u32(…)")
        elif kind == "dot_bf16":
            for i, type_ in enumerate(("f32", "u32", "u32")):
                self.coerce(op, i, type_)
            op.result.type = "f32"
        elif kind == "dot_u8i8":
            for i in range(len(op.args)):
                self.coerce(op, i, "u32")
            op.result.type = "i32"
        elif kind == "prefetch":
            self.indices(op, len(op.args))
        elif kind == "step_store":
            self.coerce(op, 0, FIELDS[op.attrs["field"]][1])
        elif kind == "return_if":
            self.coerce(op, 0, "bool")
        elif kind == "for":
            self.loop(op)
        elif kind == "if":
            self.branch(op)
        elif kind not in ("barrier", "yield"):
            raise self.fail(op, f"unknown op {kind}")

    def storage(self, op: Op) -> str:
        if "param" in op.attrs:
            return self.func.param(op.attrs["param"]).dtype
        return next(s.dtype for s in self.func.shared if s.name == op.attrs["name"])

    def stored(self, op: Op, dtype: str) -> None:
        v = op.args[-1]
        if v.type is None:
            self.settle(op, v, WIDE.get(dtype, dtype))
        name = op.attrs.get("param", "shared memory")
        if v.type not in (dtype, WIDE.get(dtype)):
            raise self.fail(op, f"{name} holds {dtype}, got {v.type}", f"convert with {dtype}(…)")

    def indices(self, op: Op, count: int) -> None:
        for i in range(count):
            v = op.args[i]
            if v.type is None:
                self.settle(op, v, "u32")
            if v.type not in ("u32", "i32"):
                raise self.fail(op, f"an index must be an integer, got {v.type}")

    def binary(self, op: Op) -> None:
        to = self.join(op, range(2))
        if to == "bool" or (op.kind in INTEGER_ONLY and to in FLOATS):
            raise self.fail(op, f"{spoken(op)} is not defined for {to}")
        if op.kind == "div" and to not in FLOATS and not op.attrs.get("floor"):
            raise self.fail(
                op, f"/ on {to}", "use // for integers, or convert one side with f32(…)"
            )
        if op.kind == "div" and to in FLOATS and op.attrs.get("floor"):
            raise self.fail(op, f"// on {to}", "use / for floats")
        op.result.type = to

    def unary(self, op: Op) -> None:
        to = self.default(op, op.args[0])
        if op.kind not in ("neg", "abs") and to not in FLOATS:
            if to not in ("i32", "u32"):
                raise self.fail(op, f"{spoken(op)} is not defined for {to}")
            self.coerce(op, 0, "f32")
            to = "f32"
        op.result.type = to

    def cast(self, op: Op) -> None:
        v, to = op.args[0], op.attrs["to"]
        if v.type is None:
            x = self.consts[id(v)].attrs["value"]
            if to in FLOATS:
                self.settle(op, v, "f32")
            else:
                self.settle(
                    op, v, "f32" if isinstance(x, float) else ("u32" if to[0] == "u" else "i32")
                )
        if op.kind == "bitcast" and (
            v.type not in ("f32", "i32", "u32") or to not in ("f32", "i32", "u32")
        ):
            raise self.fail(
                op, f"bitcast from {v.type} to {to}", "only f32, i32 and u32 share their 32 bits"
            )
        op.result.type = to

    def loop(self, op: Op) -> None:
        body = op.blocks[0]
        known = {a.type for a in op.args[:3]} - {None}
        bound = "i32" if known == {"i32"} else "u32"
        for i in range(3):
            self.coerce(op, i, bound)
        body.params[0].type = bound
        for p, init in zip(body.params[1:], op.args[3:], strict=True):
            p.type = self.default(op, init)
        self.block(body)
        self.here = body
        end = body.ops[-1]
        for i, p in enumerate(body.params[1:]):
            if end.args[i].type not in (None, p.type):
                name, now = p.name or "a variable", end.args[i].type
                raise self.fail(
                    op,
                    f"{name} is {p.type} before the loop and {now} after it",
                    f"start it as {now}(…)",
                )
            self.coerce(end, i, p.type)  # type: ignore[arg-type]
        for r, p in zip(op.results, body.params[1:], strict=True):
            r.type = p.type

    def branch(self, op: Op) -> None:
        self.coerce(op, 0, "bool")
        for block in op.blocks:
            self.block(block)
        ends = [b.ops[-1] for b in op.blocks]
        for i, r in enumerate(op.results):
            known = {e.args[i].type for e in ends} - {None}
            if len(known) > 1:
                raise self.fail(
                    op,
                    f"{r.name or 'a variable'} is {' or '.join(sorted(known))} after the if",
                    "convert it in one branch",
                )
            to = known.pop() if known else self.default(ends[0], ends[0].args[i])
            for block, end in zip(op.blocks, ends, strict=True):
                self.here = block
                self.coerce(end, i, to)
            r.type = to
