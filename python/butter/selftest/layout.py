"""Tensors whose layout depends on the device's warp, to and from a form that does not.

Such a shape ends in an axis of WARP, and another axis counts tiles of WARP: `ceildiv(n, WARP)` or
`P // WARP`. The plain form has all of n or P on that axis instead.
"""

from collections.abc import Mapping

import numpy as np

from ..manifest import Param, extent

PREFIX, SUFFIX = ("ceildiv(", "("), (", WARP)", " // WARP)")


def tile_axis(param: Param) -> tuple[int, str] | None:
    """The axis that counts tiles and the expression of what they hold; None for plain tensors.

    Raises ValueError for a shape that uses WARP in another way.
    """
    uses = [i for i, e in enumerate(param.shape) if "WARP" in e.names()]
    if not uses:
        return None
    if len(uses) == 2 and uses[1] == len(param.shape) - 1 and param.shape[-1].text == "WARP":
        text = param.shape[uses[0]].text
        for prefix, suffix in zip(PREFIX, SUFFIX, strict=True):
            if text.startswith(prefix) and text.endswith(suffix):
                return uses[0], text[len(prefix) : -len(suffix)]
    shape = ", ".join(e.text for e in param.shape)
    raise ValueError(f"{param.name}[{shape}] uses WARP, but not as tiles with the rows last")


def plain_shape(param: Param, dims: Mapping[str, int]) -> tuple[int, ...]:
    tiles = tile_axis(param)
    if tiles is None:
        return tuple(e.value(dims) for e in param.shape)
    axis, held = tiles
    shape = [extent(held) if i == axis else e for i, e in enumerate(param.shape[:-1])]
    return tuple(e.value(dims) for e in shape)


def to_device(array: np.ndarray, param: Param, warp: int) -> np.ndarray:
    """A plain array as the kernel wants it; what only fills the last tile is zero."""
    tiles = tile_axis(param)
    if tiles is None:
        return np.ascontiguousarray(array)
    axis, _ = tiles
    rows = array.shape[axis]
    count = -(-rows // warp)
    padding = [(0, count * warp - rows if i == axis else 0) for i in range(array.ndim)]
    padded = np.pad(array, padding)
    shape = (*array.shape[:axis], count, warp, *array.shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(padded.reshape(shape), axis + 1, -1))


def from_device(array: np.ndarray, param: Param, dims: Mapping[str, int]) -> np.ndarray:
    """The plain form of a kernel's array, without what only fills the last tile."""
    tiles = tile_axis(param)
    if tiles is None:
        return array
    axis, held = tiles
    moved = np.moveaxis(array, -1, axis + 1)
    joined = moved.reshape(*moved.shape[:axis], -1, *moved.shape[axis + 2 :])
    rows = np.arange(extent(held).value(dims))
    return np.ascontiguousarray(np.take(joined, rows, axis=axis))
