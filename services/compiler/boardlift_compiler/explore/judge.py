"""Judge outputs by the user's metric, on the output the user names or on the worst one; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boardlift_compiler.compare_outputs import cosine_similarity, require_same_shape

Array = npt.NDArray[np.generic]
Errors = Mapping[str, Mapping[str, float]]
"""Output -> metric -> value."""
METRICS = ("cosine", "max_abs", "mean_abs", "rmse", "p99_abs")
"""Cosine is better when larger, all others when smaller."""


class GoalError(ValueError):
    """The goal cannot be judged; the message says why."""


@dataclass(frozen=True)
class Goal:
    """What a variant is judged by."""

    metric: str = "cosine"
    """One of METRICS."""
    output: str = ""
    """Output it is taken on; empty takes the worst."""
    target: float | None = None
    """Value to reach; None means as good as possible."""

    def loss(self, value: float) -> float:
        """Return the value as a loss, so that smaller is better for every metric; NaN is the worst."""
        if math.isnan(value):
            return math.inf
        return 1.0 - value if self.metric == "cosine" else value

    def value_of(self, loss: float) -> float:
        """Return a loss as a value of the metric."""
        return 1.0 - loss if self.metric == "cosine" else loss

    def reached(self, value: float, slack: float = 0.0) -> bool:
        """Tell whether a value reaches the target; without a target everything does.

        Args:
            value: Value of the metric.
            slack: Share of the target's loss by which it may be missed, for few samples.
        """
        if self.target is None:
            return not math.isnan(value)
        return self.loss(value) <= self.loss(self.target) * (1.0 + slack)


def check_goal(goal: Goal) -> None:
    """Refuse a goal that means nothing.

    Raises:
        GoalError: when the metric is unknown or the target out of its range.
    """
    if goal.metric not in METRICS:
        raise GoalError(f"metric {goal.metric[:40]!r} is not one of {', '.join(METRICS)}")
    if goal.target is None:
        return
    if not math.isfinite(goal.target) or (goal.metric == "cosine" and not -1.0 <= goal.target <= 1.0):
        raise GoalError(f"target {goal.target!r} is out of range for {goal.metric}")
    if goal.metric != "cosine" and goal.target < 0:
        raise GoalError(f"target {goal.target!r} of an error is below zero")


def measure_output(name: str, got: Array, reference: Array) -> dict[str, float]:
    """Return every metric over all samples of one output; NaN when one of both is not finite.

    Args:
        name: Output name.
        got: ``[N, ...]`` any numeric type.
        reference: ``[N, ...]`` with the same dimensions in the same order; dimensions of 1 may differ.

    Raises:
        ShapeMismatchError: when sample counts, sizes or the order of dimensions differ.
    """
    require_same_shape(name, got, reference)
    a, b = got.ravel().astype(np.float64), reference.ravel().astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return dict.fromkeys(METRICS, math.nan)
    difference = np.abs(a - b)
    return {
        "cosine": cosine_similarity(a, b),
        "max_abs": float(difference.max()),
        "mean_abs": float(difference.mean()),
        "rmse": math.sqrt(float(np.square(difference).mean())),
        "p99_abs": float(np.percentile(difference, 99)),
    }


def measure_outputs(got: Mapping[str, Array], reference: Mapping[str, Array]) -> Errors:
    """Return every metric of every output that has a reference; a single output is matched whatever its name.

    Raises:
        GoalError: when no output has a reference.
        ShapeMismatchError: when sample counts, sizes or the order of dimensions differ.
    """
    pairs = {name: (got[name], reference[name]) for name in got if name in reference}
    if not pairs and len(got) == 1 == len(reference):
        pairs = {next(iter(got)): (next(iter(got.values())), next(iter(reference.values())))}
    if not pairs:
        raise GoalError("the reference has none of the model's outputs")
    return {name: measure_output(name, a, b) for name, (a, b) in pairs.items()}


def judge(goal: Goal, errors: Errors) -> tuple[float, str]:
    """Return the goal's value and the output it was taken on.

    Args:
        goal: What to judge by.
        errors: Per output every metric.

    Raises:
        GoalError: when there is no output, or the goal names one that was not measured.
    """
    names = [goal.output] if goal.output else list(errors)
    if not names or any(name not in errors for name in names):
        raise GoalError(f"output {goal.output[:80]!r} has no reference")
    worst = max(names, key=lambda name: goal.loss(errors[name][goal.metric]))
    return errors[worst][goal.metric], worst
