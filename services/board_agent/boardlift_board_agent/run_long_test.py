"""Rounds of a long run last a few seconds whatever the model's speed."""

import pytest

from boardlift_board_agent.run_long import round_frames


@pytest.mark.parametrize(
    ("mean_ms", "threads", "frames"), [(3.0, 1, 1000), (3.0, 2, 2000), (100.0, 1, 30), (500.0, 1, 30), (0.3, 1, 10_000)]
)
def test_a_round_is_about_three_seconds_and_never_fewer_frames_than_settle(mean_ms, threads, frames) -> None:
    assert round_frames(mean_ms, threads) == frames


def test_an_unknown_speed_leaves_the_choice_to_the_plan() -> None:
    assert round_frames(0.0, 1) > 1_000_000
