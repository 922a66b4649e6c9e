"""Every instance of every kernel as each mode launches it; tests/kernels proves them right."""

import numpy as np
import pytest
from backend import MODES, metal

from butter import _native
from iron import parse
from iron.names import symbol
from support.cases import case
from support.launch import KERNELS, instance


@pytest.fixture(scope="module")
def device():
    return metal()


def instances(name):
    for types, statics in parse.instances(KERNELS[name]):
        yield instance(name, tuple(types.items()), tuple(statics.items()))


def test_the_build_has_the_kernels_of_the_tree(device):
    """A stale build would fail in stranger ways."""
    tree = {
        symbol(name, types, statics)
        for name, spec in KERNELS.items()
        for types, statics in parse.instances(spec)
    }
    assert set(device.kernels()) == tree


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_each_instance_gives_equal_bits_in_each_mode(device, name):
    for func in instances(name):
        given = case(func, device.warp)
        eager, *others = (outputs(device, given.copy(), mode) for mode in MODES)
        before = {key: given.tensors[key].reshape(-1).view(np.uint8) for key in given.outputs}
        assert any(not np.array_equal(value, eager[key]) for key, value in before.items())
        for mode, other in zip(MODES[1:], others, strict=True):
            for key, value in eager.items():
                assert np.array_equal(value, other[key]), f"{func.symbol}: {key}, {mode}"


def outputs(device, given, mode):
    """Bytes of all that one launch in this mode has written, and the token."""
    program = _native.Program(device, 8)
    memory, tensors = {}, []
    for p in given.func.params:
        array = given.tensors[p.name]
        memory[p.name] = device.allocate(max(array.nbytes, 1))
        memory[p.name].write(array.tobytes())
        tensors.append(program.buffer(memory[p.name], 0, array.nbytes, p.dtype))
    consts = [given.consts[c.name] for c in given.func.consts]
    dims = [given.dims[d] for d in given.func.dims]
    program.dispatch(given.func.symbol, tensors, consts, dims)
    token = program.finish().prepare(mode).run(given.step.tolist())
    written = {key: np.frombuffer(memory[key].read(), np.uint8) for key in given.outputs}
    return written | {"token": token}
