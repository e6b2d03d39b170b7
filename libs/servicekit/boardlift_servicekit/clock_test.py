from __future__ import annotations

import time

import pytest

from boardlift_servicekit import clock
from boardlift_servicekit.clock import ClockWatch


def test_a_clock_that_was_set_is_noticed_and_time_that_passes_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    real, asleep, ahead = time.time, 0.0, 0.0

    class Clocks:
        CLOCK_BOOTTIME = time.CLOCK_BOOTTIME

        @staticmethod
        def time() -> float:
            return real() + asleep + ahead

        @staticmethod
        def clock_gettime(which: int) -> float:
            return time.clock_gettime(which) + asleep

    monkeypatch.setattr(clock, "time", Clocks)
    watch = ClockWatch()
    asleep = 86400.0
    assert abs(watch.jumped_s()) < 1
    ahead = -7200.0
    assert -7201 < watch.jumped_s() < -7199
