from __future__ import annotations

import pytest

from boardlift_compiler.explore.choose_plan import (
    Layer,
    build_ladder,
    clipped_layers,
    first_reaching,
    implied_target,
    layer_costs,
    model_node_of,
    rank_layers,
    rungs,
)
from boardlift_compiler.explore.judge import Goal

GOAL = Goal("rmse")


def errors(rmse: float) -> dict[str, dict[str, float]]:
    return {"out": {"rmse": rmse, "cosine": 1 - rmse}}


def layer(name: str, int8: float, int16: float, cost: float | None, node: str | None = None) -> Layer:
    return Layer(name, "Conv", name if node is None else node, errors(int8), errors(int16), {}, cost)


def test_order_is_by_error_taken_away_per_microsecond():
    layers = [layer("dear", 0.5, 0.0, 50.0), layer("cheap", 0.4, 0.0, 1.0), layer("free", 0.1, 0.0, 0.0)]
    assert build_ladder(layers, GOAL).order == ("free", "cheap", "dear")
    assert [x.node for x in rank_layers(layers, GOAL)] == ["dear", "cheap", "free"]


def test_layers_that_cannot_be_named_or_gain_nothing_are_left_out():
    layers = [layer("a", 0.4, 0.1, 1.0), layer("inserted", 0.5, 0.0, 1.0, ""), layer("clipped", 0.5, 0.5, 1.0)]
    assert build_ladder(layers, GOAL).order == ("a",)


def test_rows_of_one_node_go_together():
    layers = [layer("s_sub_FROM_QUANTIZED_SOFTMAX", 0.3, 0.0, 1.0, "s"), layer("s_exp", 0.3, 0.0, None, "s")]
    ladder = build_ladder(layers, GOAL)
    assert ladder.order == ("s",)
    assert ladder.layers_of(1) == ["s_sub_FROM_QUANTIZED_SOFTMAX", "s_exp"]


def test_unknown_costs_count_as_typical_ones():
    layers = [layer("a", 0.4, 0.0, 4.0), layer("b", 0.4, 0.0, None), layer("c", 0.4, 0.0, 2.0)]
    assert build_ladder(layers, GOAL).order == ("c", "b", "a")


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("conv", "conv"),
        ("gate_softmax_reducemax_FROM_QUANTIZED_SOFTMAX", "gate_softmax"),
        ("conv_pre_reshape", ""),
        ("other_mul_FROM_QUANTIZED_SOFTMAX", ""),
    ],
)
def test_model_node_of(name, node):
    assert model_node_of(name, ["conv", "gate_softmax"]) == node


def test_costs_are_differences_of_what_both_builds_list():
    assert layer_costs({"a": 3.0, "b": 5.0, "c": 1.0}, {"a": 7.5, "b": 4.0}) == {"a": 4.5, "b": 0.0}


@pytest.mark.parametrize(("count", "expected"), [(0, []), (3, [1, 2, 3]), (40, 16)])
def test_rungs(count, expected):
    lengths = rungs(count)
    assert (len(lengths) == expected and lengths[-1] == count) if isinstance(expected, int) else lengths == expected


def test_shortest_plan_that_reaches_the_target():
    goal = Goal("rmse", target=0.2)
    assert first_reaching(goal, [errors(0.5), errors(0.2), errors(0.1)]) == 1
    assert first_reaching(goal, [errors(0.5)]) is None


def test_without_a_target_nine_tenths_of_the_way_to_int16_are_wanted():
    assert implied_target(GOAL, errors(1.0), errors(0.1)).target == pytest.approx(0.19)
    assert implied_target(Goal("cosine"), errors(0.1), errors(0.0)).target == pytest.approx(0.99)
    assert implied_target(Goal("rmse", target=0.5), errors(1.0), errors(0.1)).target == 0.5


def test_layers_that_int16_does_not_help_are_named():
    layers = [layer("clipped", 0.5, 0.45, 1.0), layer("good", 0.5, 0.01, 1.0), layer("small", 0.01, 0.01, 1.0)]
    assert [x.node for x in clipped_layers(layers, GOAL)] == ["clipped"]
