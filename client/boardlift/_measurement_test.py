from __future__ import annotations

from boardlift._measurement import perf_spec
from boardlift.v1 import board_agent_pb2


def test_nothing_asked_for_leaves_everything_to_the_board():
    assert perf_spec(0, (), "", 0.0) == board_agent_pb2.PerfSpec()


def test_everything_asked_for_arrives():
    spec = perf_spec(500, (1, 4), "performance", 90.5)
    assert (spec.frames, list(spec.threads), spec.governor) == (500, [1, 4], "performance")
    assert spec.sustained_duration.ToMilliseconds() == 90_500
