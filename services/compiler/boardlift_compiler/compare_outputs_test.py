import math

import numpy as np
import pytest

from boardlift_compiler.compare_outputs import ShapeMismatchError, compare_bits, compare_output


def test_figures_by_hand():
    reference = np.array([[1.0, 2.0], [0.0, 0.0]])
    got = np.array([[1.0, 2.5], [0.0, -1.0]])
    result = compare_output("y", got, reference)
    assert result.l1 == result.mean_abs == pytest.approx(1.5 / 4)
    assert result.l2 == pytest.approx((0.5 / 2 + 1.0 / 2) / 2)
    assert result.chebyshev == result.max_abs == 1.0
    assert result.rmse == pytest.approx(math.sqrt(1.25 / 4))
    assert result.worst_sample == 1
    assert result.cosine_min == 0.0
    assert result.samples == 2


def test_equal_and_zero():
    zeros = np.zeros((3, 4))
    assert compare_output("y", zeros, zeros).cosine == 1.0
    ones = np.ones((3, 4))
    assert compare_output("y", ones, ones).sqnr_db == math.inf


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_stays_none_in_every_figure_of_error(bad):
    reference = np.ones((3, 4))
    got = reference.copy()
    got[1, 2] = bad
    result = compare_output("y", got, reference)
    for name in ("max_abs", "mean_abs", "chebyshev", "l1", "l2", "rmse", "cosine", "cosine_min", "sqnr_db"):
        assert not math.isfinite(result.figures()[name]), name
    assert result.worst_sample == 1
    assert result.sqnr_db != math.inf


def test_added_dimensions_are_fine_and_other_orders_are_not():
    a = np.arange(24.0).reshape(2, 3, 4)
    assert compare_output("y", a.reshape(2, 1, 3, 4, 1), a).max_abs == 0
    with pytest.raises(ShapeMismatchError):
        compare_output("y", a.reshape(2, 4, 3), a)
    with pytest.raises(ShapeMismatchError):
        compare_output("y", a.reshape(2, 12), a)
    with pytest.raises(ShapeMismatchError):
        compare_output("y", a[:1], a)
    with pytest.raises(ShapeMismatchError):
        compare_output("y", a[:0], a[:0])


def test_bits():
    want = np.arange(32).reshape(1, 2, 4, 4)
    assert compare_bits("s", "t", [(want.ravel(), want)] * 3).equal
    wrong = want.copy()
    wrong[0, 1, 3, :] += 7
    result = compare_bits("s", "t", [(want.ravel(), want), (wrong.ravel(), want)])
    assert (result.equal, result.different, result.max_difference) == (False, 4, 7)
    assert result.first == "sample 1 at [0, 1, 3, 0], border only (axis 2)"
    inside = want.copy()
    inside[0, 1, 1, 1] += 1
    assert compare_bits("s", "t", [(inside, want)]).first.endswith("inside")
    assert not compare_bits("s", "t", []).equal
    assert "elements against" in compare_bits("s", "t", [(want.ravel()[:3], want)]).first
