from __future__ import annotations

import pytest

from boardlift_compiler.explore.judge import Goal
from boardlift_compiler.explore.measure_sensitivity import Sensitivity

LOSSES = (0.4, 0.22, 0.19, 0.1)


def measured(chosen: int | None) -> Sensitivity:
    rungs = [(k, {"out": {"rmse": loss, "cosine": 1 - loss}}) for k, loss in enumerate(LOSSES)]
    found = Sensitivity(goal=Goal("rmse", target=0.2), ladder=("a", "b", "c"), rungs=rungs, chosen=chosen)
    found.suggest = lambda form: None  # type: ignore[method-assign]  # what it writes is not asked here
    return found


@pytest.mark.parametrize(
    ("chosen", "slack", "nodes"),
    [
        (2, 0.15, ("a",)),  # 0.22 misses 0.2 by a tenth
        (2, 0.05, ("a", "b")),  # it misses by more than that: as the emulation chose
        (None, 0.0, ("a", "b")),
        (2, 1.5, ()),
    ],
)
def test_a_near_miss_of_the_emulation_is_suggested_first(chosen, slack, nodes):
    found = measured(chosen)
    found.aim_low(None, slack)  # type: ignore[arg-type]
    assert found.nodes == nodes


def test_climbing_ends_at_the_longest_plan():
    found = measured(2)
    assert found.climb(None) and found.nodes == ("a", "b", "c")  # type: ignore[arg-type]
    assert not found.climb(None)  # type: ignore[arg-type]
