"""One small dispatch for any kernel, made from its parameters alone, to compare ways to run it."""

from dataclasses import dataclass, field

import numpy as np

from iron import exprs
from iron.ir import Func, Param
from iron.step_block import FIELDS

from .rand import DTYPES, integers, normal, poisoned

# No multiple of a warp where none is needed.
DIMS = {
    "rows": 3, "rowsL": 2, "n": 256, "k": 256, "stored": 300, "vocab": 77, "V": 3001, "heads": 3,
    "half": 16, "D": 40, "Hkv": 2, "P": 640, "R": 700, "splits": 2,
    "pairs": 77,
}  # fmt: skip
STEP = {
    "pos": 400, "rows": 3, "kv_len": 403, "splits": 2, "seed_lo": 7, "seed_hi": 9, "draw": 3,
    "temperature": 0.7, "top_k": 40, "top_p": 0.9, "min_p": 0.05, "repetition": 1.1,
    "presence": 0.5, "frequency": 0.25, "use_bias": 1, "sample": 1,
}  # fmt: skip


@dataclass
class Case:
    func: Func
    dims: dict[str, int]
    tensors: dict[str, np.ndarray]
    consts: dict[str, float]
    step: np.ndarray
    outputs: list[str] = field(default_factory=list)

    def copy(self) -> "Case":
        tensors = {n: a.copy() for n, a in self.tensors.items()}
        return Case(self.func, self.dims, tensors, self.consts, self.step.copy(), self.outputs)

    def grid(self, warp: int) -> list[int]:
        return [exprs.evaluate(g, self.dims | {"WARP": warp}) for g in self.func.grid]


def case(func: Func, warp: int = 32) -> Case:
    """Inputs that the kernel accepts; outputs start as poison."""
    dims = {d: DIMS[d] for d in func.dims if d != "H"}
    if "H" in func.dims:
        dims["H"] = dims.get("Hkv", 2) * func.statics.get("QH", 2)
    names = dims | {"WARP": warp}
    for expr, text in func.constraints:
        assert exprs.evaluate(expr, names), (
            f"{func.symbol}: {text} with {dims}: extend support/cases.py"
        )
    tensors: dict[str, np.ndarray] = {}
    for i, p in enumerate(func.params):
        shape = tuple(exprs.evaluate(s, names) for s in p.shape)
        tensors[p.name] = _array(p, shape, i, dims, tensors)
    words = np.zeros(64, np.uint32)
    for name, value in STEP.items():
        word, dtype = FIELDS[name]
        words[word] = np.array(value, DTYPES[dtype]).view(np.uint32)
    consts = {c.name: 1e-5 if c.name == "eps" else 0.125 for c in func.consts}
    outputs = [p.name for p in func.params if p.kind != "in"]
    return Case(func, dims, tensors, consts, words, outputs)


def _array(
    p: Param, shape: tuple[int, ...], seed: int, dims: dict[str, int], others: dict
) -> np.ndarray:
    if p.kind == "out":
        return poisoned(shape, p.dtype)
    if p.name == "half":  # the same bytes as raw
        return others["raw"].view(np.float16)
    if p.name == "raw":
        return normal(shape, "f16", seed).view(np.uint16)
    if p.name == "order":
        return np.argsort(integers((dims["stored"],), 0, 2**31, "i32", seed))[: shape[0]].astype(
            np.uint32
        )
    if p.name == "ids":
        return integers(shape, 0, dims.get("vocab", dims.get("V", 2)), "i32", seed)
    if p.name == "counts":
        return integers(shape, 0, 2, "u32", seed) * np.uint32(3)
    if exprs.text(p.shape[-1]) == "pairs":  # words of two bf16
        return normal((*shape[:-1], 2 * shape[-1]), "bf16", seed).view(np.uint32)
    if p.dtype in ("f32", "f16", "bf16"):
        return normal(shape, p.dtype, seed, 0.1 if "scale" in p.name else 1.0)
    info = {"i8": (-128, 128), "u8": (0, 256), "i32": (-1000, 1000), "u32": (0, 2**32)}
    return integers(shape, *info[p.dtype], p.dtype, seed)
