"""Running one kernel: on a device, in the interpreter laid out as on a GPU, or through CUDA."""

from __future__ import annotations

import difflib
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from iron import build, exprs, interp, parse
from iron.emit import cuda as emit
from iron.ir import Func
from iron.names import symbol
from iron.passes import lower
from iron.step_block import FIELDS, HEADER_WORDS

from .cuda import Cuda, compile_cuda
from .rand import DTYPES, poisoned

KERNELS = dict(build.load_kernels(Path(__file__).resolve().parents[2] / "kernels"))


@dataclass(frozen=True)
class Interpreter:
    """Stands in for a device: whole groups in warps of 32, with races and bounds checked."""

    name: str = "iron"
    warp: int = 32


class CudaGroups:
    """Stands in for a device: the emitted CUDA text, compiled by nvcc on first use."""

    name, warp = "cuda", 32

    def __init__(self, cuda: Cuda):
        self._cuda, self._modules = cuda, {}
        self._folder = Path(tempfile.mkdtemp())

    def run(self, func: Func, arrays: dict, consts: dict, dims: dict, words) -> None:
        names = {"WARP": 32} | dims
        for expr, text in func.constraints:
            if not exprs.evaluate(expr, names):
                raise ValueError(f"needs {text}, got {dims}")
        grid = [exprs.evaluate(g, names) for g in func.grid]
        args = [*arrays.values()] + ([] if words is None else [words])
        args += [np.float32(consts[c.name]) for c in func.consts]
        args += [np.uint32(dims[d]) for d in func.dims]
        self._cuda.launch(self._module(func.source), func.symbol, grid, func.group, args)

    def _module(self, source: str):
        if source not in self._modules:
            kernels = [k for k in KERNELS.values() if k.module == source]
            funcs = [parse.instance(k, t, s) for k in kernels for t, s in parse.instances(k)]
            text = emit.translation_unit(source, [lower(f, "cuda") for f in funcs])
            image = compile_cuda(text, self._folder / f"{source}.cubin", self._cuda.arch)
            self._modules[source] = self._cuda.load(image)
        return self._modules[source]


@cache
def instance(name: str, types: tuple = (), statics: tuple = ()) -> Func:
    """The typed IR of one instance; types and statics as tuples of pairs."""
    return lower(parse.instance(KERNELS[name], dict(types), dict(statics)), "cuda", "TypeCheck")


def step_words(fields: dict | None = None) -> np.ndarray:
    """The header of a step block; filters off, temperature 1, one row, sampling on."""
    neutral = {"rows": 1, "temperature": 1, "top_p": 1, "repetition": 1, "sample": 1}
    words = np.zeros(HEADER_WORDS, np.uint32)
    for field, value in {**neutral, **(fields or {})}.items():
        word, dtype = FIELDS[field]
        words[word] = np.asarray(value, DTYPES[dtype]).view(np.uint32)
    return words


def run_kernel(
    device,
    name: str,
    types: dict[str, str] | None = None,
    statics: dict[str, int] | None = None,
    tensors: dict[str, np.ndarray] | None = None,
    consts: dict[str, float] | None = None,
    dims: dict[str, int] | None = None,
    step: dict[str, float] | None = None,
) -> dict[str, np.ndarray]:
    """Run one dispatch and return its outputs by name, and the step block if it is written.

    Out parameters are allocated here and filled with poison. Dims that are a whole axis of some
    tensor may be left out; tensors that the kernel does not have are passed over.
    """
    types, statics, tensors = types or {}, statics or {}, tensors or {}
    _find(name, types, statics)
    func = instance(name, tuple(types.items()), tuple(statics.items()))
    _fits(func, tensors, consts or {}, dims or {})
    dims = _dims(func, tensors, dims or {})
    arrays = {}
    for p in func.params:
        if p.kind == "out":
            shape = tuple(exprs.evaluate(s, {"WARP": device.warp} | dims) for s in p.shape)
            arrays[p.name] = poisoned(shape, p.dtype)
        else:
            array = np.ascontiguousarray(tensors[p.name])
            arrays[p.name] = array.copy() if p.kind == "inout" else array
    words = step_words(step) if func.uses_step else None
    if isinstance(device, Interpreter):
        interp.run(func, arrays, consts, dims, words)
    elif isinstance(device, CudaGroups):
        device.run(func, arrays, consts or {}, dims, words)
    else:
        native = symbol(name, types, statics)
        _run_native(device, func, native, arrays, consts or {}, dims, words)
    outputs = {p.name: arrays[p.name] for p in func.params if p.kind != "in"}
    return outputs | ({"step": words} if func.writes_step else {})


