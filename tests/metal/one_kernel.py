"""The smallest use of a device: one kernel."""

from butter import _native


def add(device=None):
    """Adds 16 numbers; on a new device, so that nothing is compiled yet, unless one is given."""
    device = device or _native.open_device("metal")
    memory = device.allocate(64)
    whole = (memory, 0, 64)
    device.run("add__f32", [whole, whole, (device.allocate(64), 0, 64)], dims=[1, 16])
