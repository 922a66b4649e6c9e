"""Every kernel that Iron emits passes the strict MSL compiler, which refuses what Apple's would."""

import pytest

from softmetal.build import compile_msl, emitted, folder

GOOD = """#include <metal_stdlib>
using namespace metal;
inline float twice(threadgroup float* x, uint i) { return 2.0f * x[i]; }
kernel void f(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    constant uint* dims [[buffer(2)]],
    uint i [[thread_index_in_threadgroup]]) {
  threadgroup float scratch[32];
  scratch[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = twice(scratch, i) + float(dims[0]);
}
"""
BAD = {
    "device pointer as threadgroup": ("twice(scratch, i)", "twice(out, i)"),
    "threadgroup pointer as device": ("(threadgroup float* x", "(device float* x"),
    "write to const": ("out[i] =", "x[i] = out[i] ="),
    "write to constant": ("out[i] =", "dims[0] ="),
    "no address space on a parameter": ("device float* out", "float* out"),
    "no address space on a local": ("  scratch[i] =", "  const float* p = 0;\n  scratch[i] ="),
    "a double": ("float(dims[0])", "double(dims[0])"),
    "an unknown function": ("float(dims[0])", "frobnicate(dims[0])"),
    "a parameter without attribute": ("uint i [[thread_index_in_threadgroup]]", "uint i"),
    "an unknown attribute": ("thread_index_in_threadgroup", "thread_index_in_house"),
    "threadgroup memory in a helper": (
        "{ return 2.0f", "{ threadgroup float y[4]; return y[0] + 2.0f",
    ),
    "an unused type mismatch": ("out[i] =", "const half4 h = float3(0.0f);\n  out[i] ="),
    "a vector with too few parts": ("float(dims[0])", "float4(1.0f, 2.0f).x"),
    "C++17": ("out[i] =", "if constexpr (true) out[i] ="),
    "a lambda": ("out[i] =", "const auto f = [&](uint j) { return j; };\n  out[f(i)] ="),
    "a float narrowed in silence": ("out[i] =", "const half h = x[i];\n  out[i] = float(h) +"),
    "a global in no address space": ("inline float", "const float two = 2.0f;\ninline float"),
    "a sum of truths": ("float(dims[0])", "float(simd_max(x[i] > 0.0f))"),
    "a bracket left open": ("threadgroup_barrier(", "threadgroup_barrier(("),
}  # fmt: skip


@pytest.fixture
def compile_text(tmp_path):
    folder()

    def run(text):
        source = tmp_path / "f.metal"
        source.write_text(text)
        return compile_msl("--out", tmp_path / "f.metallib", source)

    return run


def test_plain_msl_compiles(compile_text):
    done = compile_text(GOOD)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("fault", BAD)
def test_what_apple_would_refuse_is_refused(compile_text, fault):
    old, new = BAD[fault]
    assert old in GOOD
    assert compile_text(GOOD.replace(old, new)).returncode != 0


@pytest.mark.parametrize("part", range(4))
def test_every_emitted_kernel_passes(part):
    folder()
    done = compile_msl("--check", *emitted()[part::4])
    assert done.returncode == 0, done.stderr


def test_emitted_files_make_one_library(tmp_path):
    small = [f for f in emitted() if f.stat().st_size < 40_000]
    assert len(small) > 5
    done = compile_msl("--runner", folder(), "--out", tmp_path / "kernels.metallib", *small)
    assert done.returncode == 0, done.stderr