def out_token(outputs: dict[str, np.ndarray]) -> int:
    """What the kernel left in step.out_token."""
    return int(outputs["step"][FIELDS["out_token"][0]].view(np.int32))


def _find(name: str, types: dict, statics: dict) -> None:
    """Raise KeyError unless there is such an instance."""
    if name not in KERNELS:
        near = difflib.get_close_matches(name, KERNELS)
        raise KeyError(f"no kernel is named {name}. Nearest: {', '.join(near) or sorted(KERNELS)}")
    legal = parse.instances(KERNELS[name])
    if (types, statics) not in legal:
        raise KeyError(f"{name} has no instance {types} {statics}. It has: {legal}")


def _fits(func: Func, tensors: dict, consts: dict, dims: dict) -> None:
    """Raise where tensors, consts or dims are not those that the kernel takes."""
    inputs = {p.name for p in func.params if p.kind != "out"}
    for what, given, needed, legal in (
        ("tensors", set(tensors), inputs, {p.name for p in func.params}),
        ("consts", set(consts), {c.name for c in func.consts}, {c.name for c in func.consts}),
        ("dims", set(dims), set(), set(func.dims)),
    ):
        if needed - given or given - legal and what != "tensors":
            raise KeyError(f"{what} of {func.symbol}: got {sorted(given)}, need {sorted(needed)}")
    for p in func.params:
        if p.name in tensors:
            array = np.asarray(tensors[p.name])
            shape = f"[{', '.join(exprs.text(s) for s in p.shape)}]"
            if array.ndim != len(p.shape):
                raise ValueError(f"{p.name} has shape {array.shape}, needs {shape}")
            if array.dtype != DTYPES[p.dtype]:
                raise TypeError(f"{p.name} is {array.dtype}, needs {p.dtype}")


def _dims(func: Func, tensors: dict[str, np.ndarray], dims: dict[str, int]) -> dict[str, int]:
    dims = dict(dims)
    for p in func.params:
        if p.name in tensors:
            for expr, extent in zip(p.shape, tensors[p.name].shape, strict=True):
                if expr.op == "name" and expr.args[0] != "WARP":
                    dims.setdefault(expr.args[0], extent)
    if missing := [d for d in func.dims if d not in dims]:
        raise KeyError(f"{func.symbol}: no axis gives {', '.join(missing)}: pass dims=")
    return {d: int(dims[d]) for d in func.dims}


def _run_native(device, func, name, arrays, consts, dims, words) -> None:
    def upload(array: np.ndarray):
        data = array.tobytes()
        buffer = device.allocate(max(len(data), 1))
        buffer.write(data)
        return buffer, 0, len(data)

    ranges = {p.name: upload(arrays[p.name]) for p in func.params}
    step = None if words is None else upload(words)
    values = [float(consts[c.name]) for c in func.consts]
    device.run(name, list(ranges.values()), values, [dims[d] for d in func.dims], step)
    for p in func.params:
        if p.kind != "in":
            buffer, _, nbytes = ranges[p.name]
            got = np.frombuffer(buffer.read(0, nbytes), DTYPES[p.dtype])
            arrays[p.name][...] = got.reshape(arrays[p.name].shape)
    if step is not None:
        words[:] = np.frombuffer(step[0].read(0, step[2]), np.uint32)
