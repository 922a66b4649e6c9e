"""The typed SSA form that every pass reads and writes.

A `Func` holds one block. A block is a list of ops; control flow is structured: `for` and `if` ops
own blocks that end in `yield`. Loop-carried values are block parameters, so every value is assigned
exactly once.

Ops (args -> results; attributes in braces):

    const {value}                  a number; its type comes from TypeCheck
    dim {name}, arg {name}         a named dim (u32), a Const parameter
    step {field}                   a field of the step block
    step_store {field} (v)         writes a field of the step block; v is the same in all lanes
    group_id {axis}, lane, warp_id u32; lane counts inside a warp, warp_id inside a group
    warp_width, num_warps          u32; known per target after ConstFold
    add sub mul div mod min max    same type on both sides; div floors on integers
    and or xor shl shr             integers; shr keeps the sign of i32
    eq ne lt le gt ge              -> bool
    land lor lnot                  bool
    neg abs sqrt rsqrt exp log sin cos tanh floor ceil rint
    fma (a, b, c)                  a*b + c, rounded once
    mulhi (a, b)                   upper half of the 64-bit product of two u32
    cast {to}                      converts: to nearest even; float to integer truncates, saturates
    bitcast {to}                   keeps the 32 bits
    select (c, a, b)
    load {param} (i…)              one element of a tensor parameter
    store {param} (i…, v)
    prefetch {param} (i…)          a hint, only for CPUs; the place need not exist
    shared_load {name} (i…)        group memory, declared in Func.shared
    shared_store {name} (i…, v)
    warp_sum warp_max warp_min (x) over the lanes of a warp -> the same value in every lane
    warp_scan_sum (x)              inclusive prefix sum over the lanes of a warp
    warp_read (x, lane)            the value another lane holds; `lane` is the same for all lanes
    group_sum group_max group_min  over all lanes of the group
    across_warps_sum (x)           lane by lane over the warps of the group
    barrier                        orders memory among the lanes of a group, as do group_sum,
                                   group_max, group_min and across_warps_sum
    dot_u8i8 {bits} (c…, x…)       -> i32, the sum over words of four products: unsigned codes
                                   below 2**bits times signed bytes
    dp4a (acc, c, x)               -> i32, acc plus four products of unsigned bytes of c and signed
                                   bytes of x; wraps
    dot_bf16 (acc, a, b)           -> f32, acc plus the products of the two bf16 that each word
                                   holds, low half first; each is added with one rounding, and a
                                   device may take subnormals for zero
    for {kind} (start, stop, step, init…) [iv, carried…] -> carried…
                                   kind: range | lanes (of the group; inside a warps loop, of the
                                   warp) | warps
    if (cond) [then] [else] -> values
    return_if (cond)               ends the group; cond is the same for all lanes; top level only
    yield (values…)

bf16, f16, i8, u8, i16 and u16 are storage types: a value of such a type is exactly representable
in it, arithmetic on them rounds after every operation. `verify.py` holds the types and places that
each op allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import Loc
from .exprs import Expr, text


@dataclass(eq=False)
class Value:
    """One SSA value; Vectorize sets `uniform`, and `stride` from lane to lane or None."""

    type: str | None = None
    name: str = ""
    uniform: bool = False
    stride: int | None = None


@dataclass(eq=False)
class Op:
    """One operation: what the list above says of its kind."""

    kind: str
    args: list[Value] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    results: list[Value] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    loc: Loc | None = None

    @property
    def result(self) -> Value:
        return self.results[0]


@dataclass(eq=False)
class Block:
    """Ops in order, the last one a yield; params are what the owner hands in at every entry."""

    params: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def walk(self) -> Iterator[Op]:
        for op in self.ops:
            yield op
            for block in op.blocks:
                yield from block.walk()


@dataclass(frozen=True)
class Param:
    """A tensor parameter: kind is in, out or inout; shape outer to inner."""

    name: str
    kind: str
    dtype: str
    shape: tuple[Expr, ...]


@dataclass(frozen=True)
class ConstParam:
    """A scalar that is fixed when the program is recorded."""

    name: str
    dtype: str


@dataclass(frozen=True)
class Shared:
    """Group memory; shape outer to inner."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(eq=False)
