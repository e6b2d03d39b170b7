"""Numbers out of range are refused, never trimmed; infinite figures arrive, only an exact match's SQNR does not."""

import math

import numpy as np
import pytest
from boardlift.errors import InvalidInputError
from boardlift.v1 import board_agent_pb2

from boardlift_board_agent.compare_outputs import compare_output
from boardlift_board_agent.convert import comparison_message, plan_from
from boardlift_board_agent.measure_latency import LatencyPlan

Perf = board_agent_pb2.PerfSpec


def perf(**durations: int) -> Perf:
    spec = Perf()
    for name, seconds in durations.items():
        getattr(spec, name).FromSeconds(seconds)
    return spec


def test_an_empty_request_means_the_defaults() -> None:
    assert plan_from(Perf()) == LatencyPlan(50, 1000, (1, 2), 60.0, 0.0)
    assert plan_from(Perf(threads=[8, 1, 8], frames=5)).threads == (1, 8)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (Perf(threads=[1, 9]), "perf.threads"),
        (Perf(threads=[0]), "perf.threads"),
        (Perf(frames=-1), "perf.frames"),
        (Perf(frames=1_000_001), "perf.frames"),
        (Perf(warmup_frames=100_001), "perf.warmup_frames"),
        (perf(limit_duration=0), "perf.limit_duration"),
        (perf(limit_duration=3601), "perf.limit_duration"),
        (perf(sustained_duration=-1), "perf.sustained_duration"),
        (perf(sustained_duration=7200), "perf.sustained_duration"),
    ],
)
def test_what_is_out_of_range_is_refused_by_its_field(spec: Perf, field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        plan_from(spec)
    assert (caught.value.reason, caught.value.metadata["field"]) == ("REQUEST_OUT_OF_RANGE", field)


def figures(got: list[float], reference: list[float]) -> dict[str, float]:
    pair = (np.array([values], np.float32) for values in (got, reference))
    message = comparison_message(compare_output("y", *pair), False, "board")
    return {f.name: f.value for f in message.figures}


def test_only_the_infinite_sqnr_of_equal_outputs_is_left_out() -> None:
    assert "sqnr_db" not in figures([1, 2], [1, 2])
    found = figures([math.inf, 2], [1, 2])
    assert found["max_abs"] == math.inf and found["sqnr_db"] == -math.inf
    assert math.isnan(figures([math.nan, 2], [1, 2])["max_abs"])
