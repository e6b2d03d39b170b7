from __future__ import annotations

import math

import numpy as np
import pytest

from boardlift_compiler.compare_outputs import ShapeMismatchError
from boardlift_compiler.explore.judge import (
    METRICS,
    Goal,
    GoalError,
    check_goal,
    judge,
    measure_output,
    measure_outputs,
)


def test_every_metric_of_a_known_difference():
    reference = np.zeros((100, 1), np.float32)
    got = reference.copy()
    got[:2] = 1.0
    errors = measure_output("y", got, reference)
    assert errors["max_abs"] == 1.0
    assert errors["mean_abs"] == pytest.approx(0.02)
    assert errors["rmse"] == pytest.approx(math.sqrt(0.02))
    assert errors["p99_abs"] == pytest.approx(1.0, abs=0.02)
    assert errors["cosine"] == 0.0


def test_another_order_of_dimensions_is_refused_and_added_ones_are_fine():
    reference = np.arange(24.0).reshape(2, 3, 4)
    assert measure_output("y", reference.reshape(2, 1, 3, 4), reference)["max_abs"] == 0
    for got in (reference.transpose(0, 2, 1), reference.reshape(2, 12), reference[:1], reference[:, :, :2]):
        with pytest.raises(ShapeMismatchError, match="y: "):
            measure_output("y", got, reference)


def test_an_output_that_is_not_finite_is_the_worst_of_all():
    errors = measure_output("y", np.array([[np.nan]]), np.array([[1.0]]))
    assert set(errors) == set(METRICS) and all(math.isnan(v) for v in errors.values())
    assert Goal("cosine").loss(errors["cosine"]) == math.inf
    assert all(math.isnan(v) for v in measure_output("y", np.array([[1.0]]), np.array([[np.inf]])).values())


@pytest.mark.parametrize(
    ("goal", "value", "output"),
    [(Goal("cosine"), 0.9, "b"), (Goal("max_abs"), 0.5, "a"), (Goal("cosine", "a"), 0.99, "a")],
)
def test_goal_is_taken_on_the_named_or_the_worst_output(goal, value, output):
    errors = {"a": {"cosine": 0.99, "max_abs": 0.5}, "b": {"cosine": 0.9, "max_abs": 0.1}}
    assert judge(goal, errors) == (value, output)


def test_one_output_is_matched_whatever_its_name_and_several_are_not():
    one = np.ones((2, 3))
    assert list(measure_outputs({"actions_4d": one}, {"actions": one})) == ["actions_4d"]
    with pytest.raises(GoalError):
        measure_outputs({"x": one, "y": one}, {"actions": one})
    with pytest.raises(ShapeMismatchError):
        measure_outputs({"a": one}, {"a": np.ones((3, 3))})


@pytest.mark.parametrize(
    ("metric", "target", "value", "slack", "reached"),
    [
        ("cosine", 0.99, 0.991, 0.0, True),
        ("cosine", 0.99, 0.986, 0.0, False),
        ("cosine", 0.99, 0.986, 0.5, True),
        ("max_abs", 0.1, 0.09, 0.0, True),
        ("p99_abs", 0.1, 0.11, 0.0, False),
        ("cosine", None, -1.0, 0.0, True),
        ("cosine", None, math.nan, 0.0, False),
    ],
)
def test_target(metric, target, value, slack, reached):
    assert Goal(metric, target=target).reached(value, slack) is reached


@pytest.mark.parametrize(
    "goal", [Goal("psnr"), Goal("cosine", target=1.5), Goal("max_abs", target=-1.0), Goal("cosine", target=math.nan)]
)
def test_goals_that_mean_nothing(goal):
    with pytest.raises(GoalError):
        check_goal(goal)
