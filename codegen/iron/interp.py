"""Runs a kernel on numpy, group by group: the definition of what each op means.

All lanes of a group run in lockstep. A value is one number, or an array of one number per lane;
`mask` says which lanes are active, None means all. Beyond the result it checks what a device would
not: bounds, uniformity, races inside a group, missing barriers.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import exprs
from . import interp_ops as ops
from .builtins import spoken
from .errors import IronError
from .interp_memory import SharedMemory, TensorMemory, bind
from .ir import BINARY, COMPARE, UNARY, Block, Func, Op, Value
from .names import FLOATS
from .step_block import FIELDS


def run(
    func: Func,
    tensors: dict[str, np.ndarray],
    consts: dict[str, float] | None = None,
    dims: dict[str, int] | None = None,
    step: np.ndarray | None = None,
    *,
    warp: int = 32,
    lanes: int | None = None,
    grid: Sequence[int] | None = None,
) -> None:
    """Execute one dispatch; arrays of out and inout parameters are changed in place.

    Args:
        func: any typed IR, before or after the later passes.
        tensors: one array per parameter; bf16 as ml_dtypes.bfloat16 or as uint16 bit patterns.
        consts: values of the Const parameters.
        dims: values of the named dims; a dim that is a whole axis of some array may be left out.
        step: words of the step block (u32), for kernels that use it.
        warp: lanes of a warp: 32 on GPUs, the vector width on a CPU.
        lanes: lanes of a group, a multiple of `warp`; by default the kernel's own.
        grid: groups along x, y, z instead of the kernel's own rule.

    Raises:
        IronError: arguments that do not fit the kernel, or an illegal access or collective.
    """
    lanes = func.group if lanes is None else lanes
    if lanes % warp:
        raise IronError(f"{func.symbol}: {lanes} lanes are no multiple of a warp of {warp}")
    memory, dims = bind(func, tensors, dims or {}, warp)
    missing = [c.name for c in func.consts if c.name not in (consts or {})]
    if missing:
        raise IronError(f"{func.symbol}: no value for {', '.join(missing)}")
    if func.uses_step and (step is None or step.dtype != np.uint32):
        raise IronError(f"{func.symbol}: reads the step block: pass step= as an array of u32 words")
    fixed = {c.name: ops.number(consts[c.name], c.dtype) for c in func.consts}  # type: ignore[index]
    names = {"WARP": warp} | dims
    if step is not None:
        names |= {f"step.{n}": int(step[w]) for n, (w, t) in FIELDS.items() if t == "u32"}
    size = list(grid or [exprs.evaluate(g, names) for g in func.grid])
    size += [1] * (3 - len(size))
    with np.errstate(all="ignore"):
        for z, y, x in itertools.product(range(size[2]), range(size[1]), range(size[0])):
            group = _Group(func, memory, fixed, dims, step, warp, lanes, (x, y, z))
            with contextlib.suppress(_Return):
                group.block(func.body, None)


class _Return(Exception):
    """Ends a group early."""


class _Group:
    def __init__(
        self,
        func: Func,
        memory: dict[str, TensorMemory],
        consts: dict[str, Any],
        dims: dict[str, int],
        step: np.ndarray | None,
        warp: int,
        lanes: int,
        ids: tuple[int, int, int],
    ):
        self.func, self.memory, self.consts, self.dims, self.step = func, memory, consts, dims, step
        self.warp, self.lanes, self.ids = warp, lanes, ids
        self.shared = {s.name: SharedMemory(s, lanes) for s in func.shared}
        self.env: dict[Value, Any] = {}
        self.in_warps = False

    def block(self, block: Block, mask: Any) -> list[Any]:
        """Run the ops and return the values of the final yield."""
        for op in block.ops[:-1]:
            self.op(op, mask)
        return [self.env[a] for a in block.ops[-1].args]

    def op(self, op: Op, mask: Any) -> None:
        args = [self.env[a] for a in op.args]
        if "mask" in op.attrs:  # set by Vectorize
            own = self.env[op.attrs["mask"]]
            mask = own if mask is None else mask & own
        handler = getattr(self, f"op_{op.kind}", None)
        if handler is not None:
            result = handler(op, mask, *args)
        elif op.kind in BINARY or op.kind in COMPARE or op.kind in ("land", "lor"):
            self.check_integers(op, mask, *args)
            result = ops.binary(op.kind, op.args[0].type or "", *args)
        elif op.kind in UNARY or op.kind == "lnot":
            result = ops.unary(op.kind, op.args[0].type or "", *args)
        else:
            raise self.fail(op, f"the interpreter does not know {op.kind}")
        if len(op.results) == 1 and op.kind not in ("for", "if"):
            self.env[op.result] = result

    # -- checks ---------------------------------------------------------------------------------

    def fail(self, op: Op, message: str, hint: str = "") -> IronError:
        return IronError(f"{self.func.symbol}, group {self.ids}: {message}", op.loc, hint)

    def active(self, mask: Any) -> np.ndarray:
        return np.broadcast_to(np.bool_(True) if mask is None else mask, self.lanes)

    def all_lanes(self, x: Any) -> np.ndarray:
        return np.broadcast_to(x, self.lanes)

    def same(self, op: Op, mask: Any, x: Any, what: str) -> Any:
        """The one value that all active lanes hold."""
        if np.ndim(x) == 0:
            return x
        values = x[self.active(mask)]
        if values.size and not (values == values[0]).all():
            raise self.fail(op, f"{what} must be the same for all lanes, got {values[0]} and "
                            f"{values[values != values[0]][0]}")  # fmt: skip
        return values[0] if values.size else x[0]

    def whole_group(self, op: Op, mask: Any) -> None:
        if not self.active(mask).all():
            raise self.fail(op, f"{spoken(op)} where only some lanes of the group take part")

    def whole_warps(self, op: Op, mask: Any) -> None:
        rows = self.active(mask).reshape(-1, self.warp)
        if (rows.any(axis=1) != rows.all(axis=1)).any():
            raise self.fail(op, f"{spoken(op)} where only some lanes of a warp take part")

    def check_integers(self, op: Op, mask: Any, a: Any, b: Any) -> None:
        kind, dtype = op.kind, op.args[0].type
        if dtype in FLOATS or kind not in ("div", "mod", "shl", "shr"):
            return
        bits = 8 * np.dtype(ops.CARRIER[dtype]).itemsize
        bad = b == 0 if kind in ("div", "mod") else (b < 0) | (b >= bits)
        if (bad & self.active(mask)).any():
            what = (
                "division by zero" if kind in ("div", "mod") else f"shift of {dtype} by {np.max(b)}"
            )
            raise self.fail(op, what)

    # -- where and who --------------------------------------------------------------------------

    def op_const(self, op: Op, mask: Any) -> Any:
        return ops.number(op.attrs["value"], op.result.type or "i32")

    def op_dim(self, op: Op, mask: Any) -> Any:
        return np.uint32(self.dims[op.attrs["name"]])

    def op_arg(self, op: Op, mask: Any) -> Any:
        return self.consts[op.attrs["name"]]

    def op_step(self, op: Op, mask: Any) -> Any:
        word, dtype = FIELDS[op.attrs["field"]]
        return ops.bitcast(self.step[word], dtype)  # type: ignore[index]

    def op_step_store(self, op: Op, mask: Any, x: Any) -> None:
        if self.active(mask).any():
            x = self.same(op, mask, x, "what is stored to the step block")
            self.step[FIELDS[op.attrs["field"]][0]] = ops.bitcast(x, "u32")  # type: ignore[index]

    def op_group_id(self, op: Op, mask: Any) -> Any:
        return np.uint32(self.ids[op.attrs["axis"]])

    def op_lane(self, op: Op, mask: Any) -> Any:
        return np.arange(self.lanes, dtype=np.uint32) % np.uint32(self.warp)

    def op_warp_id(self, op: Op, mask: Any) -> Any:
        return np.arange(self.lanes, dtype=np.uint32) // np.uint32(self.warp)

    def op_warp_width(self, op: Op, mask: Any) -> Any:
        return np.uint32(self.warp)

    def op_num_warps(self, op: Op, mask: Any) -> Any:
        return np.uint32(self.lanes // self.warp)

    # -- values ---------------------------------------------------------------------------------

    def op_fma(self, op: Op, mask: Any, a: Any, b: Any, c: Any) -> Any:
        return ops.fma(op.result.type or "", a, b, c)

    def op_mulhi(self, op: Op, mask: Any, a: Any, b: Any) -> Any:
        return ops.mulhi(a, b)

    def op_select(self, op: Op, mask: Any, c: Any, a: Any, b: Any) -> Any:
        return np.where(c, a, b)[()]

    def op_cast(self, op: Op, mask: Any, x: Any) -> Any:
        return ops.cast(x, op.args[0].type or "", op.attrs["to"])

    def op_bitcast(self, op: Op, mask: Any, x: Any) -> Any:
        return ops.bitcast(x, op.attrs["to"])

    def op_dp4a(self, op: Op, mask: Any, acc: Any, codes: Any, x: Any) -> Any:
        return ops.dp4a(acc, codes, x)

    def op_dot_bf16(self, op: Op, mask: Any, acc: Any, a: Any, b: Any) -> Any:
        return ops.dot_bf16(acc, a, b)

    def op_dot_u8i8(self, op: Op, mask: Any, *words: Any) -> Any:
        half = len(words) // 2
        acc: Any = np.int32(0)
        for codes, x in zip(words[:half], words[half:], strict=True):
            large = (
                np.maximum.reduce(np.broadcast_arrays(*ops.unpack(codes, "u8"))) >> op.attrs["bits"]
            )
            if (large.astype(bool) & self.active(mask)).any():
                raise self.fail(op, f"a code of dot_u8i8 does not fit {op.attrs['bits']} bits")
            acc = ops.dp4a(acc, codes, x)
        return acc

    # -- memory ---------------------------------------------------------------------------------

    def op_load(self, op: Op, mask: Any, *index: Any) -> Any:
        return self.memory[op.attrs["param"]].load(self, op, mask, index)

    def op_store(self, op: Op, mask: Any, *args: Any) -> None:
        self.memory[op.attrs["param"]].store(self, op, mask, args[:-1], args[-1])

    def op_prefetch(self, op: Op, mask: Any, *index: Any) -> None:
        """A hint changes nothing."""

    def op_shared_load(self, op: Op, mask: Any, *index: Any) -> Any:
        return self.shared[op.attrs["name"]].load(self, op, mask, index)

    def op_shared_store(self, op: Op, mask: Any, *args: Any) -> None:
        self.shared[op.attrs["name"]].store(self, op, mask, args[:-1], args[-1])

    def op_barrier(self, op: Op, mask: Any) -> None:
        """Reductions of the group are barriers as well."""
        self.whole_group(op, mask)
        for s in self.shared.values():
            s.barrier()

    # -- across lanes ---------------------------------------------------------------------------

    def by_warp(self, x: Any) -> np.ndarray:
        return self.all_lanes(x).reshape(-1, self.warp)

    def warp_reduce(self, op: Op, mask: Any, x: Any) -> Any:
        self.whole_warps(op, mask)
        result = ops.tree(op.kind[-3:], op.result.type or "", self.by_warp(x))
        return np.repeat(result, self.warp) if len(result) > 1 else result[0]

    op_warp_sum = op_warp_max = op_warp_min = warp_reduce

    def group_reduce(self, op: Op, mask: Any, x: Any) -> Any:
        self.op_barrier(op, mask)
        dtype, how = op.result.type or "", op.kind[-3:]
        wide = "f32" if dtype in FLOATS else dtype
        return ops.tree(how, dtype, ops.tree(how, wide, self.by_warp(x)))

    op_group_sum = op_group_max = op_group_min = group_reduce

    def op_warp_scan_sum(self, op: Op, mask: Any, x: Any) -> Any:
        self.whole_warps(op, mask)
        return ops.scan_sum(op.result.type or "", self.by_warp(x)).reshape(-1)

    def op_warp_read(self, op: Op, mask: Any, x: Any, lane: Any) -> Any:
        self.whole_warps(op, mask)
        rows, source = self.by_warp(x), self.by_warp(lane)
        if (source != source[:, :1])[self.active(mask).reshape(rows.shape)].any():
            raise self.fail(op, "warp.read needs one lane number for the whole warp")
        if (source[:, 0] >= self.warp).any():
            raise self.fail(op, f"warp.read from lane {source.max()} of a warp of {self.warp}")
        result = rows[np.arange(len(rows)), source[:, 0]]
        return np.repeat(result, self.warp) if len(result) > 1 else result[0]

    def op_across_warps_sum(self, op: Op, mask: Any, x: Any) -> Any:
        self.op_barrier(op, mask)
        rows, dtype = self.by_warp(x), op.result.type or ""
        total = rows[0]
        for row in rows[1:]:
            total = total + row
        return np.tile(ops.rounded(total, dtype) if dtype in FLOATS else total, len(rows))

    # -- control flow ---------------------------------------------------------------------------

    def op_return_if(self, op: Op, mask: Any, cond: Any) -> None:
        if self.same(op, mask, cond, "the condition of a return"):
            raise _Return

    def op_if(self, op: Op, mask: Any, cond: Any) -> None:
        if np.ndim(cond) == 0:
            self.env.update(
                zip(op.results, self.block(op.blocks[0 if cond else 1], mask), strict=True)
            )
            return
        active = self.active(mask)
        masks = [active & cond, active & ~cond]
        ran = [self.block(b, m) if m.any() else None for b, m in zip(op.blocks, masks, strict=True)]
        for i, r in enumerate(op.results):
            values = [y[i] for y in ran if y is not None]
            self.env[r] = (
                np.where(cond, *values)[()] if len(values) == 2 else values[0] if values else 0
            )

    def op_for(self, op: Op, mask: Any, *args: Any) -> None:
        kind, body, was_in_warps = op.attrs["kind"], op.blocks[0], self.in_warps
        if kind != "range" and not was_in_warps:
            self.whole_group(op, mask)
        start, stop, stride = (self.bound(op, mask, x) for x in args[:3])
        offsets, width = self.distribution(kind)
        self.in_warps = was_in_warps or kind == "warps"
        carried = list(args[3:])
        for turn in itertools.count():
            iv = start + (offsets + turn * width) * stride
            going = np.asarray(iv < stop)
            now = mask if going.all() else self.active(mask) & going
            if not self.active(now).any():
                break
            self.env[body.params[0]] = ops.cast(iv, "i64", body.params[0].type or "u32")
            self.env.update(zip(body.params[1:], carried, strict=True))
            new = self.block(body, now)
            carried = [
                n if now is mask else np.where(now, n, c)[()]
                for n, c in zip(new, carried, strict=True)
            ]
        self.in_warps = was_in_warps
        self.env.update(zip(op.results, carried, strict=True))

    def bound(self, op: Op, mask: Any, x: Any) -> Any:
        """Bounds are the same within a warp; those of a lanes or warps loop within the group."""
        if np.ndim(x) and (op.attrs["kind"] == "range" or self.in_warps):
            rows, active = self.by_warp(x), self.active(mask).reshape(-1, self.warp)
            for row, lanes in zip(rows, active, strict=True):
                if (row[lanes] != row[lanes][:1]).any():
                    raise self.fail(
                        op,
                        f"a loop bound must be the same for all lanes of a warp, got {row[lanes]}",
                    )
            return np.asarray(x, np.int64)
        return np.int64(self.same(op, mask, x, "a loop bound"))

    def distribution(self, kind: str) -> tuple[Any, int]:
        """Which of `width` concurrent turns a lane takes; in a warps loop, lanes are the warp's."""
        ids = np.arange(self.lanes, dtype=np.int64)
        if kind == "warps":
            return ids // self.warp, self.lanes // self.warp
        if kind == "lanes":
            return (ids % self.warp, self.warp) if self.in_warps else (ids, self.lanes)
        return np.int64(0), 1
