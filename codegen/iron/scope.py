"""What a function being read knows: its source, its variables, and which of them a body changes."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from dataclasses import dataclass
from typing import Any

from .errors import Loc


class Array(list):
    """A register array: its indices are numbers at build time."""


@dataclass(frozen=True)
class Slot:
    """A variable, or one element of a register array."""

    name: str
    index: int | None = None

    def get(self, env: dict[str, Any]) -> Any:
        return env[self.name] if self.index is None else env[self.name][self.index]

    def set(self, env: dict[str, Any], x: Any) -> None:
        if self.index is None:
            env[self.name] = x
        else:
            env[self.name][self.index] = x


@functools.cache
def _source(fn: Any) -> tuple[list[str], int, ast.FunctionDef]:
    """(lines, number of the first, tree) of a function, read once for all its instances."""
    lines, first = inspect.getsourcelines(fn)
    text = textwrap.dedent("".join(lines))
    return text.splitlines(), first, ast.parse(text).body[0]  # type: ignore[return-value]


class Frame:
    """One function being read: its tree, its variables, and where its lines are."""

    def __init__(self, fn: Any, env: dict[str, Any]):
        self.fn, self.env = fn, env
        self.lines, self.first, self.tree = _source(fn)
        self.file = fn.__code__.co_filename.rsplit("/", 1)[-1]

    def loc(self, node: ast.AST) -> Loc:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self.lines[line - 1]
        if getattr(node, "end_lineno", line) == line:
            end = getattr(node, "end_col_offset", len(text))
        else:  # the rest of its first line, without a comment
            end = len(text.partition("  #")[0].rstrip())
        return Loc(self.file, self.first + line - 1, column, end, text)


def copied(env: dict[str, Any]) -> dict[str, Any]:
    """Register arrays are values: a branch must not change the other branch's array."""
    return {k: Array(v) if isinstance(v, Array) else v for k, v in env.items()}


def assigned(body: list[ast.stmt]) -> list[str]:
    """Names that a body stores to, in order of appearance."""
    names: list[str] = []
    for stmt in body:
        for node in ast.walk(stmt):
            name = None
            match node:
                case ast.Name(id=n, ctx=ast.Store()):
                    name = n
                case ast.Subscript(value=ast.Name(id=n), ctx=ast.Store()):
                    name = n
            if name and name not in names:
                names.append(name)
    return names
