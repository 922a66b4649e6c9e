"""Python source to IR: one instance of a kernel at a time, with its types and statics chosen.

Python numbers stay numbers as long as they can (so `unroll` and statics cost nothing); everything
else becomes ops.
"""

from __future__ import annotations

import ast
import copy
import inspect
import operator
from dataclasses import dataclass
from typing import Any

from . import declare, exprs, ir, lang
from .builtins import CALLS
from .errors import IronError, Loc
from .ir import Block, Func, Op, Value
from .lang import Builtin, DType, Inline, Kernel, TypeVar
from .names import int_range
from .scope import Array, Frame, Slot, assigned, copied
from .step_block import FIELDS

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "div",
    ast.Mod: "mod", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl",
    ast.RShift: "shr",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


# What Python does with numbers.
PYTHON = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.Pow: operator.pow, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
# Python's words that kernels lack, and what to write for them.
ABSENT = {
    "print": "kernels print nothing; store what you want to see and look at it in a test",
    "len": 'sizes are dims: dim("n")',
    "sum": "add in a loop, then group.sum(x) or warp.sum(x) over the lanes",
    "int": "convert with i32(x) or u32(x)",
    "float": "convert with f32(x)",
}
# Operators that exist only between numbers known at build time.
STATIC = (ast.Pow, ast.In, ast.NotIn)


@dataclass(frozen=True)
class TensorRef:
    """A tensor parameter, which can only be indexed."""

    param: ir.Param


@dataclass(frozen=True)
class SharedRef:
    """Group memory, which can only be indexed."""

    shared: ir.Shared


def instance(spec: Kernel, types: dict[str, str], statics: dict[str, int]) -> Func:
    """The unscheduled IR of one instance."""
    return Parser(spec, types, statics).run()


def instances(spec: Kernel) -> list[tuple[dict[str, str], dict[str, int]]]:
    """Every combination of types and statics, in order."""
    return [(t, s) for t in spec.types for s in spec.statics]


