"""CUDA text: it compiles, and a GPU computes what the interpreter computes."""
# ruff: noqa: F821  shapes are strings that name dims

import numpy as np
import pytest

from iron import Const, In, Out, dim, f32, lanes, parse, step
from iron.emit import cuda
from iron.errors import IronError
from iron.interp import run
from iron.ir import COMPARE, UNARY, clone
from iron.passes import lower
from support.cases import case
from support.cuda import compile_cuda, nvcc, open_cuda
from support.kernels import OneOp, compiled
from support.launch import KERNELS

needs_nvcc = pytest.mark.skipif(nvcc() is None, reason="nvcc is not installed")
SOURCES = sorted({k.module for k in KERNELS.values()})
ARCHS = ("80", "90")


def instances(source: str, all_of_them: bool):
    for kernel in KERNELS.values():
        if kernel.module == source:
            chosen = parse.instances(kernel)
            for types, statics in chosen if all_of_them else chosen[:1]:
                yield parse.instance(kernel, types, statics)


def unit(source: str, all_of_them: bool) -> str:
    return cuda.translation_unit(source, [lower(f, "cuda") for f in instances(source, all_of_them)])


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_one_instance_of_each_kernel_compiles(source, tmp_path):
    compile_cuda(unit(source, False), tmp_path / "unit.fatbin", *ARCHS)


@needs_nvcc
def test_argument_tables_compile(tmp_path):
    funcs = [lower(f, "cuda") for f in instances("norm", False)]
    text = cuda.translation_unit("norm", funcs, tables=True)
    assert text.count("__global__") == 2 * len(funcs)
    compile_cuda(text, tmp_path / "tables.cubin", "80")


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_every_instance_compiles(source, tmp_path):
    compile_cuda(unit(source, True), tmp_path / "unit.fatbin", *ARCHS)


@needs_nvcc
def test_every_op_compiles_for_every_type(tmp_path):
    ops = [OneOp(k, [t] * 2, "bool") for k in COMPARE for t in ("f32", "f16", "bf16", "i32", "u32")]
    for t in ("f32", "f16", "bf16"):
        ops += [OneOp(k, [t] * 2, t) for k in ("add", "sub", "mul", "div", "min", "max")]
        ops += [OneOp(k, [t], t) for k in UNARY]
        ops += [OneOp("fma", [t] * 3, t)]
        ops += [OneOp("cast", [t], to, to=to) for to in CASTS]
    for t in ("i32", "u32"):
        ops += [OneOp(k, [t] * 2, t, floor=True) for k in BITS]
        ops += [OneOp("cast", [t], to, to=to) for to in CASTS]
        ops += [OneOp("warp_read", [t, "u32"], t), OneOp("bitcast", [t], "f32", to="f32")]
    for t in ("f32", "f16", "bf16", "i32", "u32"):
        ops += [OneOp(k, [t], t) for k in ("warp_sum", "warp_max", "warp_min", "warp_scan_sum")]
    ops += [OneOp("mulhi", ["u32"] * 2, "u32"), OneOp("dp4a", ["i32", "u32", "u32"], "i32")]
    for n, op in enumerate(ops):
        op.func.symbol = f"op{n}"
    text = cuda.translation_unit("ops", [op.func for op in ops])
    compile_cuda(text, tmp_path / "ops.cubin", "80")


CASTS = ("f32", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32")
BITS = ("add", "sub", "mul", "div", "mod", "min", "max", "and", "or", "xor", "shl", "shr")


def test_parameters_are_tensors_then_step_then_consts_then_dims():
    def scale(x: In[f32, "rows", "n"], out: Out[f32, "rows", "n"], factor: Const[f32]):
        for i in lanes(dim("n")):
            out[0, i] = x[0, i] * factor + f32(step.pos)

    func = compiled(scale, target="cuda", until="Vectorize", group=64)
    text = cuda.function(func)
    head = text[: text.index("{")]
    assert 'extern "C" __global__ void __launch_bounds__(64)' in head
    wanted = [
        "const float* __restrict__ x", "float* __restrict__ out",
        "const unsigned* __restrict__ step_block", "float factor", "unsigned rows", "unsigned n",
    ]  # fmt: skip
    assert [line.strip(" ,){") for line in head.splitlines()[2:]] == wanted
    table = cuda.function(func, table=True)
    assert "scale__table(\n    const scale_args* __restrict__ args)" in table


# -- on a GPU -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gpu():
    found = open_cuda()
    if found is None or nvcc() is None:
        pytest.skip("needs a CUDA GPU and nvcc")
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_a_gpu_computes_what_the_interpreter_computes(source, gpu, tmp_path):
    funcs = list(instances(source, True))
    lowered = [lower(clone(f), "cuda") for f in funcs]
    text = cuda.translation_unit(source, lowered)
    module = gpu.load(compile_cuda(text, tmp_path / "unit.cubin", gpu.arch))
    for func, final in zip(funcs, lowered, strict=True):
        want = case(final)
        got = want.copy()
        run(final, want.tensors, want.consts, want.dims, want.step)
        args = list(got.tensors.values()) + ([got.step] if final.uses_step else [])
        args += [np.float32(got.consts[c.name]) for c in func.consts]
        args += [np.uint32(got.dims[d]) for d in func.dims]
        gpu.launch(module, func.symbol, got.grid(32), func.group, args)
        for name in want.outputs:
            same(func.symbol, name, got.tensors[name], want.tensors[name])
        assert got.step.tolist() == want.step.tolist(), func.symbol


# Library functions of the GPU are off by some ulp, which one rounding to a shorter type can double.
LIMIT = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def same(symbol: str, name: str, got: np.ndarray, want: np.ndarray) -> None:
    limit = LIMIT.get(got.dtype.name)
    if limit is None:
        off = np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0)
        assert off <= (got.dtype == np.int8), f"{symbol}: {name} is off by {off}"
        return
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(want[np.isfinite(want)]).max(initial=0)
    np.testing.assert_allclose(got, want, limit, limit * finite, err_msg=f"{symbol}: {name}")


def test_an_op_without_a_spelling_is_an_error():
    with pytest.raises(IronError, match="no dot_u8i8"):
        cuda.function(OneOp("dot_u8i8", ["u32"] * 2, "i32", bits=8).func)
