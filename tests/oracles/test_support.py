"""What all other tests lean on: the inputs and the comparison themselves."""

import zlib

import numpy as np
import pytest

from support.oracle import assert_close, kl_divergence
from support.rand import integers, normal, poisoned
from support.tolerances import TABLE, tolerance


def test_normal_values_have_fixed_bytes():
    # Recorded references are void if this changes.
    assert zlib.crc32(normal((5, 7), "f32", seed=3).tobytes()) == 147252945


def test_normal_values_have_mean_zero_and_unit_deviation():
    x = normal((1000, 100), "f64")

    assert abs(x.mean()) < 0.01
    assert abs(x.std() - 1) < 0.01
    assert 3.5 < np.abs(x).max() < 4.9


def test_shapes_and_seeds_give_unrelated_values():
    a, b, c = normal((2, 500)), normal((500,)), normal((500,), seed=1)

    assert abs(np.corrcoef(a[0], b)[0, 1]) < 0.2
    assert abs(np.corrcoef(b, c)[0, 1]) < 0.2


def test_integers_cover_their_range():
    assert set(integers((500,), 3, 9).tolist()) == {3, 4, 5, 6, 7, 8}


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_poison_is_not_a_number(dtype):
    assert np.isnan(poisoned((3, 5), dtype).astype(np.float64)).all()


def test_a_wrong_value_is_reported_with_place_and_size():
    want = normal((4, 6))
    got = want.copy()
    got[2, 3] += 0.5

    with pytest.raises(AssertionError, match=r"1 of 24 .*\(2, 3\).*max abs error 0.5"):
        assert_close(got, want, op="rms_norm", dtype="f32")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_never_passes(value):
    want = normal((4,))
    got = want.copy()
    got[1] = value

    with pytest.raises(AssertionError, match=r"\(1,\)"):
        assert_close(got, want, op="rms_norm", dtype="f32")


def test_equal_infinities_pass():
    assert_close([np.inf, -np.inf], [np.inf, -np.inf], op="add", dtype="f32")


def test_another_shape_fails_even_if_it_broadcasts():
    with pytest.raises(AssertionError, match="shape"):
        assert_close(np.zeros((1, 4)), np.zeros(4), op="add", dtype="f32")


def test_an_op_without_a_row_is_an_error_that_names_the_table():
    with pytest.raises(KeyError, match=r"tolerances\.py"):
        tolerance("no_such_op", "f32")


def test_each_tolerance_has_a_reason():
    assert all(row.reason and row.absolute >= 0 and row.relative >= 0 for row in TABLE.values())


def test_kl_divergence_of_known_distributions():
    half, quarter = np.log([[0.5, 0.5]]), np.log([[0.25, 0.75]])

    assert kl_divergence(half, half) == pytest.approx([0])
    assert kl_divergence(half, quarter) == pytest.approx([0.5 * np.log(2) + 0.5 * np.log(2 / 3)])
