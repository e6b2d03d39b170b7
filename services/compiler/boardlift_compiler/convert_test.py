"""Messages of comparisons: what is no finite number reaches the gates as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from boardlift.v1 import compiler_pb2

from boardlift_compiler.compare_outputs import BitComparison, compare_output
from boardlift_compiler.convert import bit_to_wire, comparison_to_wire, input_from_wire


def figures_of(got: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    return {f.name: f.value for f in comparison_to_wire(compare_output("y", got, reference), "test").figures}


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_figures_of_an_output_that_is_no_number_are_all_sent(bad):
    reference = np.ones((2, 3))
    got = reference.copy()
    got[0, 1] = bad
    figures = figures_of(got, reference)
    assert {"cosine", "max_abs", "mean_abs", "rmse", "sqnr_db"} <= set(figures)
    assert not any(math.isfinite(figures[name]) for name in ("cosine", "max_abs", "mean_abs", "rmse", "sqnr_db"))


def test_only_the_infinite_ratio_of_equal_outputs_is_left_out():
    ones = np.ones((2, 3))
    assert "sqnr_db" not in figures_of(ones, ones) and figures_of(ones, ones)["max_abs"] == 0
    assert figures_of(ones, np.zeros((2, 3)))["sqnr_db"] == -math.inf


def test_a_bit_check_says_why_nothing_was_compared():
    message = bit_to_wire(BitComparison("g0", "t", 0, False, not_compared="the quantised model has no tensor t"))
    assert (message.equal, message.not_compared) == (False, "the quantised model has no tensor t")


@pytest.mark.parametrize(
    ("mean", "scale", "norm"),
    [((), (), "no_preprocess"), ((1,), (), "data_mean"), ((), (2,), "data_scale"), ((1,), (2,), "data_mean_and_scale")],
)
def test_mean_and_scale_say_the_norm_type_that_is_left_open(mean, scale, norm):
    item = compiler_pb2.InputSpec(name="image", mean_value=mean, scale_value=scale)
    assert input_from_wire(item).norm_type == norm
    item.norm_type = "data_mean"
    assert input_from_wire(item).norm_type == "data_mean"
