"""What a kernel's decorator and parameters say, checked: the head of every instance.

Faults are shown at the argument of the decorator or at the parameter that has them.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import exprs, ir
from .errors import IronError, Loc
from .names import DTYPES, symbol

if TYPE_CHECKING:
    from .lang import DType, Kernel, TypeVar

MAX_GROUP = 1024  # lanes of a group, on CUDA and on Metal
CONST_DTYPES = ("f32", "i32", "u32")  # one word each


def place(fn: Callable, part: str = "") -> Loc:
    """Where a decorator argument or a parameter of a function stands; else the `def` itself."""
    lines, first = inspect.getsourcelines(fn)
    text = textwrap.dedent("".join(lines))
    tree: Any = ast.parse(text).body[0]
    node, end = tree, None
    calls = [d for d in getattr(tree, "decorator_list", []) if isinstance(d, ast.Call)]
    for keyword in (k for call in calls for k in call.keywords):
        if keyword.arg == part:
            node, end = keyword, keyword.value
    for argument in tree.args.args if isinstance(tree, ast.FunctionDef) else []:
        if argument.arg == part:
            node = argument
    line, column = node.lineno, node.col_offset
    source = text.splitlines()[line - 1]
    end = end or node
    stop = end.end_col_offset if end.end_lineno == line and node is not tree else len(source)
    file = fn.__code__.co_filename.rsplit("/", 1)[-1]
    return Loc(file, first + line - 1, column, stop, source)


def line_of(filename: str, line: int) -> Loc:
    """A whole line of a file."""
    text = linecache.getline(filename, line).rstrip()
    start = len(text) - len(text.lstrip())
    return Loc(filename.rsplit("/", 1)[-1], line, 0, len(text) - start, text[start:])


def nearest(name: str, known: Iterable[str]) -> str:
    """The start of a hint: the likeliest of the known names, if one is close."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {close[0]}? " if close else ""


def check(spec: Kernel) -> None:
    """Raise IronError for decorator arguments that no instance could have."""

    def refuse(part: str, message: str, hint: str) -> IronError:
        return IronError(f"{spec.name}: {message}", place(spec.fn, part), hint)

    group = spec.group
    if not isinstance(group, int) or isinstance(group, bool):
        raise refuse("group", f"group={group!r} is no number", "write group=256")
    if not 0 < group <= MAX_GROUP or group % 32:
        why = "not a multiple of 32" if group % 32 else f"not between 32 and {MAX_GROUP}"
        raise refuse("group", f"group={group} is {why}", "use 32, 64, 128, 256, 512 or 1024")
    if not 1 <= len(spec.grid) <= 3 or not all(isinstance(g, (str, int)) for g in spec.grid):
        raise refuse("grid", f"a grid of {len(spec.grid)} axes, got {spec.grid!r}",
                     'write one to three expressions: ("ceildiv(n, 64)", "rows")')  # fmt: skip
    for entry in spec.types:
        for name, dtype in entry.items():
            if dtype not in DTYPES:
                hint = nearest(str(dtype), DTYPES) + "dtypes: " + ", ".join(DTYPES)
                raise refuse("types", f"{dtype!r} is no dtype of {name}", hint)
    for entry in spec.statics:
        for name, value in entry.items():
            if not isinstance(value, int) or isinstance(value, bool):
                raise refuse("statics", f"{name}={value!r} is no integer",
                             f'list integers: statics={{"{name}": [16, 32]}}')  # fmt: skip
    for name in spec.cpu:
        if any(name not in entry for entry in spec.types):
            raise refuse("cpu", f"cpu= names {name}, which is no type variable here",
                         "type variables: " + (", ".join(spec.types[0]) or "none"))  # fmt: skip


def choices(fn: Callable, part: str, spec: Any) -> list[dict]:
    """The combinations that types= or statics= list, or an error that shows the right form."""
    example = '{"T": ["f32", "bf16"]}' if part == "types" else '{"QB": [16, 32]}'
    wrong = IronError(f"{fn.__name__}: {part}={spec!r} is no choice of values", place(fn, part),
                      f"write {part}={example}, or a list of dicts")  # fmt: skip
    if isinstance(spec, list):
        if not all(isinstance(entry, dict) for entry in spec):
            raise wrong
    elif not isinstance(spec, dict) or not all(
        isinstance(values, (list, tuple)) and values for values in spec.values()
    ):
        raise wrong
    return spec