class Func:
    """One instance of a kernel: types and statics chosen."""

    symbol: str
    kernel: str
    source: str
    types: dict[str, str]
    statics: dict[str, int]
    params: list[Param]
    consts: list[ConstParam]
    dims: list[str]
    grid: tuple[Expr, Expr, Expr]
    group: int
    constraints: list[tuple[Expr, str]]
    bytes: Expr
    flops: Expr
    shared: list[Shared] = field(default_factory=list)
    body: Block = field(default_factory=Block)
    uses_step: bool = False
    writes_step: bool = False

    def param(self, name: str) -> Param:
        return next(p for p in self.params if p.name == name)


BINARY = ("add", "sub", "mul", "div", "mod", "min", "max", "and", "or", "xor", "shl", "shr")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
LOGIC = ("land", "lor", "lnot")
UNARY = (
    "neg", "abs", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "floor", "ceil", "rint",
)  # fmt: skip
WARP_REDUCE = ("warp_sum", "warp_max", "warp_min")
GROUP_REDUCE = ("group_sum", "group_max", "group_min")
COLLECTIVE = WARP_REDUCE + GROUP_REDUCE + ("warp_scan_sum", "warp_read", "across_warps_sum")
EFFECTS = ("store", "prefetch", "step_store", "shared_store", "barrier", "return_if", "yield")


def clone(func: Func) -> Func:
    """A copy whose ops and values are its own: passes change a Func in place."""
    values: dict[Value, Value] = {}

    def value(v: Value) -> Value:
        if v not in values:
            values[v] = replace(v)
        return values[v]

    def block(b: Block) -> Block:
        return Block([value(p) for p in b.params], [op(o) for o in b.ops])

    def op(o: Op) -> Op:
        attrs = {k: value(a) if isinstance(a, Value) else a for k, a in o.attrs.items()}
        args, results = [value(a) for a in o.args], [value(r) for r in o.results]
        return Op(o.kind, args, attrs, results, [block(b) for b in o.blocks], o.loc)

    return replace(func, shared=list(func.shared), body=block(func.body))


def show(func: Func) -> str:
    """The function as text, for `iron show` and for golden tests of passes."""
    numbers: dict[int, str] = {}

    def ref(v: Value) -> str:
        return numbers.setdefault(id(v), f"%{len(numbers)}")

    def sig(v: Value) -> str:
        mark = "" if v.stride is None and not v.uniform else ("u" if v.uniform else f"+{v.stride}")
        return f"{ref(v)}:{v.type or '?'}{mark}"

    def lines(block: Block, depth: int) -> Iterator[str]:
        pad = "  " * depth
        for op in block.ops:
            left = ", ".join(sig(r) for r in op.results)
            attrs = " ".join(
                f"{k}={ref(v) if isinstance(v, Value) else v}" for k, v in op.attrs.items()
            )
            line = op.kind + (f" {{{attrs}}}" if attrs else "")
            line += (" " + ", ".join(ref(a) for a in op.args)) if op.args else ""
            yield pad + (f"{left} = " if left else "") + line
            for inner in op.blocks:
                yield pad + "  [" + ", ".join(sig(p) for p in inner.params) + "]"
                yield from lines(inner, depth + 2)

    head = [f"func {func.symbol} group={func.group}"]
    for p in func.params:
        shape = ", ".join(text(s) for s in p.shape)
        head.append(f"  {p.kind} {p.name}: {p.dtype}[{shape}]")
    head += [f"  shared {s.name}: {s.dtype}{list(s.shape)}" for s in func.shared]
    return "\n".join(head + list(lines(func.body, 1))) + "\n"
