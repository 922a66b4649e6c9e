"""Errors of kernels: the author's line, a caret under the fault, and the fix."""
# ruff: noqa: F821  shapes are strings that name dims

import pytest

from iron import (
    In,
    Out,
    T,
    array,
    barrier,
    dim,
    dot_u8i8,
    exp,
    f32,
    fma,
    group,
    inline,
    kernel,
    lane,
)

from iron import lanes, prefetch, select, shared, step, u32, unroll  # isort: skip
from iron.errors import IronError
from iron.lang import REGISTRY
from support.kernels import compiled

X = In[f32, "rows", "n"]
Y = Out[f32, "n"]


def plain_python(x):
    return x


@inline
def twice(x):
    return x + x


def unknown_name(x: X, out: Y):
    out[0] = y  # at: y


def function_that_is_not_inline(x: X, out: Y):
    out[0] = plain_python(x[0, 0])  # at: plain_python(x[0, 0])


def while_loop(x: X, out: Y):
    while True:  # at: while True:
        out[0] = 1


def loop_over_a_list(x: X, out: Y):
    for i in [1, 2]:  # at: [1, 2]
        out[i] = f32(i)


def wrong_rank(x: X, out: Y):
    out[0] = x[0]  # at: x[0]


def store_to_an_input(x: X, out: Y):
    x[0, 0] = f32(1)  # at: x[0, 0]


def load_of_an_output(x: X, out: Y):
    out[0] = out[1]  # at: out[1]


def tensor_as_a_variable(x: X, out: Y):
    out = f32(1)  # noqa: F841 # at: out


def array_with_a_runtime_index(x: X, out: Y):
    a = array(f32, 4)
    for i in range(4):
        out[i] = a[i]  # at: a[i]


def array_index_outside(x: X, out: Y):
    a = array(f32, 4)
    out[0] = a[4]  # at: a[4]


def array_as_a_number(x: X, out: Y):
    a = array(f32, 4)
    out[0] = a + f32(1)  # at: a + f32(1)


def unroll_of_a_runtime_number(x: X, out: Y):
    for i in unroll(dim("n")):  # at: unroll(dim("n"))
        out[i] = f32(0)


def nested_lanes(x: X, out: Y):
    for i in lanes(4):
        for j in lanes(4):  # at: lanes(4)
            out[i] = f32(j)


def lanes_with_a_step(x: X, out: Y):
    for i in lanes(0, 8, 2):  # at: lanes(0, 8, 2)
        out[i] = f32(0)


def backwards(x: X, out: Y):
    for i in range(8, 0, -1):  # at: range(8, 0, -1)
        out[i] = f32(0)


def return_in_a_loop(x: X, out: Y):
    for i in range(4):
        if x[0, i] > 0:  # at: if x[0, i] > 0:
            return


def unknown_dim(x: X, out: Y):
    out[0] = f32(dim("m"))  # at: dim("m")


def unknown_step_field(x: X, out: Y):
    out[0] = f32(step.position)  # at: step.position


def power(x: X, out: Y):
    out[0] = x[0, 0] ** 2  # at: x[0, 0] ** 2


def keyword_argument(x: X, out: Y):
    out[0] = exp(x=x[0, 0])  # at: exp(x=x[0, 0])


def too_few_arguments(x: X, out: Y):
    out[0] = fma(x[0, 0], f32(1))  # at: fma(x[0, 0], f32(1))


def inline_with_too_many(x: X, out: Y):
    out[0] = twice(x[0, 0], 1)  # at: twice(x[0, 0], 1)


def grid_has_three_axes(x: X, out: Y):
    out[group.id(3)] = f32(0)  # at: group.id(3)


def cannot_unpack(x: X, out: Y):
    a, b = x[0, 0]  # at: a, b
    out[0] = a + b


def shared_of_a_runtime_size(x: X, out: Y):
    tile = shared(f32, dim("n"))  # at: shared(f32, dim("n"))
    out[0] = tile[0]


def unequal_words(x: X, out: Y):
    a, b = array(u32, 2), array(u32, 3)
    out[0] = f32(dot_u8i8(a, b, 4))  # at: dot_u8i8(a, b, 4)


def prefetch_of_a_number(x: X, out: Y):
    prefetch(lane(), 0)  # at: prefetch(lane(), 0)


