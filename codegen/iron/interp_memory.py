"""The interpreter's memory: tensors and group memory, with every access checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import exprs
from . import interp_ops as ops
from .errors import IronError
from .ir import Func, Op, Shared

if TYPE_CHECKING:
    from .interp import _Group

NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i8": np.int8, "u8": np.uint8,
         "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32}  # fmt: skip


def bind(
    func: Func, tensors: dict, dims: dict[str, int], warp: int
) -> tuple[dict[str, TensorMemory], dict[str, int]]:
    """Check the arrays against the parameters; returns memory by name, and all dims."""
    dims = dict(dims)
    for p in func.params:
        if p.name not in tensors:
            raise IronError(f"{func.symbol}: no array for {p.name}")
        have = tensors[p.name].shape
        if len(have) != len(p.shape):
            raise IronError(f"{func.symbol}: {p.name} has shape {have}, needs {len(p.shape)} axes")
        for expr, extent in zip(p.shape, have, strict=True):
            if expr.op == "name" and expr.args[0] != "WARP":
                dims.setdefault(expr.args[0], extent)
    missing = [d for d in func.dims if d not in dims]
    if missing:
        raise IronError(f"{func.symbol}: no value for the dims {', '.join(missing)}")
    names = {"WARP": warp} | dims
    for expr, text in func.constraints:
        if expr.names() <= names.keys() and not exprs.evaluate(expr, names):
            raise IronError(f"{func.symbol}: needs {text}, got {dims}")
    memory = {}
    for p in func.params:
        array, want = tensors[p.name], tuple(exprs.evaluate(s, names) for s in p.shape)
        if array.shape != want:
            raise IronError(f"{func.symbol}: {p.name} has shape {array.shape}, needs {want}")
        if array.dtype.name == "bfloat16":
            array = array.view(np.uint16)
        if array.dtype != NUMPY[p.dtype]:
            raise IronError(f"{func.symbol}: {p.name} is {array.dtype}, needs {p.dtype}")
        memory[p.name] = TensorMemory(p.name, p.dtype, array)
    return memory, dims


class _Memory:
    """An array in storage form; values are loaded as the type that TypeCheck gives them."""

    def __init__(self, name: str, dtype: str, array: np.ndarray):
        self.name, self.dtype, self.array = name, dtype, array

    def place(self, group: _Group, op: Op, mask: Any, index: tuple) -> tuple:
        """Indices that are safe to use: the lanes that are not active read element 0."""
        active = group.active(mask)
        safe = []
        for i, extent in zip(index, self.array.shape, strict=True):
            wide = np.asarray(i, np.int64)
            bad = ((wide < 0) | (wide >= extent)) & (active if wide.ndim else active.any())
            if bad.any():
                lane = int(np.argmax(np.broadcast_to(bad, group.lanes) & active))
                got = tuple(
                    int(np.broadcast_to(np.asarray(j, np.int64), group.lanes)[lane]) for j in index
                )
                where = f"{self.name}{list(got)} in lane {lane}"
                raise group.fail(op, f"{where} is outside the shape {self.array.shape}")
            safe.append(np.where(active, wide, 0) if wide.ndim else wide)
        return tuple(safe)

    def read(self, at: tuple, to: str) -> Any:
        x = self.array[at]
        return (
            ops.bf16_value(x) if self.dtype == "bf16" else np.asarray(x).astype(ops.CARRIER[to])[()]
        )

    def write(self, group: _Group, op: Op, mask: Any, at: tuple, x: Any) -> None:
        """Store the active lanes; lanes that disagree about one element are a race."""
        if self.dtype == "bf16":
            x = ops.bf16_bits(x)
        elif self.dtype == "f16":
            x = np.asarray(x).astype(np.float16)
        x = np.asarray(x).astype(self.array.dtype)
        if all(np.ndim(i) == 0 for i in at) and x.ndim == 0:
            self.array[at] = x
            return
        active = group.active(mask)
        flat = np.broadcast_to(np.ravel_multi_index(at, self.array.shape), group.lanes)[active]
        values = np.broadcast_to(x, group.lanes)[active]
        order = np.argsort(flat, kind="stable")
        bits = values[order].view(f"u{values.itemsize}")
        clash = (np.diff(flat[order]) == 0) & (bits[1:] != bits[:-1])
        if clash.any():
            where = np.unravel_index(flat[order][1:][clash][0], self.array.shape)
            raise group.fail(
                op,
                f"lanes store different values to {self.name}{[int(i) for i in where]}",
                "reduce the value first, or index by lane",
            )
        self.array.reshape(-1)[flat] = values


class TensorMemory(_Memory):
    """One tensor parameter; every access is checked against its shape."""

    def load(self, group: _Group, op: Op, mask: Any, index: tuple) -> Any:
        at = self.place(group, op, mask, index)
        if self.array.size == 0:  # no lane is active, or place would have refused
            return ops.number(0, op.result.type or "f32")
        return self.read(at, op.result.type or "f32")

    def store(self, group: _Group, op: Op, mask: Any, index: tuple, x: Any) -> None:
        at = self.place(group, op, mask, index)
        if self.array.size and group.active(mask).any():
            self.write(group, op, mask, at, x)


class SharedMemory(_Memory):
    """Group memory: starts as poison, and remembers who touched it since the last barrier."""

    def __init__(self, spec: Shared, lanes: int):
        array = np.empty(spec.shape, NUMPY[spec.dtype])
        array.view(np.uint8).fill(0xFF)  # a NaN, -1 or the largest integer
        super().__init__(spec.name, spec.dtype, array)
        self.writer = np.full(array.size, -1, np.int32)
        self.reader = np.full(array.size, -1, np.int32)

    def barrier(self) -> None:
        self.writer.fill(-1)
        self.reader.fill(-1)

    def flat(self, group: _Group, mask: Any, at: tuple) -> tuple[np.ndarray, np.ndarray]:
        """Element and lane of every active access."""
        active = group.active(mask)
        places = np.broadcast_to(np.ravel_multi_index(at, self.array.shape), group.lanes)
        return places[active], np.flatnonzero(active).astype(np.int32)

    def load(self, group: _Group, op: Op, mask: Any, index: tuple) -> Any:
        at = self.place(group, op, mask, index)
        where, lane = self.flat(group, mask, at)
        self.refuse(
            group,
            op,
            (self.writer[where] != -1) & (self.writer[where] != lane),
            where,
            "loads",
            "stored",
        )
        # -2: several lanes read it.
        seen = self.reader[where]
        self.reader[where] = np.where((seen == -1) | (seen == lane), lane, -2)
        shared = np.bincount(where, minlength=self.array.size) > 1
        self.reader[shared] = -2
        return self.read(at, op.result.type or "f32")

    def store(self, group: _Group, op: Op, mask: Any, index: tuple, x: Any) -> None:
        at = self.place(group, op, mask, index)
        where, lane = self.flat(group, mask, at)
        for seen, verb in ((self.reader, "loaded"), (self.writer, "stored")):
            self.refuse(
                group, op, (seen[where] != -1) & (seen[where] != lane), where, "stores", verb
            )
        self.write(group, op, mask, at, x)
        self.writer[where] = lane

    def refuse(
        self, group: _Group, op: Op, bad: np.ndarray, where: np.ndarray, does: str, did: str
    ) -> None:
        if bad.any():
            at = [int(i) for i in np.unravel_index(where[bad][0], self.array.shape)]
            raise group.fail(
                op,
                f"a lane {does} {self.name}{at}, which another lane {did} since the last barrier",
                "put barrier() between them",
            )
