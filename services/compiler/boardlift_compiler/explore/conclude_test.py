from __future__ import annotations

import re

from boardlift_compiler.explore.conclude import Shown, conclude
from boardlift_compiler.explore.judge import Goal
from boardlift_compiler.explore.plan_search import Score

GOAL = Goal("cosine")


def shown(form: str, plan: str, value: float, ms: float, subgraphs: int, us: float, number: int = 0) -> Shown:
    level = "O1" if number == 0 else "O2"
    return Shown(Score(f"{form}/{plan}/max", form, value, ms), plan, subgraphs, us, level, number)


def test_int16_beats_an_int8_that_is_split():
    found = conclude([[shown("a", "int8", 0.98, 1.6, 2, 364), shown("a", "int16", 0.99, 0.9, 1, 464)]], "a", GOAL)
    assert [f.code for f in found] == ["INT16_BEATS_SPLIT_INT8"]
    assert "364.0 us (estimated) in 2 subgraphs" in found[0].message and found[0].remedy == "Use a/int16/max."


def test_every_figure_in_a_text_carries_its_kind():
    split = [shown("a", "int8", 0.98, 1.6, 2, 364), shown("a", "int16", 0.99, 0.9, 1, 464)]
    forms = [shown("grouped", "int16", 0.9988, 1.07, 2, 310, 1), shown("dense", "int16", 0.9988, 0.63, 1, 363, 1)]
    texts = [f.message for f in (*conclude([split], "a", GOAL), *conclude([forms], "grouped", GOAL))]
    assert len(texts) == 2
    for text in texts:
        figures = re.findall(r"[\d.]+ (?:us|ms)\b|cosine [\d.]+", text)
        assert len(figures) == 6
        for figure in figures:
            kind = "simulated" if figure.startswith("cosine") else "estimated"
            assert f"{figure} ({kind})" in text


def test_an_int8_that_is_whole_or_better_is_left_alone():
    whole = [shown("a", "int8", 0.98, 0.5, 1, 364), shown("a", "int16", 0.99, 0.9, 1, 464)]
    better = [shown("a", "int8", 0.99, 1.6, 2, 364), shown("a", "int16", 0.98, 0.9, 1, 464)]
    assert conclude([whole], "a", GOAL) == [] == conclude([better], "a", GOAL)


def test_the_last_round_in_which_both_took_part_counts():
    first = [shown("a", "int8", 0.98, 1.6, 2, 364), shown("a", "int16", 0.99, 0.9, 1, 464)]
    found = conclude([first, [shown("a", "int16", 0.995, 0.8, 1, 400, 1)]], "a", GOAL)
    assert "(O1)" in found[0].message


def test_a_form_wins_although_its_own_estimate_is_higher():
    last = [shown("grouped", "int16", 0.9988, 1.07, 2, 310, 1), shown("dense", "int16", 0.9988, 0.63, 1, 363, 1)]
    found = conclude([last], "grouped", GOAL)
    assert [f.code for f in found] == ["FORM_BEATS_BASELINE"]
    assert "although the compiler's own estimate is higher" in found[0].message


def test_a_form_that_is_faster_and_worse_does_not_win():
    last = [shown("grouped", "int16", 0.9988, 1.07, 2, 310, 1), shown("dense", "int16", 0.95, 0.63, 1, 363, 1)]
    assert conclude([last], "grouped", GOAL) == []
