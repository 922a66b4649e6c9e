"""A handful of kernels through the whole back end; the kernel tests cover the rest."""

import numpy as np
import pytest
from backend import metal

from butter.errors import KernelError, ShapeError
from support.chain import run_chain
from support.launch import run_kernel
from support.rand import normal

SIZES = [1, 31, 33, 1025]


@pytest.fixture(scope="module")
def device():
    return metal()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("rows", [1, 3])
def test_add_equals_numpy(device, rows, n):
    x, y = normal((rows, n), "f32", 1), normal((rows, n), "f32", 2)
    out = run_kernel(device, "add", {"T": "f32"}, tensors={"x": x, "y": y})["out"]
    np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize("eps", [1e-5, 1.0])
def test_each_function_constant_makes_its_own_pipeline(device, eps):
    x, w = normal((2, 96), "f32", 1), normal((96,), "f32", 2)
    out = run_kernel(
        device, "rms_norm", {"T": "f32"}, tensors={"x": x, "w": w}, consts={"eps": eps}
    )["out"]
    want = w * x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + eps)
    np.testing.assert_allclose(out, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_gemv_reads_weights_of_each_dtype(device, dtype):
    x, w = normal((1, 130), "f32", 1), normal((70, 130), dtype, 2)
    out = run_kernel(device, "gemv", {"T": "f32", "W": dtype}, tensors={"x": x, "w": w})["out"]
    want = x.astype(np.float64) @ w.astype(np.float64).T
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


def test_a_kernel_reads_and_writes_the_step_block(device):
    logits = normal((1000,), "f32", 3)
    out = run_chain(device, logits, temperature=0)
    assert out["next"] == [logits.argmax()]
    assert out["step"][32] == logits.argmax()


def test_an_empty_grid_runs_nothing(device):
    memory = device.allocate(64)
    memory.write(np.arange(16, dtype=np.float32))
    whole = (memory, 0, 64)
    out = device.allocate(64)
    device.run("add__f32", [whole, whole, (out, 0, 64)], dims=[0, 16])
    assert out.read() == bytes(64)


def test_arguments_are_checked_before_the_launch(device):
    memory = device.allocate(64)
    whole = (memory, 0, 64)
    with pytest.raises(ShapeError, match="too small"):
        device.run("add__f32", [whole, whole, whole], dims=[1, 17])
    with pytest.raises(KernelError, match="unknown kernel"):
        device.run("ad__f32", [], dims=[])
