import numpy as np
import pytest
from backend import metal

from butter import _native
from butter.errors import OutOfMemory, ShapeError

PAGE = 1 << 14


@pytest.fixture(scope="module")
def device():
    return metal()


@pytest.mark.parametrize("nbytes", [0, 1, 4096, PAGE + 1, 3 << 20])
@pytest.mark.parametrize("sparse", [False, True])
def test_fresh_memory_is_zero(device, nbytes, sparse):
    memory = device.allocate(nbytes, sparse)
    assert memory.nbytes == nbytes
    assert memory.read() == bytes(nbytes)


def test_too_much_memory_is_a_typed_error(device):
    with pytest.raises(OutOfMemory, match="could not allocate"):
        device.allocate(1 << 46)


@pytest.mark.parametrize("offset", [0, 4, 100, PAGE, 5 * PAGE + 12])
@pytest.mark.parametrize("nbytes", [4, PAGE, 2 * PAGE + 8])
def test_adopted_pages_are_read_by_kernels(device, tmp_path, offset, nbytes):
    values = np.random.default_rng(0).standard_normal(10 * PAGE // 4).astype(np.float32)
    path = tmp_path / "weights"
    path.write_bytes(values.tobytes())
    memory = device.adopt(_native.Mapping(str(path)), offset, nbytes)
    assert not memory.writable
    n = nbytes // 4
    out = device.allocate(nbytes)
    whole = (memory, 0, nbytes)
    device.run("add__f32", [whole, whole, (out, 0, nbytes)], dims=[1, n])
    want = values[offset // 4 : offset // 4 + n]
    np.testing.assert_array_equal(np.frombuffer(out.read(), np.float32), want + want)


def test_adopted_pages_outlive_their_mapping(device, tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * 1024)
    mapping = _native.Mapping(str(path))
    memory = device.adopt(mapping, 3 * PAGE, 512)
    del mapping
    path.unlink()
    assert memory.read() == bytes(range(256)) * 2


def test_outputs_are_not_bound_to_pages_of_a_file(device, tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(bytes(8 * PAGE))
    memory = device.adopt(_native.Mapping(str(path)), PAGE, 64)
    whole = (memory, 0, 64)
    with pytest.raises(ShapeError, match="read-only"):
        device.run("add__f32", [whole, whole, whole], dims=[1, 16])
