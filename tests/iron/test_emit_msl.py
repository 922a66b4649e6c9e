"""Metal text: parameters as docs/architecture.md promises them."""
# ruff: noqa: F821  shapes are strings that name dims

from iron import Const, In, InOut, Out, barrier, dim, f32, i32, lane, lanes, step
from iron.emit import msl
from support.kernels import compiled


def scale(
    x: In[f32, "rows", "n"], out: Out[f32, "rows", "n"], factor: Const[f32], last: Const[i32]
):
    for i in lanes(dim("n")):
        out[0, i] = x[0, i] * factor + f32(step.pos) + f32(last)


def emitted(fn, **options):
    return compiled(fn, target="msl", until="Vectorize", **options)


def test_buffers_are_tensors_then_step_then_dims():
    text = msl.function(emitted(scale))
    assert "device const float* x [[buffer(0)]]" in text
    assert "device float* out [[buffer(1)]]" in text
    assert "device const uint* step_block [[buffer(2)]]" in text
    assert "constant uint* dims [[buffer(3)]]" in text
    assert "const uint n = dims[1];" in text and "rows = dims" not in text


def test_consts_are_function_constants_declared_once():
    funcs = [emitted(scale), emitted(scale)]
    text = msl.translation_unit("test", funcs)
    assert text.count("constant float scale_factor [[function_constant(0)]];") == 1
    assert text.count("constant int scale_last [[function_constant(1)]];") == 1


def test_an_argument_table_binds_one_buffer():
    text = msl.function(emitted(scale), table=True)
    assert "struct scale_args {" in text
    assert "  constant uint* dims [[id(3)]];" in text
    assert "kernel void scale__table(\n    constant scale_args* tables [[buffer(0)]]" in text
    assert text.count("[[buffer(") == 1


def test_launches_that_share_a_dispatch_take_their_tables_along_z():
    text = msl.function(emitted(scale), table=True)
    assert "= tables[table_first + group_id.z];" in text
    assert "if (group_id.x >= dims[2] || group_id.y >= dims[3]) return;" in text
    deep = msl.function(emitted(scale, grid=(1, 1, "rows")), table=True)
    assert "= tables[table_first];" in deep
    unit = msl.translation_unit("test", [emitted(scale)], tables=True)
    assert "constant uint table_first [[function_constant(2)]];" in unit


def test_only_thread_positions_in_use_are_parameters():
    def copy(x: In[f32, 32], out: Out[f32, 32]):
        out[lane()] = x[lane()]

    text = msl.function(emitted(copy))
    assert "thread_index_in_simdgroup" in text
    assert "threadgroup_position_in_grid" not in text and "thread_index_in_threadgroup" not in text
    assert "dims" not in text


def test_barriers_order_device_memory_if_a_tensor_is_read_and_written():
    def shift(x: InOut[f32, 64]):
        v = x[lane() + 32]
        barrier()
        x[lane()] = v

    assert "mem_flags::mem_device" in msl.function(emitted(shift))