class Parser:
    """Reads one kernel: an abstract interpreter whose values are numbers or IR."""

    def __init__(self, spec: Kernel, types: dict[str, str], statics: dict[str, int]):
        self.spec, self.types, self.statics = spec, types, statics
        self.block = Block()
        self.func = declare.signature(spec, types, statics)
        self.func.body = self.block
        self.frames: list[Frame] = []
        self.loops = 0
        self.inside: tuple[str, ...] = ()  # kinds of the loops around

    # -- set-up ---------------------------------------------------------------------------------

    def run(self) -> Func:
        env: dict[str, Any] = {p.name: TensorRef(p) for p in self.func.params}
        env |= {c.name: self.emit("arg", name=c.name) for c in self.func.consts}
        self.push(self.spec.fn, env)
        self.statements(self.frame.tree.body)
        self.emit_op("yield", [])
        self.check_outputs()
        return self.func

    def check_outputs(self) -> None:
        """A kernel that leaves an output as it was would hand out whatever memory held."""
        stored = {op.attrs["param"] for op in self.func.body.walk() if op.kind == "store"}
        for p in self.func.params:
            if p.kind == "out" and p.name not in stored:
                raise IronError(f"{self.spec.name} never writes {p.name}",
                                declare.place(self.spec.fn, p.name),
                                f"store every element: {p.name}[i] = …")  # fmt: skip
        if not stored and not self.func.writes_step:
            raise IronError(f"{self.spec.name} writes nothing", declare.place(self.spec.fn),
                            "give it an Out[…] or InOut[…] parameter and store to it")  # fmt: skip

    # -- source positions -----------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def env(self) -> dict[str, Any]:
        return self.frame.env

    def push(self, fn: Any, env: dict[str, Any]) -> None:
        self.frames.append(Frame(fn, env))
        if len(self.frames) > 16:
            raise IronError(f"{fn.__name__}: inline functions call each other without end")

    def loc(self, node: ast.AST) -> Loc:
        return self.frame.loc(node)

    def fail(self, node: ast.AST, message: str, hint: str = "") -> IronError:
        return IronError(message, self.loc(node), hint)

    # -- ops ------------------------------------------------------------------------------------

    def emit_op(
        self,
        kind: str,
        args: list[Value],
        results: int = 0,
        node: ast.AST | None = None,
        **attrs: Any,
    ) -> Op:
        op = Op(
            kind,
            args,
            attrs,
            [Value() for _ in range(results)],
            loc=self.loc(node) if node is not None else None,
        )
        self.block.ops.append(op)
        return op

    def emit(self, kind: str, *args: Value, node: ast.AST | None = None, **attrs: Any) -> Value:
        return self.emit_op(kind, list(args), 1, node, **attrs).result

    def value(self, x: Any, node: ast.AST) -> Value:
        """A runtime value; numbers become const ops."""
        if isinstance(x, Value):
            return x
        if isinstance(x, (bool, int, float)):
            return self.emit("const", node=node, value=x)
        what = "a register array" if isinstance(x, Array) else f"{type(x).__name__}"
        raise self.fail(node, f"{what} cannot be used as a number", "index it, or pass one element")

    # -- statements -----------------------------------------------------------------------------

    def statements(self, body: list[ast.stmt]) -> Any:
        for i, node in enumerate(body):
            if isinstance(node, ast.Return):
                if node.value is None:
                    raise self.fail(node, "a plain return must stand in a top-level `if`")
                if len(self.frames) == 1:
                    raise self.fail(node, "a kernel returns nothing", "store to an Out[…]")
                if i != len(body) - 1:
                    raise self.fail(node, "return must be the last statement of an inline function")
                return self.expression(node.value)
            self.statement(node)
        return None

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                return
            case ast.Expr(value=value):
                self.expression(value)
            case ast.Assign(targets=[target], value=value):
                self.assign(target, self.expression(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.expression(value))
            case ast.AugAssign(target=target, op=op, value=value):
                old = self.expression(_as_load(target))
                self.assign(target, self.binary(node, op, old, self.expression(value)))
            case ast.For():
                self.loop(node)
            case ast.If():
                self.branch(node)
            case ast.Pass():
                return
            case _:
                loops = isinstance(node, (ast.While, ast.Break, ast.Continue))
                raise self.fail(
                    node,
                    f"{type(node).__name__.lower()} is not part of the kernel language",
                    "use `for r in range(n)` with an `if` inside"
                    if loops
                    else "use for, if, assignments and expressions",
                )

    def assign(self, target: ast.expr, x: Any) -> None:
        match target:
            case ast.Name(id=name):
                if isinstance(self.env.get(name), TensorRef):
                    raise self.fail(
                        target,
                        f"{name} is a tensor parameter",
                        f"write its elements: {name}[i] = …",
                    )
                if isinstance(x, Value) and not x.name:
                    x.name = name
                self.env[name] = x
            case ast.Tuple(elts=elts):
                if not isinstance(x, (tuple, list)) or len(x) != len(elts):
                    raise self.fail(target, f"cannot unpack into {len(elts)} names")
                for t, v in zip(elts, x, strict=True):
                    self.assign(t, v)
            case ast.Subscript(value=base, slice=index):
                self.store(target, self.expression(base), self.indices(index), x)
            case ast.Attribute(value=base, attr=attr):
                self.attribute(target, self.expression(base), attr)  # checks that the field exists
                if attr != "out_token":
                    raise self.fail(target, f"step.{attr} is the host's",
                                    "a kernel may write step.out_token only")  # fmt: skip
                self.func.writes_step = True
                self.emit_op("step_store", [self.value(x, target)], 0, target, field=attr)
            case _:
                raise self.fail(target, "cannot assign to this")

    def store(self, node: ast.Subscript, base: Any, index: list[Any], x: Any) -> None:
        match base:
            case Array():
                base[self.array_index(node, base, index)] = x
            case TensorRef(param):
                if param.kind == "in":
                    raise self.fail(
                        node, f"{param.name} is read-only", "declare it Out[…] or InOut[…]"
                    )
                self.check_index(node, param.name, param.shape, index)
                args = [self.value(i, node) for i in index] + [self.value(x, node)]
                self.emit_op("store", args, 0, node, param=param.name)
            case SharedRef(s):
                self.check_index(node, s.name, s.shape, index)
                args = [self.value(i, node) for i in index] + [self.value(x, node)]
                self.emit_op("shared_store", args, 0, node, name=s.name)
            case _:
                raise self.fail(
                    node, "only tensors, shared memory and register arrays can be indexed"
                )

    def check_index(self, node: ast.AST, name: str, shape: tuple, index: list[Any]) -> None:
        """As many indices as axes; those that are numbers lie inside sizes that are."""
        sizes = [exprs.text(n) if isinstance(n, exprs.Expr) else str(n) for n in shape]
        if len(index) != len(shape):
            raise self.fail(node, f"{name} has {len(shape)} dimensions, got {len(index)} indices",
                            f"its shape is [{', '.join(sizes)}]")  # fmt: skip
        for i, size in zip(index, sizes, strict=True):
            if isinstance(i, int) and (i < 0 or size.isdigit() and i >= int(size)):
                raise self.fail(node, f"index {i} is outside {name}[{', '.join(sizes)}]",
                                "indices count from 0" + (
                                    f": the last one is {size} - 1" if i < 0 else ""))  # fmt: skip

    def array_index(self, node: ast.AST, base: Array, index: list[Any]) -> int:
        i = index[0]
        if len(index) != 1 or not isinstance(i, int):
            raise self.fail(node, "a register array needs an index known at build time",
                            "loop with `for j in unroll(n)`, or use shared(…)")  # fmt: skip
        if not 0 <= i < len(base):
            raise self.fail(node, f"index {i} is outside an array of {len(base)}")
        return i

    # -- control flow ---------------------------------------------------------------------------

    def loop(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name) or node.orelse:
            raise self.fail(node, "write `for NAME in range|lanes|warps|unroll(…)`")
        call = node.iter
        kind = self.expression(call.func) if isinstance(call, ast.Call) else None
        name = "range" if kind is range else getattr(kind, "name", "")
        if name not in ("range", "lanes", "warps", "unroll") or call.keywords:
            raise self.fail(node.iter, "cannot loop over this", "use range, lanes, warps or unroll")
        bounds = [self.expression(a) for a in call.args]
        if not 1 <= len(bounds) <= (2 if name == "lanes" else 3):
            raise self.fail(
                node.iter,
                f"{name} of {len(bounds)} bounds",
                "write lanes(stop) or lanes(start, stop); compute a strided index inside"
                if name == "lanes"
                else "write (stop), (start, stop) or (start, stop, step)",
            )
        start, stop, stride = _bounds(bounds)
        if isinstance(stride, int) and stride <= 0:
            raise self.fail(node.iter, f"a step of {stride}", "count up and compute the index")
        if name == "unroll":
            if not all(isinstance(b, int) for b in (start, stop, stride)):
                raise self.fail(
                    node.iter,
                    "unroll needs numbers known at build time",
                    "use statics=, or range(…)",
                )
            before = self.env.get(node.target.id)
            for j in range(start, stop, stride):
                self.env[node.target.id] = j
                self.statements(node.body)
            # Outer loops must not carry the index as if it were a variable.
            self.env.pop(node.target.id, None)
            if before is not None:
                self.env[node.target.id] = before
            return
        if name in self.inside:
            hint = "divide and take the rest of one index, or use range inside"
            raise self.fail(node.iter, f"{name} loops cannot be nested", hint)
        self.runtime_loop(node, name, start, stop, stride)

    def runtime_loop(self, node: ast.For, kind: str, start: Any, stop: Any, stride: Any) -> None:
        carried = self.carried_slots(node.body)
        header = [self.value(x, node.iter) for x in (start, stop, stride)]
        init = [self.value(slot.get(self.env), node) for slot in carried]
        iv = Value(name=node.target.id)
        body = Block(params=[iv] + [Value(name=s.name) for s in carried])
        outer, outer_env, was_inside = self.block, copied(self.env), self.inside
        self.block = body
        self.env[node.target.id] = iv
        for slot, v in zip(carried, body.params[1:], strict=True):
            slot.set(self.env, v)
        self.loops += 1
        self.inside += (kind,) if kind != "range" else ()
        self.statements(node.body)
        self.loops -= 1
        self.inside = was_inside
        self.emit_op("yield", [self.value(s.get(self.env), node) for s in carried])
        self.block = outer
        self.frame.env = outer_env
        op = Op(
            "for",
            header + init,
            {"kind": kind},
            [Value(name=s.name) for s in carried],
            [body],
            self.loc(node),
        )
        self.block.ops.append(op)
        for slot, v in zip(carried, op.results, strict=True):
            slot.set(self.env, v)

    def carried_slots(self, body: list[ast.stmt]) -> list[Slot]:
        """Variables defined before the statements and assigned in them, in order of assignment."""
        slots: list[Slot] = []
        for name in assigned(body):
            old = self.env.get(name)
            if isinstance(old, Array):
                slots += [Slot(name, j) for j in range(len(old))]
            elif isinstance(old, (Value, int, float, bool)):
                slots.append(Slot(name))
        return slots

    def branch(self, node: ast.If) -> None:
        cond = self.expression(node.test)
        if not isinstance(cond, Value):
            self.statements_or_pass(node.body if cond else node.orelse)
            return
        if (
            len(node.body) == 1
            and isinstance(node.body[0], ast.Return)
            and node.body[0].value is None
        ):
            inside = self.loops or len(self.frames) > 1 or self.block is not self.func.body
            if node.orelse or inside:
                raise self.fail(
                    node, "an early return must stand at the top level of a kernel, without else"
                )
            self.emit_op("return_if", [cond], 0, node)
            return
        before = self.env
        slots = self.carried_slots(node.body + node.orelse)
        blocks, envs, outer = [], [], self.block
        for body in (node.body, node.orelse):
            self.block, self.frame.env = Block(), copied(before)
            self.statements_or_pass(body)
            blocks.append(self.block)
            envs.append(self.env)
        both = [n for n in assigned(node.body) if n in assigned(node.orelse) and n not in before]
        slots += [Slot(n) for n in both if all(n in env for env in envs)]  # not names of loops
        for self.block, env in zip(blocks, envs, strict=True):
            self.emit_op("yield", [self.value(s.get(env), node) for s in slots])
        self.block, self.frame.env = outer, copied(before)
        op = Op("if", [cond], {}, [Value(name=s.name) for s in slots], blocks, self.loc(node))
        self.block.ops.append(op)
        for slot, v in zip(slots, op.results, strict=True):
            slot.set(self.env, v)

    def statements_or_pass(self, body: list[ast.stmt]) -> None:
        for node in body:
            self.statement(node)

    # -- expressions ----------------------------------------------------------------------------

    def indices(self, node: ast.expr) -> list[Any]:
        return (
            [self.expression(e) for e in node.elts]
            if isinstance(node, ast.Tuple)
            else [self.expression(node)]
        )

    def expression(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as v):
                return v
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.Tuple(elts=elts):
                return tuple(self.expression(e) for e in elts)
            case ast.Attribute(value=base, attr=attr):
                return self.attribute(node, self.expression(base), attr)
            case ast.BinOp(left=a, op=op, right=b):
                return self.binary(node, op, self.expression(a), self.expression(b))
            case ast.Compare(left=a, ops=ops, comparators=bs):
                operands = [self.expression(x) for x in [a, *bs]]
                result = None
                for i, op in enumerate(ops):
                    part = self.binary(node, op, operands[i], operands[i + 1])
                    result = part if result is None else self.logic(node, "land", result, part)
                return result
            case ast.BoolOp(op=op, values=values):
                result = self.expression(values[0])
                for v in values[1:]:
                    result = self.logic(
                        node,
                        "land" if isinstance(op, ast.And) else "lor",
                        result,
                        self.expression(v),
                    )
                return result
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(node, op, self.expression(operand))
            case ast.IfExp(test=c, body=a, orelse=b):
                cond = self.expression(c)
                if not isinstance(cond, Value):
                    return self.expression(a if cond else b)
                x, y = self.expression(a), self.expression(b)
                return self.emit(
                    "select", cond, self.value(x, node), self.value(y, node), node=node
                )
            case ast.Subscript(value=base, slice=ast.Slice(lower=low, upper=high, step=None)):
                return self.part(node, self.expression(base), low, high)
            case ast.Subscript(value=base, slice=index):
                return self.load(node, self.expression(base), self.indices(index))
            case ast.Call():
                return self.call(node)
        raise self.fail(node, f"{type(node).__name__} is not part of the kernel language")

    def name(self, node: ast.Name, name: str) -> Any:
        if name in self.env:
            return self.env[name]
        if name in self.statics:
            return self.statics[name]
        scope = self.frame.fn.__globals__
        if name in scope:
            x = scope[name]
            if isinstance(x, TypeVar):
                if x.name not in self.types:
                    raise self.fail(
                        node, f"type variable {x.name} has no values", "list them in types="
                    )
                return DType(self.types[x.name])
            if isinstance(x, Builtin) and x.name == "WARP":
                return self.emit("warp_width", node=node)
            return x
        if name in ("min", "max", "abs"):
            return Builtin(name)
        if name == "range":
            return range
        raise self.fail(node, f"unknown name {name}", self.unknown(name))

    def unknown(self, name: str) -> str:
        """What someone who wrote an unknown name may have meant."""
        if name in self.func.dims:
            return f'write dim("{name}")'
        if name in ABSENT:
            return ABSENT[name]
        words = [n for n, x in vars(lang).items() if isinstance(x, (Builtin, DType, TypeVar))]
        if name in words or name == "inline":
            return f"import it: from iron import {name}"
        known = sorted(set(self.env) | set(self.statics))
        near = declare.nearest(name, [*known, *words, *self.func.dims])
        return near + "known here: " + ", ".join(known)

    def attribute(self, node: ast.Attribute, base: Any, attr: str) -> Any:
        if isinstance(base, Builtin) and base.name == "step":
            if attr not in FIELDS:
                raise self.fail(
                    node,
                    f"the step block has no field {attr}",
                    declare.nearest(attr, FIELDS) + "fields: " + ", ".join(FIELDS),
                )
            self.func.uses_step = True
            return self.emit("step", node=node, field=attr)
        if isinstance(base, Builtin):
            return Builtin(f"{base.name}.{attr}")
        raise self.fail(node, f"no attribute {attr}")

    def binary(self, node: ast.AST, op: ast.AST, a: Any, b: Any) -> Any:
        if type(op) not in BINARY and not isinstance(op, STATIC):
            raise self.fail(
                node, f"operator {type(op).__name__} is not part of the kernel language"
            )
        if not isinstance(a, Value) and not isinstance(b, Value):
            try:
                return _python(op, a, b)
            except (TypeError, ValueError, ZeroDivisionError) as error:
                raise self.fail(node, f"cannot be computed: {error}") from None
        if isinstance(op, STATIC):
            sign, hint = ("**", "multiply, or use exp and log") if isinstance(op, ast.Pow) else (
                "in", "compare with each")  # fmt: skip
            raise self.fail(node, f"{sign} is only for numbers known at build time", hint)
        kind = BINARY[type(op)]
        if kind in ("shl", "shr") and isinstance(b, int) and not 0 <= b < 32:
            raise self.fail(node, f"a shift by {b}", "words have 32 bits: shift by 0 to 31")
        return self.emit(kind, self.value(a, node), self.value(b, node), node=node,
                         **({"floor": True} if isinstance(op, ast.FloorDiv) else {}))  # fmt: skip

    def logic(self, node: ast.AST, kind: str, a: Any, b: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return (a and b) if kind == "land" else (a or b)
        return self.emit(kind, self.value(a, node), self.value(b, node), node=node)

    def unary(self, node: ast.AST, op: ast.AST, x: Any) -> Any:
        if not isinstance(x, (Value, bool, int, float)):
            raise self.fail(node, f"no number: {ast.unparse(node)}", "call a dtype: -f32(x)")
        if not isinstance(x, Value):
            if isinstance(op, ast.Invert) and isinstance(x, float):
                raise self.fail(node, "~ is for integers")
            return {ast.USub: lambda v: -v, ast.Not: lambda v: not v, ast.UAdd: lambda v: v,
                    ast.Invert: lambda v: ~v}[type(op)](x)  # fmt: skip
        match op:
            case ast.USub():
                return self.emit("neg", x, node=node)
            case ast.Not():
                return self.emit("lnot", x, node=node)
            case ast.Invert():
                return self.emit("xor", x, self.value(-1, node), node=node)
        return x

    def load(self, node: ast.Subscript, base: Any, index: list[Any]) -> Any:
        match base:
            case Array():
                return base[self.array_index(node, base, index)]
            case TensorRef(param):
                if param.kind == "out":
                    raise self.fail(node, f"{param.name} is write-only", "declare it InOut[…]")
                self.check_index(node, param.name, param.shape, index)
                return self.emit(
                    "load", *(self.value(i, node) for i in index), node=node, param=param.name
                )
            case SharedRef(s):
                self.check_index(node, s.name, s.shape, index)
                return self.emit(
                    "shared_load", *(self.value(i, node) for i in index), node=node, name=s.name
                )
        raise self.fail(node, "only tensors, shared memory and register arrays can be indexed")

    def part(
        self, node: ast.Subscript, base: Any, low: ast.expr | None, high: ast.expr | None
    ) -> Array:
        bounds = [None if b is None else self.expression(b) for b in (low, high)]
        if not isinstance(base, Array) or not all(b is None or isinstance(b, int) for b in bounds):
            raise self.fail(
                node, "only register arrays can be sliced, with bounds known at build time"
            )
        return Array(base[slice(*bounds)])

    def call(self, node: ast.Call) -> Any:
        if node.keywords:
            raise self.fail(node, "calls take positional arguments only")
        fn = self.expression(node.func)
        args = [self.expression(a) for a in node.args]
        match fn:
            case DType(name):
                if len(args) != 1:
                    raise self.fail(node, f"{name}(x) takes one value, got {len(args)}")
                low, high = int_range(name)
                if isinstance(args[0], int) and not low <= args[0] <= high:
                    raise self.fail(node, f"{args[0]} does not fit {name}",
                                    f"it holds up to {high}")  # fmt: skip
                return self.emit("cast", self.value(args[0], node), node=node, to=name)
            case Inline(f):
                names = f.__code__.co_varnames[: f.__code__.co_argcount]
                if len(names) != len(args):
                    raise self.fail(
                        node, f"{f.__name__} takes {len(names)} arguments, got {len(args)}"
                    )
                self.push(f, dict(zip(names, args, strict=True)))
                result = self.statements(self.frame.tree.body)
                self.frames.pop()
                return result
            case Builtin(name) if name in CALLS:
                return CALLS[name](self, node, args)
        hint = "mark it @inline" if inspect.isfunction(fn) else ""
        raise self.fail(node, f"{ast.unparse(node.func)} cannot be called in a kernel", hint)


def _as_load(target: ast.expr) -> ast.expr:
    node = copy.copy(target)
    node.ctx = ast.Load()  # type: ignore[attr-defined]
    return node


def _bounds(b: list[Any]) -> tuple[Any, Any, Any]:
    match len(b):
        case 1:
            return 0, b[0], 1
        case 2:
            return b[0], b[1], 1
    return b[0], b[1], b[2]


def _python(op: ast.AST, a: Any, b: Any) -> Any:
    """The operator on numbers."""
    if isinstance(op, (ast.In, ast.NotIn)):
        return (a in b) == isinstance(op, ast.In)
    return PYTHON[type(op)](a, b)
