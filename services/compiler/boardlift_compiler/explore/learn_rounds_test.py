from __future__ import annotations

import pytest

from boardlift_compiler.explore.learn_rounds import MOST, MOST_FACTOR, RoundTimes


def test_the_median_of_the_last_rounds_corrects_the_next(tmp_path):
    times = RoundTimes(tmp_path / "rounds.json")
    assert times.factor("O1") == 1.0
    for took in (20.0, 15.0, 90.0):
        times.add("O1", 10.0, took)
    times.add("O2", 0.0, 5.0)  # nothing was built
    assert RoundTimes(tmp_path / "rounds.json").factor("O1") == pytest.approx(2.0)
    assert times.factor("O2") == 1.0
    for _ in range(MOST):
        times.add("O1", 1.0, 1000.0)
    assert times.factor("O1") == MOST_FACTOR


@pytest.mark.parametrize("text", ["", "[]", '{"O1": "x"}', '{"O1": [null]}'])
def test_a_damaged_file_is_no_knowledge(tmp_path, text):
    path = tmp_path / "rounds.json"
    path.write_text(text)
    assert RoundTimes(path).factor("O1") == 1.0
    RoundTimes(path).add("O1", 1.0, 2.0)
    assert RoundTimes(path).factor("O1") == 2.0


def test_a_file_that_cannot_be_written_costs_a_guess_only(tmp_path):
    (tmp_path / "rounds.json").mkdir()
    RoundTimes(tmp_path / "rounds.json").add("O1", 1.0, 2.0)
    assert RoundTimes(tmp_path / "rounds.json").factor("O1") == 1.0
