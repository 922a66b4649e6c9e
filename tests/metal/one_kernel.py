"""The smallest use of a device: one kernel."""

from butter import _native
from butter.manifest import manifest
from butter.selftest import inputs, references


def add(device=None):
    """Adds 16 numbers; on a new device, so that nothing is compiled yet, unless one is given."""
    device = device or _native.open_device("metal")
    memory = device.allocate(64)
    whole = (memory, 0, 64)
    device.run("add__f32", [whole, whole, (device.allocate(64), 0, 64)], dims=[1, 16])


def self_test():
    """The kernel and its test as butter doctor has it, without the build's references."""
    kernel = next(k for k in manifest().instances("add") if k.symbol == "add__f32")
    dims = inputs.choose_dims(kernel)
    given = inputs.make_inputs(kernel, dims)
    (out,) = (p.name for p in kernel.params if p.kind == "out")
    return kernel, references.Case(dims, {out: sum(x.reshape(-1) for x in given.values())}, None)
