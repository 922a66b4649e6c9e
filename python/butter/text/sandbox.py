"""A Jinja environment for templates from strangers.

Jinja's own sandbox keeps a template away from Python, but not from the machine's time and memory:
two nested loops never end, and thirty doublings of a string fill it. So each template is
instrumented as it is compiled: loop turns, calls and comparisons count as steps, and every
operation that can make a value larger is checked (see budget.py).
"""

import json
import re
from collections.abc import Callable
from datetime import datetime
from functools import wraps

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from .budget import (
    BRACE_WIDTH,
    BUDGET,
    DEEP,
    MAX_VALUE,
    PERCENT_WIDTH,
    TemplateLimit,
    check_format,
    size_of,
    weigh,
)

# Their time grows with the square of a hostile text, and no chat template uses them.
REMOVED = ("urlize", "striptags")


class TemplateRefusal(TemplateError):
    """The template itself refused the messages with raise_exception."""


class Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with every loop and every growing operation accounted for."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self):
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[GenerationTag, loopcontrols],
            finalize=put_out,
        )
        for name in REMOVED:
            del self.filters[name]
        tables: tuple[dict, ...] = (self.filters, self.tests)
        for table in tables:
            for name, function in table.items():
                table[name] = guarded(name, function)
        self.filters["tojson"] = guarded("tojson", tojson)
        del self.globals["lipsum"]
        self.globals.update(
            raise_exception=raise_exception,
            strftime_now=strftime_now,
            namespace=SafeNamespace,
            dict=lambda *args, **named: dict(*args, **named),
        )

    def handle_exception(self, source=None):
        """Raise as it is: Jinja would rebuild the traceback, which takes seconds when deep."""
        raise

    def _generate(self, source, name, filename, defer_init=False):
        instrument(source)
        return super()._generate(source, name, filename, defer_init)

    def call(self, context, function, *args, **named):
        """Every call in a template, also of methods."""
        if function in OWN:
            return function(*args)
        budget = BUDGET.get()
        if isinstance(function, Macro):
            return budget.take(super().call(context, function, *args, **named))
        name = getattr(function, "__name__", "a call")
        owner = getattr(getattr(function, "__wrapped__", function), "__self__", None)
        if isinstance(owner, str) and name in ("format", "format_map"):
            check_format(BRACE_WIDTH, owner)
        given = [v for k, v in named.items() if k not in ("_loop_vars", "_block_vars")]
        budget.call(name, [owner, *args, *given], deep=isinstance(owner, str))
        return budget.take(super().call(context, function, *args, **named))

    def call_binop(self, context, operator, left, right):
        budget = BUDGET.get()
        budget.step()
        if operator == "%":
            check_format(PERCENT_WIDTH, left)
            budget.call("%", [left, right], deep=True)
        elif operator == "*":
            budget.product(left, right)
        elif operator == "**":
            budget.power(left, right)
        elif size_of(left) + size_of(right) > MAX_VALUE:
            raise TemplateLimit("+ on values too large for it")
        return budget.take(super().call_binop(context, operator, left, right))


def guarded(name: str, function: Callable) -> Callable:
    """A filter or test that is charged for. `wraps` keeps Jinja's marks on the function."""

    @wraps(function)
    def run(*args, **named):
        budget = BUDGET.get()  # none while compiling: Jinja then leaves the call for run time
        if name == "format" and args:
            check_format(PERCENT_WIDTH, args[0])
        budget.call(name, [*args, *named.values()], name in DEEP)
        return budget.take(function(*args, **named))

    return run


# --- what instrumented code calls ---


def tick(characters: int) -> str:
    BUDGET.get().step(characters)
    return ""


def stepped(value):
    """The left side of a comparison."""
    BUDGET.get().step()
    weigh(value)
    return value


def taken(value):
    """A slice."""
    return BUDGET.get().take(value)


def joined(*parts) -> str:
    """The ~ operator."""
    budget = BUDGET.get()
    budget.step()
    if sum(map(weigh, parts)) > MAX_VALUE:
        raise TemplateLimit("~ on values too large for it")
    return budget.take("".join(map(str, parts)))


def put_out(value) -> str:
    """Every value that a template prints, also into a variable."""
    budget = BUDGET.get(None)
    if budget is None:
        return value  # a constant, while compiling; `tick` counts it
    weigh(value)
    return budget.take(str(value))


OWN = (tick, stepped, taken, joined)


def instrument(template: nodes.Template) -> None:
    rewrite(template)
    bodies: list = list(template.find_all((nodes.For, nodes.Macro, nodes.CallBlock)))
    for node in bodies:
        node.body.insert(0, nodes.ExprStmt(call_of(tick, nodes.Const(constant_text(node)))))
    template.set_lineno(1)  # only where there is none
    if template.environment is not None:
        template.set_environment(template.environment)


def call_of(function: Callable, *args: nodes.Expr) -> nodes.Call:
    name = nodes.ImportedName(f"{__name__}.{function.__name__}")
    return nodes.Call(name, list(args), [], None, None)


def constant_text(node: nodes.Node) -> int:
    """Characters that stand in the body as they are."""
    texts = [n.data for n in node.find_all(nodes.TemplateData)]
    texts += [n.value for n in node.find_all(nodes.Const) if isinstance(n.value, str)]
    return sum(map(len, texts))


def rewrite(node: nodes.Node) -> None:
    """Make ~, comparisons and slices calls that are accounted for, innermost first."""
    for field, value in node.iter_fields():
        if isinstance(value, nodes.Node):
            rewrite(value)
            setattr(node, field, accounted(value))
        elif isinstance(value, list):
            for i, item in enumerate(value):
                if isinstance(item, nodes.Node):
                    rewrite(item)
                    value[i] = accounted(item)


def accounted(node: nodes.Node) -> nodes.Node:
    if isinstance(node, nodes.Concat):
        return call_of(joined, *node.nodes).set_lineno(node.lineno)
    if isinstance(node, nodes.Compare):
        node.expr = call_of(stepped, node.expr)
    elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
        return call_of(taken, node).set_lineno(node.lineno)
    return node


# --- what templates expect to find ---


class GenerationTag(Extension):
    """{% generation %} … {% endgeneration %} marks the assistant's words; here they just pass."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class SafeNamespace(Namespace):
    """Jinja's namespace without names that begin with an underscore."""

    def __init__(*args, **named):
        self, *rest = args
        values = dict(*rest, **named)
        for name in values:
            SafeNamespace.check(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name, value):
        SafeNamespace.check(name)
        Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise SecurityError(f"namespace attribute {name!r} begins with an underscore")


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    """As models were trained to see it: no HTML escapes, no ASCII escapes."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def raise_exception(message):
    raise TemplateRefusal(str(message))


# A date is made outside of the budget's sight, so its format has to be small.
MAX_DATE = 256
WIDE_DATE = re.compile(r"%[^a-zA-Z%]*\d{3}")


def strftime_now(form):
    if not isinstance(form, str) or len(form) > MAX_DATE or WIDE_DATE.search(form):
        raise TemplateLimit(f"strftime_now needs a format of at most {MAX_DATE} characters")
    return datetime.now().strftime(form)
