"""TypeCheck: what meets what, and what is refused with the fix named."""
# ruff: noqa: F821  shapes are strings that name dims

import pytest

from iron import In, Out, bf16, bitcast, f16, f32, group, i8, i32, lane, select, sqrt, u8, u16

from iron import u32  # isort: skip
from iron.errors import IronError
from iron.ir import Func, Op
from support.kernels import compiled


def typed(fn) -> Func:
    return compiled(fn, until="TypeCheck")


def of(func: Func, kind: str) -> Op:
    return next(op for op in func.body.walk() if op.kind == kind)


def test_a_literal_takes_the_type_of_the_other_operand():
    def fn(a: In[f16, 1], b: In[u32, 1], out: Out[f16, 1], n: Out[u32, 1]):
        out[0] = a[0] * 2
        n[0] = b[0] - 1

    func = typed(fn)
    assert [v.type for v in of(func, "mul").args] == ["f16", "f16"]
    assert [v.type for v in of(func, "sub").args] == ["u32", "u32"]


def test_narrow_floats_meet_f32_as_f32():
    def fn(a: In[f16, 1], b: In[bf16, 1], c: In[f32, 1], out: Out[f32, 1]):
        out[0] = (a[0] + c[0]) * (a[0] + b[0])

    func = typed(fn)
    assert {op.result.type for op in func.body.walk() if op.kind == "add"} == {"f32"}


def test_integers_meet_floats_as_floats():
    def fn(a: In[i32, 1], b: In[f32, 1], out: Out[f32, 1]):
        out[0] = a[0] * b[0] + lane()

    func = typed(fn)
    casts = [op for op in func.body.walk() if op.kind == "cast"]
    assert [(op.args[0].type, op.result.type) for op in casts] == [("i32", "f32"), ("u32", "f32")]


def test_small_integers_are_words_in_registers():
    def fn(a: In[i8, 1], b: In[u8, 1], c: In[u16, 1], x: Out[i32, 1], y: Out[u32, 1]):
        x[0] = a[0]
        y[0] = b[0] + c[0]

    loads = [op.result.type for op in typed(fn).body.walk() if op.kind == "load"]
    assert loads == ["i32", "u32", "u32"]


def test_functions_of_integers_are_computed_in_f32():
    def fn(a: In[u32, 1], out: Out[f32, 1]):
        out[0] = sqrt(a[0])

    assert of(typed(fn), "sqrt").result.type == "f32"


def i32_meets_u32(a: In[i32, 1], out: Out[i32, 1]):
    out[0] = a[0] + lane()


def slash_on_integers(a: In[i32, 1], out: Out[i32, 1]):
    out[0] = a[0] / 2


def floor_division_of_floats(a: In[f32, 1], out: Out[f32, 1]):
    out[0] = a[0] // 2


def bits_of_a_float(a: In[f32, 1], out: Out[f32, 1]):
    out[0] = a[0] & 1


def float_index(a: In[f32, 4], out: Out[f32, 1]):
    out[0] = a[a[0]]


def number_as_condition(a: In[u32, 1], out: Out[u32, 1]):
    if a[0]:
        out[0] = 1


def store_of_a_wider_type(a: In[f32, 1], out: Out[f16, 1]):
    out[0] = a[0]


def branches_of_two_types(a: In[f32, 1], out: Out[f32, 1]):
    if a[0] > 0:  # noqa: SIM108
        v = i32(1)
    else:
        v = u32(1)
    out[0] = f32(v)


def variable_that_changes_its_type(a: In[f32, 4], out: Out[f32, 1]):
    total = i32(0)
    for i in range(4):
        total = total + a[i]
    out[0] = f32(total)


def select_of_two_integers(a: In[i32, 1], out: Out[i32, 1]):
    out[0] = select(a[0] > 0, a[0], lane())


def bitcast_of_a_half(a: In[f16, 1], out: Out[u32, 1]):
    out[0] = bitcast(u32, a[0])


def sum_of_truths(a: In[f32, 1], out: Out[f32, 1]):
    out[0] = f32((a[0] > 0) + (a[0] > 1))


REFUSED = {
    i32_meets_u32: ("add of i32 and u32", "i32(…) or u32(…)"),
    slash_on_integers: ("/ on i32", "use //"),
    floor_division_of_floats: ("// on f32", "use /"),
    bits_of_a_float: ("and is not defined for f32", ""),
    float_index: ("an index must be an integer, got f32", ""),
    number_as_condition: ("if needs bool, got u32", ""),
    store_of_a_wider_type: ("out holds f16, got f32", "convert with f16(…)"),
    branches_of_two_types: ("v is i32 or u32 after the if", "convert it in one branch"),
    variable_that_changes_its_type: ("total is i32 before the loop and f32", "start it as f32(…)"),
    select_of_two_integers: ("select of i32 and u32", "convert one side"),
    bitcast_of_a_half: ("bitcast from f16 to u32", "share their 32 bits"),
    sum_of_truths: ("add is not defined for bool", ""),
}


@pytest.mark.parametrize("fn", REFUSED, ids=lambda f: f.__name__)
def test_what_does_not_fit_is_refused_with_the_fix(fn):
    message, hint = REFUSED[fn]
    with pytest.raises(IronError) as error:
        typed(fn)
    text = str(error.value)
    assert message in text and hint in text and "test_typecheck.py:" in text and "^" in text


def test_messages_use_the_words_of_the_author():
    def fn(out: Out[f32, 32]):
        out[lane()] = f32(group.sum(lane() < 3))

    with pytest.raises(IronError, match="error: group.sum of a condition"):
        compiled(fn)
