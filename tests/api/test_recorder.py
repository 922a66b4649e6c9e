"""The recorder: shapes and dtypes inferred, and every mismatch named."""

import numpy as np
import pytest

from butter.errors import ConfigError, KernelError, ShapeError
from support.rand import normal


@pytest.fixture
def p(device):
    from butter.recorder import Recorder

    return Recorder(device, 3)


def array(device, values):
    from butter.array import Array, empty

    made = empty(device, values.shape, {"float32": "f32", "int32": "i32"}[str(values.dtype)])
    made.write(values)
    assert isinstance(made, Array)
    return made


def test_outputs_get_their_shape_and_dtype(p, device):
    x, w = array(device, normal((3, 8))), array(device, normal((8,)))
    out = p.rms_norm(x, w, eps=1e-5)
    assert (out.shape, out.dtype) == ((3, 8), "f32")
    total, out = p.add_rms_norm(x, out, w, eps=1e-5)
    assert total.shape == out.shape == (3, 8)


def test_a_recorded_program_computes(p, device):
    x, y = normal((3, 8)), normal((3, 8), seed=1)
    out = p.add(array(device, x), array(device, y))
    p.program.keep(out.id)
    from butter.step import step_words

    replay = p.finish().prepare("eager")
    replay.run(step_words(rows=3))
    got = np.frombuffer(replay.read(out.id), np.float32).reshape(3, 8)
    assert np.array_equal(got, x + y)


def test_one_array_is_bound_once(p, device):
    x = array(device, normal((3, 8)))
    assert p.bind(x) is p.bind(x)


def test_shapes_that_disagree_are_named(p, device):
    x, w = array(device, normal((3, 8))), array(device, normal((9,)))
    with pytest.raises(ShapeError, match=r"rms_norm.*x \[3, 8\], w \[9\], need x \[rows, n\]"):
        p.rms_norm(x, w, eps=1e-5)
    with pytest.raises(ShapeError, match="w has 2 sizes"):
        p.rms_norm(x, x, eps=1e-5)


def test_dtypes_without_an_instance_are_named(p, device):
    x, ids = array(device, normal((3, 8))), array(device, np.zeros(8, np.int32))
    with pytest.raises(KernelError, match=r"rms_norm.*w i32; built: .*w f32"):
        p.rms_norm(x, ids, eps=1e-5)


def test_statics_outside_the_legal_set_are_named(p, device):
    x = array(device, normal((3, 32)))
    with pytest.raises(KernelError, match="QB 7; built: .*QB 16"):
        p.quantize_rows(x, QB=7)
    assert p.legal("quantize_rows", "QB") == [16, 32]


def test_an_unknown_kernel_is_named_with_the_known_ones(p):
    with pytest.raises(KernelError, match="got 'no_such_kernel', need one of .*rms_norm"):
        p.dispatch("no_such_kernel", {}, {}, {})


def test_what_is_no_tensor_is_refused(p, device):
    from butter.recorder import Recorder

    with pytest.raises(ConfigError, match="need a tensor"):
        p.add(1, 2)
    other = Recorder(device, 3)
    foreign = other.add(array(device, normal((3, 8))), array(device, normal((3, 8))))
    with pytest.raises(ConfigError, match="another program"):
        p.add(foreign, foreign)


def test_reshape_and_view_keep_the_bytes(p, device):
    x = p.bind(array(device, normal((3, 8))))
    assert x.reshape(3, 2, 4).shape == (3, 2, 4)
    assert x.view("u32").dtype == "u32"
    assert x.view("i8").shape == (3, 32)
    with pytest.raises(ShapeError, match="no shape"):
        x.reshape(5, 5)
    odd = p.bind(array(device, normal((3, 7)))).view("i8")
    assert odd.view("f32").shape == (3, 7)
    with pytest.raises(ShapeError, match="no whole f32"):
        odd.reshape(21 * 4).reshape(2, 42).view("f32")


def test_dynamic_rows_follow_the_step(device):
    from butter.recorder import Dynamic, Recorder
    from butter.step import step_words

    p = Recorder(device, Dynamic(8, "rows"))
    table = array(device, normal((5, 4)))
    out = p.gather(table, p.tokens())
    assert out.shape == (8, 4)
    p.program.keep(out.id)
    replay = p.finish().prepare("icb")
    replay.run(step_words(rows=2), [4, 1])
    got = np.frombuffer(replay.read(out.id), np.float32).reshape(8, 4)
    assert np.array_equal(got[:2], normal((5, 4))[[4, 1]])
    with pytest.raises(ShapeError, match="rows"):
        replay.run(step_words(rows=9), [0] * 9)


def test_writing_the_wrong_size_is_refused(device):
    with pytest.raises(ShapeError, match="got 8 bytes, need 16"):
        array(device, normal((4,))).write(np.zeros(2, np.float32))
