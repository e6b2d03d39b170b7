from __future__ import annotations

import pytest
from boardlift.v1 import toolchain_pb2
from boardlift_servicekit.executions import Emitter

from boardlift_compiler.explore.tell_remaining import Pace


def pace(expected: float | None, elapsed: float) -> tuple[Pace, list[toolchain_pb2.Progress]]:
    events: list[toolchain_pb2.Progress] = []
    times = iter([0.0, *[elapsed] * 9])
    return Pace(Emitter(events.append), expected, lambda: next(times)), events


@pytest.mark.parametrize(
    ("expected", "elapsed", "fraction", "left"),
    [
        (100.0, 0.0, 0.0, 100.0),  # nothing done: the prediction
        (100.0, 90.0, 0.9, 10.0),  # as predicted
        (100.0, 180.0, 0.9, 19.0),  # twice as slow: mostly its own pace
        (None, 30.0, 0.25, 90.0),
        (None, 30.0, 0.01, None),
        (None, 30.0, 0.0, None),
    ],
)
def test_prediction_first_pace_later(expected, elapsed, fraction, left):
    assert pace(expected, elapsed)[0].remaining_s(fraction) == (None if left is None else pytest.approx(left))


def test_progress_carries_it():
    said, events = pace(None, 30.0)
    said("measure layers", 0.25, 1, 4)
    said("measure layers", 0.0)
    assert events[0].remaining_duration.ToSeconds() == 90 and (events[0].done, events[0].total) == (1, 4)
    assert not events[1].HasField("remaining_duration")
