from __future__ import annotations

import pytest
from boardlift.v1 import explore_pb2, toolchain_pb2

from boardlift_compiler.explore.report_sensitivity import cheapest_reaching, not_the_mixed_plan


def plan(reaches: bool, board_ms: float | None) -> explore_pb2.MixedPlan:
    made = explore_pb2.MixedPlan(reaches_target=reaches)
    if board_ms is not None:
        made.latency.figures.append(toolchain_pb2.Figure(name="board_ms", value=board_ms))
    return made


@pytest.mark.parametrize(
    ("int8", "int16", "mixed", "chosen"),
    [
        ((False, 0.8), (True, 0.4), (True, 0.37), "suggested"),
        ((False, 0.8), (True, 0.4), (True, 0.41), "int16"),
        ((True, 0.3), (True, 0.4), (True, 0.3), "int8"),
        ((False, 0.8), (False, 0.4), (False, 0.37), ""),
        ((False, 0.8), (True, 0.4), (False, 0.37), "int16"),
        ((False, 0.8), (True, 0.4), (True, None), "int16"),
    ],
)
def test_the_fastest_plan_that_reaches_the_target_is_suggested(int8, int16, mixed, chosen):
    plans = {"int8": plan(*int8), "int16": plan(*int16), "suggested": plan(*mixed)}
    assert cheapest_reaching(plans, built=True) == chosen


def test_the_mixed_plan_is_suggested_where_nothing_is_built():
    plans = {"int8": plan(False, None), "int16": plan(True, None), "suggested": plan(True, None)}
    assert cheapest_reaching(plans, built=False) == "suggested"
    assert cheapest_reaching({"int8": plans["int8"]}, built=False) == ""


@pytest.mark.parametrize(
    ("chosen", "nodes", "code"),
    [
        ("int8", (), "NO_INT16_NEEDED"),
        ("int16", ("a",), "MIXED_PLAN_SLOWER"),
        ("int16", (), "MIXED_PLAN_SLOWER"),
        ("", ("a",), "TARGET_NOT_PROVEN"),
    ],
)
def test_why_the_mixed_plan_is_not_the_one_to_take(chosen, nodes, code):
    finding = not_the_mixed_plan(chosen, nodes, implied=False)
    assert finding.code == code and ("mixed plan" in finding.message) is bool(nodes)
