"""One cause at a time takes a board out of rotation, with its reason."""

import dataclasses

import pytest

from boardlift_board_agent.health import HealthLimits, RuntimeState, in_rotation, judge_health
from boardlift_board_agent.probe import BoardReading

FINE = BoardReading(
    cpu_c=52.0, bpu_c=53.0, ddr_c=51.0, cpu_mhz=1500, cpu_max_mhz=1500, bpu_mhz=1000, bpu_max_mhz=1000, bpu_ratio=0,
    governor="performance", boost=False, disk_free_bytes=8 << 30, memory_free_bytes=2 << 30,
)  # fmt: skip


def test_a_fine_board_has_nothing_to_say() -> None:
    assert judge_health(FINE, RuntimeState(), HealthLimits()) == []


def test_absent_readings_are_not_judged() -> None:
    assert in_rotation(judge_health(BoardReading(), RuntimeState(), HealthLimits()))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"bpu_c": 97.5}, "TOO_HOT"),
        ({"bpu_mhz": 500.0}, "THROTTLED"),
        ({"cpu_mhz": 600.0}, "THROTTLED"),
        ({"disk_free_bytes": 1 << 20}, "DISK_FULL"),
        ({"memory_free_bytes": 1 << 20}, "MEMORY_LOW"),
        ({"bpu_ratio": 80.0}, "BPU_SHARED"),
    ],
)
def test_each_reading_blocks(change: dict[str, float], code: str) -> None:
    facts = judge_health(dataclasses.replace(FINE, **change), RuntimeState(), HealthLimits())
    assert [f.code for f in facts if f.blocking] == [code]
    assert not in_rotation(facts)
    assert all(f.remedy for f in facts)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (RuntimeState(tool_present=False), "RUNTIME_MISSING"),
        (RuntimeState(skew=("3.15.47.0", "3.15.55.0")), "VERSION_SKEW"),
        (RuntimeState(foreign_processes=(4711,)), "BPU_SHARED"),
        (RuntimeState(failures_in_row=3), "BOARD_FAILING"),
        (RuntimeState(cloned=True), "IDENTITY_CLONED"),
        (RuntimeState(governor_stuck="the agent can't write the file"), "GOVERNOR_NOT_RESTORED"),
    ],
)
def test_each_runtime_state_blocks(state: RuntimeState, code: str) -> None:
    assert [f.code for f in judge_health(FINE, state, HealthLimits()) if f.blocking] == [code]


def test_own_load_is_not_somebody_elses() -> None:
    busy = dataclasses.replace(FINE, bpu_ratio=100.0)
    assert in_rotation(judge_health(busy, RuntimeState(), HealthLimits(), idle=False))


@pytest.mark.parametrize(
    ("governor", "codes"), [("simple_ondemand", ["GOVERNOR_OTHER"]), ("performance", ["THROTTLED"])]
)
def test_an_idle_bpu_whose_clock_follows_the_load_is_not_throttled(governor: str, codes: list[str]) -> None:
    reading = dataclasses.replace(FINE, bpu_mhz=500.0, bpu_governor=governor)
    assert [f.code for f in judge_health(reading, RuntimeState(), HealthLimits())] == codes


def test_governor_and_boost_are_notes_only() -> None:
    reading = dataclasses.replace(FINE, governor="schedutil", cpu_mhz=600.0, boost=True)
    facts = judge_health(reading, RuntimeState(), HealthLimits())
    assert [f.code for f in facts] == ["GOVERNOR_OTHER", "CPU_BOOSTED"]
    assert in_rotation(facts)
