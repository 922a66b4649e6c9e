"""The search for scales and biases against plain rounding, in float64."""

import numpy as np
import pytest

from butter.quantize.codes import pack_columns
from butter.quantize.fit import fit_groups
from support.rand import integers, normal
from support.tiles import bit_stream

BITS, GROUPS = [2, 3, 4, 5, 6, 8], [32, 64, 128]
COUNTS = [1, 31, 33]


def groups_of(kind, group, count):
    """f32 [G, N] of some distribution."""
    x = normal((group, count), "f64", seed=group + count)
    if kind == "outlier":
        x[3] *= 40
    if kind == "one_sided":
        x = np.abs(x) + 5
    if kind == "constant":
        x[:] = x[0]
    if kind == "zero":
        x[:] = 0
    if kind == "tiny":
        x *= 1e-4
    if kind == "large":
        x *= 1e4
    return x.astype(np.float32)


def loss(x, codes, scales, biases):
    """What fit.py says that it makes small, in float64."""
    wide = x.astype(np.float64)
    importance = np.abs(wide) + np.sqrt((wide**2).mean(axis=0))
    decoded = codes.astype(np.float64) * scales.astype(np.float64) + biases.astype(np.float64)
    return (importance * (decoded - wide) ** 2).sum(axis=0)


def plain(x, bits):
    """Round to nearest between the smallest and the largest weight."""
    low, high, top = x.min(axis=0), x.max(axis=0), 2**bits - 1
    scales, biases = ((high - low) / np.float32(top)).astype(np.float16), low.astype(np.float16)
    step = np.where(scales == 0, 1, scales).astype(np.float64)
    codes = np.clip(np.rint((x - biases.astype(np.float64)) / step), 0, top)
    return np.where(scales == 0, 0, codes), scales, biases


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    "kind", ["normal", "outlier", "one_sided", "constant", "zero", "tiny", "large"]
)
def test_no_group_loses_more_than_by_plain_rounding(kind, group, bits):
    for count in COUNTS:
        x = groups_of(kind, group, count)
        codes, scales, biases = fit_groups(x, bits)
        assert codes.min() >= 0 and codes.max() <= 2**bits - 1
        assert np.array_equal(codes, np.rint(codes))
        limit = loss(x, *plain(x, bits))
        # f32 arithmetic decides between lines that are equally good.
        assert (loss(x, codes, scales, biases) <= limit * (1 + 1e-4) + 1e-30).all()


@pytest.mark.parametrize("bits", [2, 3, 4])
def test_few_bits_gain_much(bits):
    x = groups_of("normal", 32, 500)
    lost, limit = loss(x, *fit_groups(x, bits)).sum(), loss(x, *plain(x, bits)).sum()
    assert lost < 0.9 * limit


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group", GROUPS)
def test_what_is_affine_already_comes_back(group, bits):
    codes = integers((group, 9), 0, 2**bits, "i32", seed=bits)
    codes[0], codes[1] = 0, 2**bits - 1
    scales = (1 + np.abs(normal((9,), "f64", seed=1))).astype(np.float16)
    biases = normal((9,), "f16", seed=2)
    x = (codes * scales.astype(np.float64) + biases.astype(np.float64)).astype(np.float32)
    got, *line = fit_groups(x, bits)
    assert np.array_equal(got, codes)
    assert np.array_equal(line[0], scales) and np.array_equal(line[1], biases)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("group", GROUPS)
def test_packed_words_are_one_stream_of_bits(group, bits):
    codes = integers((7, group), 0, 2**bits, "u8", seed=bits)
    want = bit_stream(codes, bits)
    assert np.array_equal(pack_columns(np.ascontiguousarray(codes.T), bits), want)
