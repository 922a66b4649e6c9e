"""GPU kernels as C-like text: SSA values become locals, and a `Dialect` spells the rest.

A lane is a thread, so values need no vectors and branches no masks. A value that the author named,
or that is used more than once, gets a local; everything else is written where it is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..errors import IronError
from ..exprs import Expr, c_code, integer
from ..ir import COLLECTIVE, GROUP_REDUCE, Block, Func, Op, Value
from ..names import DTYPES, FLOATS
from ..step_block import FIELDS
from .dialect import (
    ATOM,
    INFIX,
    KEYWORDS,
    LEVELS,
    LONGEST_INLINE,
    LOOSE,
    PRODUCT,
    SUM,
    WARP,
    Code,
    Dialect,
    accumulator,
    float_text,
    is_narrow,
    scratch,
)


@dataclass
class Writer:
    """Prints one function."""

    func: Func
    dialect: Dialect
    table: bool = False  # parameters come through one pointer to a table
    lines: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # tensors, consts and dims in the body
    ids: set[str] = field(default_factory=set)  # group_id, thread, lane, warp, step in the body

    def __post_init__(self) -> None:
        self.depth, self.in_warps = 1, False
        self.codes: dict[Value, Code] = {}
        self.pending: dict[Value, Code] = {}
        self.defs = {r: op for op in self.func.body.walk() for r in op.results}
        self.uses: dict[Value, list[Block]] = {}
        self._count(self.func.body)
        self.taken = set(KEYWORDS | self.dialect.reserved)
        f = self.func
        self.names = {
            n: self.fresh(n)
            for n in [p.name for p in f.params] + f.dims + [c.name for c in f.consts]
        }
        self.arrays = {s.name: self.fresh(s.name) for s in f.shared}

    def _count(self, block: Block) -> None:
        for op in block.ops:
            for a in op.args:
                self.uses.setdefault(a, []).append(block)
            for inner in op.blocks:
                self._count(inner)

    # -- text -----------------------------------------------------------------------------------

    @property
    def mentioned(self) -> set[str]:
        """Parameters that the body mentions, by their name in the text."""
        names = {text for name, text in self.names.items() if name in self.used}
        names |= {"step_block"} if "step" in self.ids else set()
        return names | ({"dims"} if self.used & set(self.func.dims) else set())

    def write(self) -> str:
        self.block(self.func.body)
        body, self.lines = self.lines, []
        total = 0
        for s in [*self.func.shared, *scratch(self.func)]:
            count = math.prod(s.shape)
            total += count * DTYPES[s.dtype]
            kind, name = self.dialect.types[s.dtype], self.arrays.get(s.name, s.name)
            self.line(self.dialect.shared.format(type=kind, name=name, count=count))
        if total > self.dialect.shared_limit:
            limit = self.dialect.shared_limit
            raise IronError(f"{self.func.symbol}: {total} bytes of group memory, limit {limit}")
        return "\n".join([*self.dialect.signature(self), *self.lines, *body, "}"]) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def fresh(self, name: str) -> str:
        """A name nothing else has."""
        unique, n = name if name not in KEYWORDS else name + "_", 1
        while unique in self.taken:
            unique, n = f"{name}_{n}", n + 1
        self.taken.add(unique)
        return unique

    def type(self, v: Value) -> str:
        return self.dialect.types[v.type or "i32"]

    def use(self, name: str) -> str:
        self.ids.add(name)
        return self.dialect.ids[name]

    # -- values ---------------------------------------------------------------------------------

    def code(self, v: Value) -> Code:
        self.pending.pop(v, None)
        return self.codes[v]

    def text(self, v: Value) -> str:
        return self.code(v).text

    def bind(self, v: Value, code: Code, here: Block) -> None:
        """Keep the expression for its only user, or give it a local."""
        uses = self.uses.get(v, [])
        if not uses:
            return
        named = v.name and code.level < ATOM
        once = len(uses) == 1 and uses[0] is here
        yielded = once and v in here.ops[-1].args  # becomes an assignment to a named variable
        if yielded or (once and not named and len(code.text) <= LONGEST_INLINE):
            self.codes[v] = code
            if code.loads:
                self.pending[v] = code
        else:
            self.local(v, code)

    def local(self, v: Value, code: Code) -> None:
        name = self.fresh(v.name or "t")
        self.line(f"const {self.type(v)} {name} = {code};")
        self.codes[v] = Code(name)

    def flush(self) -> None:
        """Before memory changes, loads that wait for their user must happen."""
        for v, code in list(self.pending.items()):
            self.local(v, code)
        self.pending.clear()

    def variable(self, v: Value, init: str | None = None) -> str:
        name = self.fresh(v.name or "t")
        self.line(f"{self.type(v)} {name}" + (f" = {init};" if init is not None else ";"))
        self.codes[v] = Code(name)
        return name

    # -- ops ------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for op in block.ops[:-1]:
            self.op(op, block)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names made inside are free again after it."""
        taken, self.depth = set(self.taken), self.depth + 1
        yield
        self.taken, self.depth = taken, self.depth - 1

    def op(self, op: Op, here: Block) -> None:
        handler = getattr(self, f"op_{op.kind}", None)
        if handler is not None:
            handler(op, here)
            return
        loads = any(self.code(a).loads for a in op.args)
        if op.kind in COLLECTIVE:
            code = self.collective(op)
            self.flush()
            self.local(op.result, code)
            return
        code = self.expression(op)
        code.loads = loads
        self.bind(op.result, code, here)

    def expression(self, op: Op) -> Code:
        """One op without effects over the texts of its arguments."""
        args = [self.code(a) for a in op.args]
        dtype, to = op.args[0].type or "", op.result.type or ""
        template = self.dialect.ops.get(f"{op.kind}.{dtype}") or self.dialect.ops.get(op.kind)
        if template is not None:
            return self.fill(template, args, to)
        if op.kind in INFIX:
            left, right, level = LEVELS.get(op.kind, (ATOM, ATOM, LOOSE))
            text = f"{args[0].at(left)} {INFIX[op.kind]} {args[1].at(right)}"
            return Code(f"{self.dialect.types[to]}({text})") if is_narrow(to) else Code(text, level)
        if op.kind in ("neg", "lnot"):
            text = ("-" if op.kind == "neg" else "!") + args[0].at(ATOM)
            return (
                Code(f"{self.dialect.types[to]}({text})") if is_narrow(to) else Code(text, PRODUCT)
            )
        if op.kind == "select":
            c, a, b = args
            return Code(f"{c.at(ATOM)} ? {a.at(SUM)} : {b.at(SUM)}", LOOSE)
        if dtype in ("f16", "bf16"):  # functions exist for f32 only: compute there, round once
            wide = [Code(self.cast(a, dtype, "f32")) for a in args]
            template = self.dialect.ops.get(f"{op.kind}.f32")
            if template is not None:
                return Code(self.cast(self.fill(template, wide, "f32"), "f32", to))
        raise IronError(f"this language has no {op.kind} of {dtype}", op.loc)

    def fill(self, template: str, args: list[Code], to: str) -> Code:
        if template == "{0}":
            return args[0]
        return Code(template.format(*(a.text for a in args), type=self.dialect.types[to]))

    def cast(self, x: Code, source: str, to: str) -> str:
        """Half types meet everything but f32 by way of f32."""
        if source == to:
            return x.text
        if {source, to} & {"f16", "bf16"} and "f32" not in (source, to):
            x, source = Code(self.cast(x, source, "f32")), "f32"
        template = self.dialect.casts.get((source, to))
        if template is not None:
            return template.format(x.text)
        if source == "f32" and is_narrow(to):
            x = Code(f"{self.dialect.types['i32']}({x})")
        return f"{self.dialect.types[to]}({x})"

    def op_cast(self, op: Op, here: Block) -> None:
        x = self.code(op.args[0])
        source, to = op.args[0].type or "", op.attrs["to"]
        level = x.level if source == to else ATOM
        self.bind(op.result, Code(self.cast(x, source, to), level, x.loads), here)

    def op_bitcast(self, op: Op, here: Block) -> None:
        x = self.code(op.args[0])
        template = self.dialect.ops[f"bitcast.{op.args[0].type}.{op.attrs['to']}"]
        code = self.fill(template, [x], op.attrs["to"])
        code.loads = x.loads
        self.bind(op.result, code, here)

    def op_const(self, op: Op, here: Block) -> None:
        self.codes[op.result] = self.literal(op.attrs["value"], op.result.type or "i32")

    def op_dim(self, op: Op, here: Block) -> None:
        self.codes[op.result] = Code(self.dim(op.attrs["name"]))

    def op_arg(self, op: Op, here: Block) -> None:
        self.used.add(op.attrs["name"])
        self.codes[op.result] = Code(self.names[op.attrs["name"]])

    def op_group_id(self, op: Op, here: Block) -> None:
        axis = "xyz"[op.attrs["axis"]]
        self.named(op.result, Code(f"{self.use('group_id')}.{axis}"))

    def op_lane(self, op: Op, here: Block) -> None:
        self.codes[op.result] = Code(self.use("lane"))

    def op_warp_id(self, op: Op, here: Block) -> None:
        self.codes[op.result] = Code(self.use("warp"))

    def named(self, v: Value, code: Code) -> None:
        if v.name and self.uses.get(v):
            self.local(v, code)
        else:
            self.codes[v] = code

    def dim(self, name: str) -> str:
        self.used.add(name)
        return self.names[name]

    def literal(self, x: float | int | bool, dtype: str) -> Code:
        if dtype == "bool":
            return Code("true" if x else "false")
        if dtype in FLOATS:
            text = float_text(float(x), self.dialect.infinity, self.dialect.nan)
            if dtype != "f32":
                return Code(self.cast(Code(text), "f32", dtype))
            return Code(text, PRODUCT if text.startswith("-") else ATOM)
        if dtype == "i32" and x == -(2**31):
            return Code("-2147483647 - 1", SUM)
        return Code(f"{x}u" if dtype == "u32" else f"{x}", PRODUCT if x < 0 else ATOM)

    # -- memory ---------------------------------------------------------------------------------

    def place(self, op: Op, index: list[Value]) -> str:
        codes = [self.code(v) for v in index]
        if "param" in op.attrs:
            p = self.func.param(op.attrs["param"])
            self.used.add(p.name)
            return f"{self.names[p.name]}[{self.offset(codes, p.shape)}]"
        s = next(x for x in self.func.shared if x.name == op.attrs["name"])
        shape = tuple(integer(n) for n in s.shape)
        return f"{self.arrays[s.name]}[{self.offset(codes, shape)}]"

    def offset(self, index: list[Code], shape: tuple[Expr, ...]) -> str:
        """Row-major; in 64 bits unless the tensor is known to be small."""
        if len(index) == 1:
            return index[0].text
        size = 1
        for extent in shape:
            size *= extent.args[0] if extent.op == "int" else 2**32
        names = {d: self.dim(d) for s in shape[1:] for d in s.names() if d != "WARP"}
        names["WARP"] = f"{WARP}u"
        total = Code("0")
        for i, extent in zip(index, shape, strict=True):
            if not total.is_zero and extent != integer(1):
                if total.text[:-1].isdigit() and extent.op == "int":
                    total = Code(f"{int(total.text[:-1]) * extent.args[0]}u")
                else:
                    wide = size < 2**32 or total.text.startswith(("size_t(", "(size_t("))
                    base = total.at(PRODUCT) if wide else f"size_t({total})"
                    total = Code(f"{base} * {c_code(extent, names)}", PRODUCT)
            if total.is_zero:
                total = i
            elif not i.is_zero:
                total = Code(f"{total.at(SUM)} + {i.at(PRODUCT)}", SUM)
        return total.text

    def op_load(self, op: Op, here: Block) -> None:
        source = self.storage(op)
        place = Code(self.place(op, op.args))
        self.bind(
            op.result, Code(self.cast(place, source, op.result.type or source), ATOM, True), here
        )

    op_shared_load = op_load

    def op_store(self, op: Op, here: Block) -> None:
        *index, v = op.args
        place, to = self.place(op, index), self.storage(op)
        value = self.cast(self.code(v), v.type or to, to)
        self.flush()
        self.line(f"{place} = {value};")

    op_shared_store = op_store

    def storage(self, op: Op) -> str:
        if "param" in op.attrs:
            return self.func.param(op.attrs["param"]).dtype
        return next(s.dtype for s in self.func.shared if s.name == op.attrs["name"])

    def op_step(self, op: Op, here: Block) -> None:
        self.ids.add("step")
        word, dtype = FIELDS[op.attrs["field"]]
        code = Code(f"step_block[{word}]")
        if dtype != "u32":
            code = self.fill(self.dialect.ops[f"bitcast.u32.{dtype}"], [code], dtype)
        self.bind(op.result, Code(code.text, ATOM, self.func.writes_step), here)

    def op_step_store(self, op: Op, here: Block) -> None:
        self.ids.add("step")
        word, dtype = FIELDS[op.attrs["field"]]
        value = self.code(op.args[0])
        if dtype != "u32":
            value = self.fill(self.dialect.ops[f"bitcast.{dtype}.u32"], [value], "u32")
        self.flush()
        self.line(f"step_block[{word}] = {value};")

    def op_barrier(self, op: Op, here: Block) -> None:
        self.flush()
        shared_only = all(p.kind != "inout" for p in self.func.params)
        self.line(self.dialect.ops["barrier" if shared_only else "barrier.device"] + ";")

    # -- across lanes ---------------------------------------------------------------------------

    def collective(self, op: Op) -> Code:
        dtype = op.args[0].type or ""
        wide = accumulator(dtype)
        args = [
            Code(self.cast(self.code(op.args[0]), dtype, wide)),
            *(self.code(a) for a in op.args[1:]),
        ]
        if op.kind in GROUP_REDUCE or op.kind == "across_warps_sum":
            warps = f"{self.func.group // WARP}u"
            args += [
                Code(f"scratch_{wide}"),
                Code(self.use("lane")),
                Code(self.use("warp")),
                Code(warps),
            ]
        return Code(self.cast(self.fill(self.dialect.ops[op.kind], args, wide), wide, dtype))

    # -- control flow ---------------------------------------------------------------------------

    def op_return_if(self, op: Op, here: Block) -> None:
        cond = self.text(op.args[0])
        self.flush()
        self.line(f"if ({cond}) return;")

    def op_if(self, op: Op, here: Block) -> None:
        cond = self.text(op.args[0])
        self.flush()
        then, other = op.blocks
        plain_else = len(other.ops) == 1
        for i, r in enumerate(op.results):
            if r in self.uses:
                self.variable(r, self.text(other.ops[-1].args[i]) if plain_else else None)
        self.line(f"if ({cond}) {{")
        self.branch(op, then)
        if not plain_else:
            self.line("} else {")
            self.branch(op, other)
        self.line("}")

    def branch(self, op: Op, block: Block) -> None:
        with self.scope():
            self.block(block)
            # Results are new variables, so no assignment disturbs a later one.
            for r, y in zip(op.results, block.ops[-1].args, strict=True):
                if r in self.uses:
                    self.line(f"{self.codes[r]} = {self.text(y)};")
            self.pending.clear()

    def op_for(self, op: Op, here: Block) -> None:
        header = self.header(op)
        body = op.blocks[0]
        iv, carried = body.params[0], body.params[1:]
        inits = [self.text(a) for a in op.args[3:]]
        self.flush()
        for p, init in zip(carried, inits, strict=True):
            self.variable(p, init)
        was_in_warps, self.in_warps = self.in_warps, self.in_warps or op.attrs["kind"] == "warps"
        with self.scope():
            name = self.fresh(iv.name or "i")
            self.codes[iv] = Code(name)
            self.lines.append("  " * (self.depth - 1) + header.format(type=self.type(iv), i=name))
            self.block(body)
            self.assign(carried, body.ops[-1].args)
        self.in_warps = was_in_warps
        self.line("}")
        for r, p in zip(op.results, carried, strict=True):
            self.codes[r] = self.codes[p]

    def header(self, op: Op) -> str:
        kind = op.attrs["kind"]
        start, stop, step = (self.code(a) for a in op.args[:3])
        warps = self.func.group // WARP
        share, width = {
            "range": (None, 1),
            "warps": ("warp", warps),
            "lanes": ("lane", WARP) if self.in_warps else ("thread", self.func.group),
        }[kind]
        stride = (
            self.defs[op.args[2]].attrs["value"] if self.defs[op.args[2]].kind == "const" else None
        )
        first, advance = start.text, step.text
        if share is not None:
            mine = self.use(share) if stride == 1 else f"{self.use(share)} * {step.at(ATOM)}"
            first = mine if start.is_zero else f"{start.at(SUM)} + {mine}"
            advance = f"{width * stride}u" if stride is not None else f"{width}u * {step.at(ATOM)}"
        move = "++{i}" if advance in ("1", "1u") else f"{{i}} += {advance}"
        return f"for ({{type}} {{i}} = {first}; {{i}} < {stop.at(SUM)}; {move}) {{{{"

    def assign(self, variables: list[Value], values: list[Value]) -> None:
        """All at once: a value may mention a variable that is assigned before it."""
        pairs = [
            (self.codes[p].text, self.text(y), p)
            for p, y in zip(variables, values, strict=True)
            if self.codes[y].text != self.codes[p].text
        ]
        self.pending.clear()
        for i, (name, _, _) in enumerate(pairs):
            if any(re.search(rf"\b{name}\b", text) for _, text, _ in pairs[i + 1 :]):
                break
        else:
            for name, text, _ in pairs:
                self.line(f"{name} = {text};")
            return
        news = [self.fresh(f"next_{name}") for name, _, _ in pairs]
        for new, (_, text, p) in zip(news, pairs, strict=True):
            self.line(f"const {self.type(p)} {new} = {text};")
        for new, (name, _, _) in zip(news, pairs, strict=True):
            self.line(f"{name} = {new};")
