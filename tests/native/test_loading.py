"""What native code does while a model is loaded, against numpy."""

import numpy as np
import pytest

from butter import _native
from butter.errors import ConfigError, ShapeError
from native import files

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)  # every one there is
EDGES = np.array([0, -0.0, 65504, 65519, 65520, 6.1e-5, 5.96e-8, 2.9e-8, 3e-8, 1e30], np.float32)


@pytest.fixture
def mapped(tmp_path):
    """Arrays in one file: (mapping, [(offset, nbytes), …]), none aligned."""

    def write(*arrays):
        path = files.write(tmp_path / "x", b"." + b"".join(a.tobytes() for a in arrays))
        ends = 1 + np.cumsum([a.nbytes for a in arrays])
        return _native.Mapping(path), [
            (int(e) - a.nbytes, a.nbytes) for e, a in zip(ends, arrays, strict=True)
        ]

    return write


def floats(device, mapping, place, dtype, count):
    buffer = device.allocate(4 * count)
    _native.read_floats(mapping, *place, dtype, buffer, 0)
    return np.frombuffer(buffer.read(), np.float32)


def test_every_f16_and_bf16_is_widened_exactly(device, mapped):
    bits = HALVES.view(np.uint16)
    mapping, (place,) = mapped(bits)
    got = floats(device, mapping, place, "f16", len(bits))
    np.testing.assert_array_equal(got, HALVES.astype(np.float32))
    got = floats(device, mapping, place, "bf16", len(bits))
    np.testing.assert_array_equal(got, (bits.astype(np.uint32) << 16).view(np.float32))


def test_floats_beyond_the_buffer_are_refused(device, mapped):
    mapping, (place,) = mapped(np.zeros(9, np.float16))
    with pytest.raises(ShapeError, match="outside"):
        _native.read_floats(mapping, *place, "f16", device.allocate(32), 0)
    with pytest.raises(ConfigError, match="f32, f16 or bf16"):
        _native.read_floats(mapping, *place, "u16", device.allocate(64), 0)


@pytest.mark.parametrize(
    "dtype,bits", [("f32", np.uint32), ("f16", np.uint16), ("bf16", np.uint16)]
)
@pytest.mark.parametrize("at", [0, 4095, 4096, 9999])
def test_the_first_value_that_is_not_finite_is_found(device, dtype, bits, at):
    exponent = {"f32": 0x7F800000, "f16": 0x7C00, "bf16": 0x7F80}[dtype]
    values = np.full(10_000, exponent - 1, bits)  # the largest number there is
    buffer = device.allocate(values.nbytes)
    buffer.write(values)
    assert _native.first_not_finite(buffer, dtype, 0, values.nbytes) is None
    values[at:] = exponent + 1
    buffer.write(values)
    assert _native.first_not_finite(buffer, dtype, 0, values.nbytes) == at


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_biases_that_follow_from_scales_are_known(mapped, dtype):
    scales = np.concatenate([EDGES, HALVES[np.isfinite(HALVES)].astype(np.float32)])
    with np.errstate(over="ignore"):
        biases = scales.astype(np.float16) * np.float16(-8)
        scales = scales.astype(np.float16 if dtype == "f16" else np.float32)
    other = biases.copy()
    other[-1] = 1
    mapping, places = mapped(scales, biases, other)
    given, good, bad = ((mapping, *place) for place in places)
    assert _native.biases_follow((*given, dtype), (*good, "f16"), -8)
    assert not _native.biases_follow((*given, dtype), (*bad, "f16"), -8)
    assert not _native.biases_follow((*given, dtype), (*good, "f16"), -4)


def test_trimming_the_heap_keeps_what_is_in_use(device):
    buffer = device.allocate(1000)
    buffer.write(b"x" * 1000)
    _native.trim_heap()
    assert buffer.read() == b"x" * 1000
