"""Kernels for the compiler's own tests: written in a test, or one op built by hand."""

import numpy as np

from iron import exprs, parse
from iron.interp import run
from iron.ir import Block, Func, Op, Param, Value
from iron.lang import REGISTRY, kernel
from iron.passes import lower


def compiled(fn, *, until="TypeCheck", target="cpu", types=None, statics=None, **options) -> Func:
    """The IR of a Python function, without leaving it in the registry."""
    spec = kernel(**{"grid": 1, "group": 32} | options)(fn)
    del REGISTRY[spec.name]
    return lower(parse.instance(spec, types or {}, statics or {}), target, until)


class OneOp:
    """out[lane] = op(a0[lane], a1[lane], …), 32 lanes."""

    def __init__(self, kind: str, dtypes: list[str], out: str, **attrs):
        shape = (exprs.integer(32),)
        params = [Param(f"a{i}", "in", d, shape) for i, d in enumerate(dtypes)]
        params.append(Param("out", "out", "u8" if out == "bool" else out, shape))
        lane = Op("lane", [], {}, [Value("u32")])
        self.ops, args = [lane], []
        for p in params[:-1]:
            load = Op("load", [lane.result], {"param": p.name}, [Value(p.dtype)])
            args.append(load.result)
            self.ops.append(load)
        op = Op(kind, args, attrs, [Value(out)])
        value = op.result
        self.ops.append(op)
        if out == "bool":
            self.ops.append(Op("cast", [value], {"to": "u8"}, [Value("u8")]))
            value = self.ops[-1].result
        self.ops += [Op("store", [lane.result, value], {"param": "out"}), Op("yield")]
        one, zero = exprs.integer(1), exprs.integer(0)
        self.func = Func(
            symbol=f"one_{kind}", kernel=f"one_{kind}", source="test", types={}, statics={},
            params=params, consts=[], dims=[], grid=(one, one, one), group=32, constraints=[],
            bytes=zero, flops=zero, body=Block(ops=self.ops),
        )  # fmt: skip

    def run(self, *arrays: np.ndarray) -> np.ndarray:
        """bf16 comes back as uint16."""
        tensors = {f"a{i}": np.resize(a, 32) for i, a in enumerate(arrays)}
        tensors["out"] = np.zeros(32, _NUMPY[self.func.params[-1].dtype])
        run(self.func, tensors)
        return tensors["out"]


_NUMPY = {
    "f32": "f4", "f16": "f2", "bf16": "u2", "i8": "i1", "u8": "u1", "i16": "i2", "u16": "u2",
    "i32": "i4", "u32": "u4",
}  # fmt: skip
