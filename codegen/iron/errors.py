"""Compiler errors that show the author's line, a caret and what to do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Loc:
    """A range of one source line; columns count from 0."""

    file: str
    line: int
    column: int
    end_column: int
    text: str


class IronError(Exception):
    """A kernel that Iron refuses. `hint` names the fix."""

    def __init__(self, message: str, loc: Loc | None = None, hint: str = ""):
        self.message, self.loc, self.hint = message, loc, hint
        super().__init__(self.render())

    def render(self) -> str:
        parts = []
        if self.loc is not None:
            width = max(1, self.loc.end_column - self.loc.column)
            parts.append(f"{self.loc.file}:{self.loc.line}: error: {self.message}")
            parts.append("    " + self.loc.text)
            parts.append("    " + " " * self.loc.column + "^" * width)
        else:
            parts.append(f"error: {self.message}")
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)
