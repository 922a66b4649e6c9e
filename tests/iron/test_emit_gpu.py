"""What Metal and CUDA text have in common: golden text, structure, names and order."""
# ruff: noqa: F821  shapes are strings that name dims

import pytest

from iron import Const, In, InOut, Out, barrier, dim, f32, group, i32, lane, lanes, parse, shared
from iron.emit import cuda, msl
from iron.emit.dialect import float_text, scratch
from iron.errors import IronError
from iron.passes import lower
from support.kernels import compiled
from support.launch import KERNELS

TARGETS = {"msl": msl, "cuda": cuda}
SUFFIX = {"msl": "msl", "cuda": "cu"}


def emitted(fn, target, **options):
    func = compiled(fn, target=target, until="Vectorize", **options)
    return TARGETS[target].function(func)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_text_of_each_kernel_is_as_reviewed(name, target, golden):
    types, statics = parse.instances(KERNELS[name])[0]
    func = lower(parse.instance(KERNELS[name], types, statics), target)
    golden(f"{name}.{SUFFIX[target]}.txt", TARGETS[target].function(func))


@pytest.mark.parametrize("target", TARGETS)
def test_carried_values_change_all_at_once(target):
    def fibonacci(out: Out[i32, 1]):
        a, b = i32(0), i32(1)
        for _ in range(10):
            a, b = b, a + b
        out[0] = a

    text = emitted(fibonacci, target)
    assert "int next_b = a + b;" in text
    assert text.index("next_b =") < text.index("  a = next_a;") < text.index("  b = next_b;")


@pytest.mark.parametrize("target", TARGETS)
def test_a_load_happens_before_a_later_store(target):
    def rotate(x: InOut[f32, 64]):
        first = x[lane()]
        x[lane()] = x[lane() + 32]
        x[lane() + 32] = first

    text = emitted(rotate, target)
    assert text.index("first = x[lane];") < text.index("x[lane] =") < text.index("= first;")


@pytest.mark.parametrize("target", TARGETS)
def test_a_load_happens_before_a_barrier(target):
    def reverse(x: In[f32, 32], out: Out[f32, 32]):
        tile = shared(f32, 32)
        tile[lane()] = x[lane()]
        barrier()
        mine = tile[31 - lane()]
        barrier()
        out[lane()] = mine

    text = emitted(reverse, target)
    barriers = [
        i for i, line in enumerate(text.splitlines()) if "barrier(" in line or "syncth" in line
    ]
    (load,) = [i for i, line in enumerate(text.splitlines()) if "float mine" in line]
    assert barriers[0] < load < barriers[1]


@pytest.mark.parametrize("target", TARGETS)
def test_words_of_the_language_are_no_names(target):
    def half(lane: In[f32, "device"], tid: Out[f32, "device"], auto: Const[f32]):
        for int_ in lanes(dim("device")):
            tid[int_] = lane[int_] * auto

    text = emitted(half, target)
    assert "auto_" in text and " auto;" not in text
    if target == "msl":
        assert "device_1 = dims[0]" in text
    assert "lane_1[int_] * auto_" in text and "tid_1[int_]" in text
    assert "thread_index_in_simdgroup" not in text and "threadIdx.x & 31u" not in text


@pytest.mark.parametrize("target", TARGETS)
def test_offsets_have_64_bits_where_the_size_is_open(target):
    def copy(
        x: In[f32, "a", "b", 4], y: In[f32, 8, 4], z: In[f32, "a"], out: Out[f32, "a", "b", 4]
    ):
        i, j = group.id(0), group.id(1)
        out[i, j, 3] = x[i, j, 3] + y[j, 3] + z[i]
        out[0, j, 0] = x[0, j, 0]

    text = emitted(copy, target)
    assert "x[(size_t(i) * b + j) * 4u + 3u]" in text
    assert "y[j * 4u + 3u]" in text and "z[i]" in text
    assert "out[size_t(j) * 4u] = x[size_t(j) * 4u];" in text


@pytest.mark.parametrize("target", TARGETS)
def test_reductions_share_one_scratch_array_per_type(target):
    def two(x: In[f32, 128], out: Out[f32, 2]):
        me = lane()
        out[0] = group.sum(x[me])
        out[1] = group.max(x[me + 32]) + group.across_warps_sum(x[me])

    func = compiled(two, target=target, until="Vectorize", group=128)
    assert [(s.name, s.dtype, s.shape) for s in scratch(func)] == [("scratch_f32", "f32", (128,))]
    assert TARGETS[target].function(func).count("scratch_f32[128];") == 1
    alone = compiled(two, target=target, until="Vectorize", group=32)
    assert scratch(alone) == []


@pytest.mark.parametrize("target", TARGETS)
def test_too_much_group_memory_is_an_error(target):
    def large(out: Out[f32, 32]):
        tile = shared(f32, 128, 128)
        tile[0, lane()] = f32(1)
        out[lane()] = tile[0, lane()]

    with pytest.raises(IronError, match="65536 bytes of group memory"):
        emitted(large, target)


@pytest.mark.parametrize(
    "x, text",
    [
        (0.1, "0.1f"), (1.0, "1.0f"), (-3.0e38, "-3e+38f"), (1e-45, "1e-45f"),
        (float("inf"), "INF"), (float("-inf"), "-INF"), (float("nan"), "NAN"),
        (0.30000001192092896, "0.3f"), (1 / 3, "0.33333333f"), (2.0**-60, "8.6736174e-19f"),
    ],
)  # fmt: skip
def test_floats_are_printed_short_and_exact(x, text):
    assert float_text(x, "INF", "NAN") == text
