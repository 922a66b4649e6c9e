"""Stored quantized matrices to tiles: every code, scale and bias is the stored one."""

import numpy as np
import pytest
from repack import AFFINE

from support.blocks import FORMATS
from support.launch import run_kernel
from support.oracle import assert_close
from support.rand import integers, normal
from support.tiles import bit_stream, pack_codes, unpack_codes, untiled

FLOATS = ["f32", "f16", "bf16"]
formats = pytest.mark.parametrize("name", FORMATS)


def repacked(machine, name, raw, order, k):
    tensors = {"raw": raw.view(np.uint16), "half": raw.view(np.float16), "order": order}
    return run_kernel(machine, f"repack_{name}", tensors=tensors, dims={"k": k})


def check(got, want, bits):
    """`got` holds the codes of the matrix `want` and its factors in f16, and zeros beyond n."""
    n = len(want.codes)
    codes = unpack_codes(untiled(got["codes"]), bits)
    np.testing.assert_array_equal(codes[:n], want.codes)
    for key, factors in [("scales", want.scales), ("biases", want.biases)]:
        if factors is not None:
            rows = untiled(got[key])
            assert_close(rows[:n], factors.astype(np.float16), op="copy", dtype="f16")
            assert not rows[n:].any()


@formats
@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (33, 2), (16, 3)])
def test_repack_keeps_codes_and_factors(machine, name, n, blocks):
    form = FORMATS[name]
    raw = form.random(n, blocks)
    order = np.arange(n, dtype=np.uint32)
    got = repacked(machine, name, raw, order, blocks * form.columns)
    check(got, form.matrix(raw), form.bits)


@formats
def test_repack_takes_rows_in_order(machine, name):
    form = FORMATS[name]
    raw = form.random(40, 2)
    order = np.argsort(integers((40,), 0, 2**31))[:35].astype(np.uint32)
    got = repacked(machine, name, raw, order, 2 * form.columns)
    check(got, form.matrix(raw[order]), form.bits)


@formats
def test_columns_that_are_no_multiple_of_a_block_are_refused(machine, name):
    form = FORMATS[name]
    raw = form.random(2, 1)
    with pytest.raises(Exception, match=f"k % {form.columns} == 0"):
        repacked(machine, name, raw, np.arange(2, dtype=np.uint32), form.columns + 16)


def affine(n, groups, bits, size, dtype):
    """MLX's arrays of a random matrix, and its codes: in order from the low bits of each word."""
    codes = integers((n, groups * size), 0, 2**bits, "u32")
    packed = bit_stream(codes, bits)
    scale, bias = normal((n, groups), dtype, scale=0.1), normal((n, groups), dtype, seed=1)
    return {"packed": packed, "scale": scale, "bias": bias}, codes.reshape(n, groups, size)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("statics", AFFINE, ids=lambda s: "-".join(map(str, s.values())))
@pytest.mark.parametrize(("n", "groups"), [(1, 1), (33, 3)])
def test_repack_affine_keeps_codes_and_rounds_factors(machine, dtype, statics, n, groups):
    tensors, codes = affine(n, groups, *statics.values(), dtype)
    k = groups * statics["G"]
    got = run_kernel(machine, "repack_affine", {"T": dtype}, statics, tensors, dims={"k": k})
    np.testing.assert_array_equal(unpack_codes(untiled(got["codes"]), statics["bits"])[:n], codes)
    for key, plural in [("scale", "scales"), ("bias", "biases")]:
        rows = untiled(got[plural])
        want = tensors[key].astype(np.float32).astype(np.float16)
        assert_close(rows[:n], want, op="copy", dtype="f16")
        assert not rows[n:].any()


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_packing_loses_nothing(bits):
    codes = integers((3, 64), 0, 2**bits, "u8", seed=bits)
    np.testing.assert_array_equal(unpack_codes(pack_codes(codes, bits), bits), codes)


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (8, {0: 0x01010000}),
        (4, {0: 0x91918080}),
        (5, {0: 0x91918080, 4: 0}),
        (6, {0: 0x91918080, 4: 0}),
    ],
)
def test_packing_by_hand(bits, words):
    """The other tests' oracle, against words written down from kernels/packing.py."""
    codes = np.arange(32, dtype=np.uint8) // 2
    packed = pack_codes(codes, bits)
    assert {at: packed[at] for at in words} == words


@pytest.mark.parametrize(("bits", "word"), [(2, 0x00000002), (3, 0x00000002)])
def test_the_pair_plane_by_hand(bits, word):
    """Code 0 is in the low two bits, code G/4 in the next two."""
    codes = np.zeros(32, np.uint8)
    codes[0] = 2
    assert pack_codes(codes, bits)[0] == word
    codes[:] = 0
    codes[8] = 1  # word 2 of the group: the second field of stored word 0
    assert pack_codes(codes, bits)[0] == 4


@pytest.mark.parametrize(("bits", "plane"), [(3, 2), (5, 4)])
def test_the_single_plane_by_hand(bits, plane):
    """The top bit of code 4*i + byte is bit i of that byte."""
    codes = np.zeros(32, np.uint8)
    codes[4 * 5 + 1] = 1 << (bits - 1)
    assert pack_codes(codes, bits)[plane] == 1 << (8 + 5)


@pytest.mark.oracle
@formats
def test_blocks_decode_as_in_the_gguf_package(name):
    quants = pytest.importorskip("gguf.quants")
    from gguf import GGMLQuantizationType

    raw = FORMATS[name].random(9, 3)
    want = quants.dequantize(raw, GGMLQuantizationType[name.upper()])
    assert_close(FORMATS[name].matrix(raw).values(), want, op="embed_q", dtype="f32")
