"""CPU text: the installed kernels compute what the interpreter computes, and how the text looks."""
# ruff: noqa: F821  shapes are strings that name dims

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from iron import In, InOut, Out, build, dim, f32, group, lane, lanes, parse, wrappers
from iron.emit import cpu
from iron.errors import IronError
from iron.interp import run
from iron.ir import clone
from iron.manifest import entry, shared_bytes
from iron.names import symbol
from iron.passes import lower
from support.cases import case
from support.kernels import compiled
from support.launch import KERNELS, _run_native

ROOT = Path(__file__).resolve().parents[2]
# Reductions and library functions of a CPU are off by some ulp, which shows after one rounding to
# a narrow type. int8 codes next to a tie may round the other way; all other integers are equal.
LIMIT = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def representatives() -> list:
    """Of each kernel the first and the last instance that is built for CPUs."""
    found = []
    for name in sorted(KERNELS):
        spec = KERNELS[name]
        native = [
            (t, s) for t, s in parse.instances(spec) if all(t[k] == v for k, v in spec.cpu.items())
        ]
        chosen = native[:1] + native[1:][-1:]
        found += [pytest.param(name, t, s, id=symbol(name, t, s)) for t, s in chosen]
    return found


@pytest.mark.parametrize("name, types, statics", representatives())
def test_a_cpu_computes_what_the_interpreter_computes(device, name, types, statics):
    # Before Schedule, so that the interpreter still sees the barriers.
    func = lower(parse.instance(KERNELS[name], types, statics), "cpu", "Fusion")
    want = case(func, device.warp)
    got = want.copy()

    run(func, want.tensors, want.consts, want.dims, want.step, warp=device.warp, lanes=device.warp)
    words = got.step if func.uses_step else None
    _run_native(device, func, func.symbol, got.tensors, got.consts, got.dims, words)

    for output in want.outputs:
        same(output, got.tensors[output], want.tensors[output])
    assert got.step.tolist() == want.step.tolist()


def same(name: str, got: np.ndarray, want: np.ndarray) -> None:
    limit = LIMIT.get(got.dtype.name)
    if limit is None:
        off = np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0)
        assert off <= (got.dtype == np.int8), f"{name} is off by {off}"
        return
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(want[np.isfinite(want)]).max(initial=0)
    np.testing.assert_allclose(got, want, limit, limit * finite, err_msg=name)


@pytest.mark.parametrize("name", ["add", "rms_norm", "gather", "quantize_rows"])
def test_text_of_small_kernels_is_as_reviewed(name, golden):
    func = parse.instance(KERNELS[name], *parse.instances(KERNELS[name])[0])
    golden(f"{name}.cpp.txt", cpu.function(lower(func, "cpu")))


def emitted(fn, **options) -> str:
    return cpu.function(compiled(fn, target="cpu", until="Vectorize", **options))


def test_a_lanes_loop_has_whole_vectors_and_one_masked_tail():
    def double(x: In[f32, "n"], out: Out[f32, "n"]):
        for i in lanes(dim("n")):
            out[i] = x[i] + x[i]

    text = emitted(double)
    assert text.count("store(") == 2 and text.count("mask_first(") == 1


def test_neighbouring_lanes_load_vectors_and_others_gather():
    def rows(x: In[f32, "n", 4], out: Out[f32, 4, "n"]):
        for i in lanes(dim("n")):
            out[0, i] = x[i, 1]

    text = emitted(rows)
    assert "gather(p_x" in text and " store(p_out" in text and "scatter" not in text


def test_values_that_all_lanes_share_stay_scalars():
    def scale(x: In[f32, 1], out: Out[f32, "rows"]):
        out[group.id(0)] = x[0] * f32(dim("rows"))

    text = emitted(scale, grid="rows")
    assert "store1(p_out" in text and "vf" not in text


def test_lanes_that_store_different_values_to_one_place_are_refused():
    def race(out: Out[f32, 1]):
        out[0] = f32(lane())

    with pytest.raises(IronError, match="different values to one place") as error:
        emitted(race)
    assert "out[0] = f32(lane())" in str(error.value)


def test_an_unchanged_function_is_emitted_again_as_the_same_text():
    func = parse.instance(KERNELS["rms_norm"], *parse.instances(KERNELS["rms_norm"])[0])
    assert cpu.function(lower(clone(func), "cpu")) == cpu.function(lower(func, "cpu"))


def test_group_memory_in_the_manifest_counts_what_reductions_need():
    def total(x: In[f32, "n"], out: InOut[f32, 1]):
        s = f32(0)
        for i in lanes(dim("n")):
            s += x[i]
        out[0] = group.sum(s)

    assert shared_bytes(compiled(total, group=256)) == 4 * 256 // 32
    assert shared_bytes(compiled(total, group=32)) == 0


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_typed_wrappers_for_cpp_compile(tmp_path):
    funcs = [
        lower(parse.instance(k, *parse.instances(k)[0]), "cuda", "TypeCheck")
        for k in KERNELS.values()
    ]
    entries = [entry(f) for f in sorted(funcs, key=lambda f: f.symbol)]
    (tmp_path / "kernels.h").write_text(wrappers.cpp(entries))
    (tmp_path / "main.cpp").write_text('#include "kernels.h"\n')
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT / 'csrc'}"]
    subprocess.run(["g++", *flags, "main.cpp"], cwd=tmp_path, check=True)


def test_the_table_is_sorted_for_binary_search():
    text = build.table(["b__f32", "a__f32", "a_b__f32"])
    rows = [line for line in text.splitlines() if line.startswith('    {"')]
    assert [r.split('"')[1] for r in rows] == ["a__f32", "a_b__f32", "b__f32"]
