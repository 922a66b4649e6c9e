"""What one rendering of a chat template may use: steps, seconds, and the size of what it makes.

All limits are far above what chat templates need. Passing one is a TemplateLimit.
"""

import re
import time
from collections.abc import Sequence
from contextvars import ContextVar

from jinja2.exceptions import TemplateError

MAX_STEPS = 500_000
MAX_SECONDS = 5.0
MAX_VALUE = 16 << 20  # characters of a string
MAX_ITEMS = 1 << 19  # items of a list, nested ones counted each time they appear
MAX_MADE = 1 << 30  # characters and items made in one rendering, all together
MAX_BITS = 4096  # of an integer
MAX_WORK = 1 << 28  # sizes of a call's arguments, multiplied

# Filters and tests that walk nested values whole.
DEEP = frozenset(
    ("tojson", "string", "pprint", "format", "join", "sort", "unique", "groupby", "sum", "list")
    + ("min", "max", "in", "==", "eq", "equalto", "!=", "ne", "<", "lt", "lessthan", ">", "gt")
    + ("greaterthan", "<=", "le", ">=", "ge", "urlencode", "xmlattr")
)
# Filters and methods whose numbers are widths or counts.
SIZED = frozenset(
    ("center", "ljust", "rjust", "zfill", "expandtabs", "indent", "wordwrap", "truncate")
    + ("batch", "slice", "tojson", "round")
)

# Widths that make text out of nothing: "{:>9999999}", "{:>{}}", "%9999999d", "%*d".
BRACE_WIDTH = re.compile(r"\{[^{}]*:[^{}]*(?:\d{6}|\{)")
PERCENT_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\d{6}|\*)")


class TemplateLimit(TemplateError):
    """The template takes more time or memory than any chat template needs."""


class Budget:
    """What one rendering has used."""

    def __init__(self):
        self.steps = 0
        self.made = 0
        self.deadline = time.monotonic() + MAX_SECONDS

    def step(self, characters: int = 0) -> None:
        """One turn of a loop, or one operation; with the constant text that it will put out."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TemplateLimit(f"more than {MAX_STEPS} steps")
        if time.monotonic() > self.deadline:
            raise TemplateLimit(f"more than {MAX_SECONDS:g} seconds")
        self.charge(characters)

    def charge(self, size: int) -> None:
        self.made += size
        if self.made > MAX_MADE:
            raise TemplateLimit(f"more than {MAX_MADE} characters and items made")

    def take(self, value):
        """Charge for a value that an operation made, and return it."""
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            raise TemplateLimit(f"a number of {value.bit_length()} bits")
        size = size_of(value)
        if size > (MAX_VALUE if isinstance(value, str) else MAX_ITEMS):
            raise TemplateLimit(f"a value of {size} characters or items")
        self.charge(size)
        return value

    def call(self, name: str, values: Sequence, deep: bool) -> None:
        """Refuse a call whose arguments promise a huge result or endless work."""
        self.step()
        work = 1
        for value in values:
            # What turns nested values into text, or compares them, walks each path to an item.
            work *= max(weigh(value) if deep else size_of(value), 1)
        if name in SIZED:
            for value in values[1:]:
                work *= max(abs(value), 1) if isinstance(value, int) else 1
        if name == "round" and any(isinstance(v, int) and abs(v) > 100 for v in values[1:]):
            raise TemplateLimit("round to more than 100 digits")
        if name == "sum" and any(isinstance(v, str | list | tuple) for v in values[1:]):
            raise TemplateLimit("sum of what is no number")
        if work > MAX_WORK:
            raise TemplateLimit(f"{name} on values too large for it")

    def product(self, left, right) -> None:
        for value, count in ((left, right), (right, left)):
            if isinstance(count, int) and size_of(value) * max(count, 0) > MAX_VALUE:
                raise TemplateLimit("* makes a value too large")

    def power(self, base, exponent) -> None:
        both = isinstance(base, int) and isinstance(exponent, int)
        if both and base.bit_length() * max(exponent, 0) > MAX_BITS:
            raise TemplateLimit(f"** makes a number of more than {MAX_BITS} bits")


BUDGET: ContextVar[Budget] = ContextVar("butter.template")


def size_of(value) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple | dict | set) else 0


def weigh(value) -> int:
    """Characters and items in all, with shared parts counted each time: what json would print."""
    if not isinstance(value, list | tuple | dict):
        return size_of(value)
    total, visited, stack = 0, 0, [value]
    while stack:
        item = stack.pop()
        visited += 1
        total += size_of(item) + 1
        if total > MAX_VALUE or visited > MAX_ITEMS or len(stack) > MAX_ITEMS:
            raise TemplateLimit(f"a value of more than {total} characters and items")
        if isinstance(item, dict):
            stack += item.values()
            total += sum(len(k) for k in item if isinstance(k, str))
        elif isinstance(item, list | tuple):
            stack += item
    return total


def check_format(pattern: re.Pattern, text) -> None:
    if isinstance(text, str) and pattern.search(text):
        raise TemplateLimit("a format with a width of six or more digits, or *")
