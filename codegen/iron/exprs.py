"""Integer expressions over dims: shapes, grids, constraints, bytes and flops.

Written as strings in Python syntax. One expression is folded per instance (statics become numbers),
then printed as JSON text, as C, or as postfix code for the native manifest.
"""

import ast
import operator
from dataclasses import dataclass

OPS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
CALLS = ("ceildiv", "min", "max")
# The meaning of every operator on integers; division floors, as in Python.
MEANING = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "ceildiv": lambda a, b: -(-a // b), "min": min, "max": max,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
    "and": lambda a, b: bool(a) and bool(b), "or": lambda a, b: bool(a) or bool(b),
}  # fmt: skip


@dataclass(frozen=True)
class Expr:
    """op is "int", "name", an operator of OPS, "and", "or" or a name of CALLS."""

    op: str
    args: tuple = ()

    def names(self) -> set[str]:
        if self.op == "name":
            return {self.args[0]}
        if self.op == "int":
            return set()
        return set().union(*(a.names() for a in self.args))


def integer(value: int) -> Expr:
    """A number as an expression."""
    return Expr("int", (int(value),))


def parse(text: str | int, statics: dict[str, int] | None = None) -> Expr:
    """Parse and fold one expression; raises ValueError with the offending part."""
    tree = ast.parse(str(text), mode="eval").body
    return _build(tree, statics or {})


def _build(node: ast.expr, statics: dict[str, int]) -> Expr:
    match node:
        case ast.Constant(value=int() as value):
            return integer(value)
        case ast.Name(id=name):
            return integer(statics[name]) if name in statics else Expr("name", (name,))
        case ast.Attribute(value=ast.Name(id="step"), attr=field):
            return Expr("name", (f"step.{field}",))
        case ast.BinOp(left=a, op=op, right=b) if type(op) in OPS:
            return fold(OPS[type(op)], _build(a, statics), _build(b, statics))
        case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in OPS:
            return fold(OPS[type(op)], _build(a, statics), _build(b, statics))
        case ast.BoolOp(op=op, values=values):
            name = "and" if isinstance(op, ast.And) else "or"
            result = _build(values[0], statics)
            for value in values[1:]:
                result = fold(name, result, _build(value, statics))
            return result
        case ast.Call(func=ast.Name(id=name), args=[a, b]) if name in CALLS:
            return fold(name, _build(a, statics), _build(b, statics))
    raise ValueError(f"not a shape expression: {ast.unparse(node)}")


def fold(op: str, a: Expr, b: Expr) -> Expr:
    """op(a, b), computed where both are numbers and without neutral operands."""
    if op in ("//", "%", "ceildiv") and b == integer(0):
        raise ValueError("a division by zero")
    if a.op == "int" and b.op == "int":
        return integer(MEANING[op](a.args[0], b.args[0]))
    if op == "*" and integer(1) in (a, b):
        return b if a == integer(1) else a
    if op in ("//", "ceildiv") and b == integer(1):
        return a
    if op == "+" and integer(0) in (a, b):
        return b if a == integer(0) else a
    return Expr(op, (a, b))


def evaluate(expr: Expr, values: dict[str, int]) -> int:
    """The number an expression has for these values of its names."""
    if expr.op == "int":
        return expr.args[0]
    if expr.op == "name":
        return values[expr.args[0]]
    a, b = (evaluate(x, values) for x in expr.args)
    return int(MEANING[expr.op](a, b))


def text(expr: Expr) -> str:
    """Python syntax, fully parenthesized: the JSON form."""
    if expr.op in ("int", "name"):
        return str(expr.args[0])
    a, b = (text(x) for x in expr.args)
    return f"{expr.op}({a}, {b})" if expr.op in CALLS else f"({a} {expr.op} {b})"


def c_code(expr: Expr, names: dict[str, str], cast: str = "") -> str:
    """C over non-negative numbers; `cast` widens every leaf, such as "(size_t)"."""
    if expr.op == "int":
        return f"{cast}{expr.args[0]}u" if cast else f"{expr.args[0]}u"
    if expr.op == "name":
        return f"{cast}{names[expr.args[0]]}"
    a, b = (c_code(x, names, cast) for x in expr.args)
    match expr.op:
        case "//":
            return f"({a} / {b})"
        case "ceildiv":
            return f"(({a} + {b} - 1) / {b})"
        case "min":
            return f"({a} < {b} ? {a} : {b})"
        case "max":
            return f"({a} > {b} ? {a} : {b})"
    return f"({a} {({'and': '&&', 'or': '||'}).get(expr.op, expr.op)} {b})"


def postfix(expr: Expr) -> list[tuple[str, int | str]]:
    """(operator, 0), ("int", n) or ("name", text), in evaluation order."""
    if expr.op in ("int", "name"):
        return [(expr.op, expr.args[0])]
    return postfix(expr.args[0]) + postfix(expr.args[1]) + [(expr.op, 0)]