def division_by_zero(x: X, out: Y):
    out[0] = f32(1 // 0)  # at: 1 // 0


def type_variable_without_values(x: X, out: Y):
    out[0] = f32(T(0))  # at: T


def group_sum_of_two(x: X, out: Y):
    out[0] = group.sum(x[0, 0], x[0, 1])  # at: group.sum(x[0, 0], x[0, 1])


def lambda_expression(x: X, out: Y):
    f = lambda v: v  # noqa: E731 # at: lambda v: v
    out[0] = f(x[0, 0])


def misspelled(x: X, out: Y):
    total = x[0, 0]  # noqa: F841
    out[0] = totl  # at: totl


def not_imported(x: X, out: Y):
    out[0] = tanh(x[0, 0])  # at: tanh


def bare_dim(x: X, out: Y):
    for i in lanes(n):  # at: n
        out[i] = x[0, i]


def prints(x: X, out: Y):
    print(x[0, 0])  # at: print


def length(x: X, out: Y):
    out[len(x)] = 1.0  # at: len


def returns_a_value(x: X, out: Y):
    out[0] = x[0, 0]
    return x  # at: return x


def index_from_the_end(x: X, out: Y):
    out[-1] = x[0, 0]  # at: out[-1]


def literal_too_large(x: X, out: Y):
    out[0] = f32(u32(99999999999))  # at: u32(99999999999)


def shift_of_a_word(x: X, out: Y):
    out[0] = f32(lane() << 32)  # at: lane() << 32


def negated_dtype(x: X, out: Y):
    out[0] = -f32  # at: -f32


def step_of_the_host(x: X, out: Y):
    out[0] = x[0, 0]
    step.pos = 1  # at: step.pos


def step_misspelled(x: X, out: Y):
    out[0] = f32(step.row)  # at: step.row


ERRORS = {
    misspelled: ("unknown name totl", "did you mean total?"),
    not_imported: ("unknown name tanh", "from iron import tanh"),
    bare_dim: ("unknown name n", 'write dim("n")'),
    prints: ("unknown name print", "look at it in a test"),
    length: ("unknown name len", 'dim("n")'),
    returns_a_value: ("a kernel returns nothing", "store to an Out"),
    index_from_the_end: ("index -1 is outside out[n]", "n - 1"),
    literal_too_large: ("99999999999 does not fit u32", "4294967295"),
    shift_of_a_word: ("a shift by 32", "0 to 31"),
    negated_dtype: ("no number: -f32", "-f32(x)"),
    step_of_the_host: ("step.pos is the host's", "out_token only"),
    step_misspelled: ("no field row", "did you mean rows?"),
    unknown_name: ("unknown name y", "known here: out, x"),
    function_that_is_not_inline: ("plain_python cannot be called", "mark it @inline"),
    while_loop: ("while is not part of", "for r in range(n)"),
    loop_over_a_list: ("cannot loop over this", "use range, lanes"),
    wrong_rank: ("x has 2 dimensions, got 1 indices", "its shape is [rows, n]"),
    store_to_an_input: ("x is read-only", "declare it Out"),
    load_of_an_output: ("out is write-only", "declare it InOut"),
    tensor_as_a_variable: ("out is a tensor parameter", "write its elements"),
    array_with_a_runtime_index: ("index known at build time", "unroll(n)"),
    array_index_outside: ("index 4 is outside an array of 4", ""),
    array_as_a_number: ("a register array cannot be used as a number", "index it"),
    unroll_of_a_runtime_number: ("unroll needs numbers known", "statics="),
    nested_lanes: ("lanes loops cannot be nested", ""),
    lanes_with_a_step: ("lanes of 3 bounds", "compute a strided index inside"),
    backwards: ("a step of -1", "count up"),
    return_in_a_loop: ("early return must stand at the top level", ""),
    unknown_dim: ("no dim is named 'm'", "dims: rows, n"),
    unknown_step_field: ("no field position", "fields: pos"),
    power: ("only for numbers known at build time", "exp and log"),
    keyword_argument: ("positional arguments only", ""),
    too_few_arguments: ("fma takes 3 arguments, got 2", ""),
    inline_with_too_many: ("twice takes 1 arguments, got 2", ""),
    grid_has_three_axes: ("group.id(3)", "0, 1, 2"),
    cannot_unpack: ("cannot unpack into 2 names", ""),
    shared_of_a_runtime_size: ("sizes known at build time", ""),
    unequal_words: ("two register arrays of one length", ""),
    prefetch_of_a_number: ("needs a tensor parameter", ""),
    division_by_zero: ("cannot be computed", ""),
    type_variable_without_values: ("type variable T has no values", "types="),
    group_sum_of_two: ("group.sum takes 1 arguments, got 2", ""),
    lambda_expression: ("Lambda is not part of", ""),
}


@pytest.mark.parametrize("fn", ERRORS, ids=lambda f: f.__name__)
def test_an_error_shows_the_line_a_caret_and_the_fix(fn):
    message, hint = ERRORS[fn]
    with pytest.raises(IronError) as error:
        compiled(fn)

    head, line, caret, *rest = str(error.value).splitlines()
    assert message in head and head.startswith("test_parse.py:")
    code, _, marked = line.rpartition("# at: ")
    start = caret.index("^")
    assert marked and line[start : start + caret.count("^")] == marked
    assert hint in "\n".join(rest)


def test_an_error_in_an_inline_function_shows_its_own_line():
    def outer(x: X, out: Y):
        out[0] = lost(x[0, 0])

    with pytest.raises(IronError, match="return x \\+ nowhere"):
        compiled(outer)


def test_inline_functions_that_call_themselves_are_refused():
    def outer(x: X, out: Y):
        out[0] = endless(x[0, 0])

    with pytest.raises(IronError, match="without end"):
        compiled(outer)


@inline
def endless(x):
    return endless(x)


@inline
def lost(x):
    return x + nowhere


def test_a_parameter_needs_a_kind():
    def no_kind(x: f32, out: Y):
        barrier()

    with pytest.raises(IronError, match="parameter x is annotated (.|\n)*use In"):
        kernel(grid=1)(no_kind)
    assert "no_kind" not in REGISTRY


def test_a_group_is_whole_warps():
    with pytest.raises(IronError, match="not a multiple of 32"):
        kernel(grid=1, group=48)(unknown_name)


def test_numbers_known_at_build_time_cost_no_ops():
    def sizes(x: X, out: Y):
        half = 2**4 // 2
        out[0] = x[0, half - 8] if half == 8 else select(True, f32(1), f32(2))

    kinds = [op.kind for op in compiled(sizes).body.walk()]
    assert kinds == ["const", "const", "load", "const", "store", "yield"]