def signature(spec: Kernel, types: dict[str, str], statics: dict[str, int]) -> ir.Func:
    """One instance without its body: parameters, dims, grid, constraints, costs."""
    from .lang import DType

    def dtype(name: str, d: DType | TypeVar) -> str:
        if isinstance(d, DType):
            return d.name
        if d.name not in types:
            raise IronError(
                f"{spec.name}: type variable {d.name} has no values",
                place(spec.fn, name),
                "list them in types=",
            )
        return types[d.name]

    def expression(part: str, source: Any, known: Iterable[str] | None) -> exprs.Expr:
        return _expression(spec, part, source, statics, known)

    params = [
        ir.Param(n, t.kind, dtype(n, t.dtype), tuple(expression(n, s, None) for s in t.shape))
        for n, t in spec.tensors.items()
    ]
    for name, const in spec.consts.items():
        if const.dtype.name not in CONST_DTYPES:
            raise IronError(
                f"{spec.name}: {name} is Const[{const.dtype.name}]",
                place(spec.fn, name),
                "use Const[f32], Const[i32] or Const[u32]",
            )
    dims: list[str] = []
    for p in params:
        for s in p.shape:
            dims += [n for n in sorted(s.names()) if n != "WARP" and n not in dims]
    grid = [expression("grid", g, dims) for g in spec.grid]
    return ir.Func(
        symbol=symbol(spec.name, types, statics),
        kernel=spec.name,
        source=spec.module,
        types=types,
        statics=statics,
        params=params,
        consts=[ir.ConstParam(n, c.dtype.name) for n, c in spec.consts.items()],
        dims=dims,
        grid=tuple(grid + [exprs.integer(1)] * (3 - len(grid))),  # type: ignore[arg-type]
        group=spec.group,
        constraints=[(expression("where", w, dims), w) for w in spec.where],
        bytes=expression("bytes", spec.bytes or _one_pass(params), dims),
        flops=expression("flops", spec.flops or 0, dims),
    )


def _expression(
    spec: Kernel, part: str, source: Any, statics: dict[str, int], known: Iterable[str] | None
) -> exprs.Expr:
    """An expression whose names exist; `known` is None in shapes, which make dims."""

    def refuse(message: str, hint: str) -> IronError:
        return IronError(f"{spec.name}: {message}", place(spec.fn, part), hint)

    try:
        expr = exprs.parse(source, statics)
    except SyntaxError:
        hint = "write an integer expression: ceildiv(n, 64)"
        raise refuse(f"{source!r} in {part} is no expression", hint) from None
    except ValueError as error:
        hint = "use // for a quotient" if "/" in str(source) and "//" not in str(source) else (
            "legal: + - * // % ceildiv min max and comparisons")  # fmt: skip
        raise refuse(f"{source!r} in {part}: {error}", hint) from None
    for name in sorted(expr.names() - {"WARP"} - set(expr.names() if known is None else known)):
        if name.startswith("step."):
            raise refuse(f"{name} in {part}", "name a dim; whoever records the program "
                         "ties a dim to a field of the step block")  # fmt: skip
        legal = [*(known or ()), *statics, "WARP"]
        raise refuse(f"unknown name {name} in {part}", nearest(name, legal) + "known here: "
                     + ", ".join(legal) + "; a dim is part of some parameter's shape")  # fmt: skip
    return expr


def _one_pass(params: list[ir.Param]) -> str:
    """Bytes of one pass over all tensors; what is read and written counts twice."""
    sizes = ((DTYPES[p.dtype] * (2 if p.kind == "inout" else 1), p.shape) for p in params)
    terms = ["*".join([str(size), *(f"({exprs.text(s)})" for s in shape)]) for size, shape in sizes]
    return " + ".join(terms) or "0"
