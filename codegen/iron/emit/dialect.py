"""What GPU languages spell differently, and the small things every printed kernel needs."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ir import GROUP_REDUCE, Func, Shared
from ..names import DTYPES, FLOATS

if TYPE_CHECKING:
    from .cstyle import Writer

WARP = 32
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "land": "&&", "lor": "||",
}  # fmt: skip
# Longer expressions get a local, so that lines stay readable.
LONGEST_INLINE = 60


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = words("""
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl
    concept const constexpr continue decltype default delete do double else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new not not_eq
    nullptr operator or or_eq private protected public register requires return short signed
    sizeof static struct switch template this throw true try typedef typeid typename union
    unsigned using virtual void volatile while xor xor_eq
""")


@dataclass(frozen=True)
class Dialect:
    """One C-like language. Templates take {0}, {1}, … and {type}, the result's."""

    types: dict[str, str]
    ops: dict[str, str]  # by "kind.dtype" or "kind"; dtype is that of the first argument
    casts: dict[tuple[str, str], str]  # (from, to), where plain `to(x)` is not right
    helpers: dict[
        str, str
    ]  # a function is written if its name is used; later ones may use earlier ones
    ids: dict[str, str]  # how to get group_id, thread, lane, warp
    reserved: frozenset[str]
    shared: str
    shared_limit: int  # bytes of group memory that every device of the kind has
    infinity: str
    nan: str
    signature: Callable[[Writer], list[str]]

    def helper_text(self, body: str) -> str:
        """The helpers that some text uses, directly or through other helpers."""
        text, chosen = body, []
        for name, code in reversed(self.helpers.items()):
            if re.search(rf"\b{name}\b", text):
                chosen.append(code)
                text += code
        return "\n".join(reversed(chosen))


# How tightly an expression binds.
LOOSE, SUM, PRODUCT, ATOM = range(4)
# kind -> what its operands need without parentheses, and what it gives; others take atoms.
LEVELS = {
    "add": (SUM, PRODUCT, SUM), "sub": (SUM, PRODUCT, SUM), "mul": (PRODUCT, ATOM, PRODUCT),
    "div": (PRODUCT, ATOM, PRODUCT),
} | dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), (SUM, SUM, LOOSE))  # fmt: skip


@dataclass
class Code:
    """An expression that is not written yet; `loads` if it must not move past a store."""

    text: str
    level: int = ATOM
    loads: bool = False

    def __str__(self) -> str:
        return self.text

    def at(self, level: int) -> str:
        """The text as an operand that must bind at least so tightly."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def is_zero(self) -> bool:
        return self.text in ("0", "0u")


def scratch(func: Func) -> list[Shared]:
    """Group memory that the reductions of a kernel need on a GPU, beside what it declares."""
    sizes: dict[str, int] = {}
    if func.group > WARP:
        for op in func.body.walk():
            if op.kind in GROUP_REDUCE or op.kind == "across_warps_sum":
                dtype = accumulator(op.args[0].type or "f32")
                count = func.group // (WARP if op.kind in GROUP_REDUCE else 1)
                sizes[dtype] = max(count, sizes.get(dtype, 0))
    return [Shared(f"scratch_{dtype}", dtype, (count,)) for dtype, count in sizes.items()]


def accumulator(dtype: str) -> str:
    """Lanes combine f16 and bf16 values in f32; small integers are words already."""
    return "f32" if dtype in FLOATS else dtype


def is_narrow(dtype: str) -> bool:
    """C computes these as int."""
    return DTYPES.get(dtype, 4) < 4 and dtype not in FLOATS


def float_text(x: float, infinity: str, nan: str) -> str:
    """The shortest decimal that reads back as the same f32."""
    if x != x:
        return nan
    if abs(x) > 3.4028235677973366e38:
        return infinity if x > 0 else f"-{infinity}"
    want = struct.pack("<f", x)
    text = next(t for p in range(1, 18) if struct.pack("<f", float(t := f"{x:.{p}g}")) == want)
    return text + ("f" if "." in text or "e" in text else ".0f")
