from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boardlift_compiler.explore.judge import Goal
from boardlift_compiler.explore.plan_search import (
    Round,
    Score,
    choose_best,
    choose_survivors,
    order_within_form,
    pareto_front,
    plan_rounds,
)

COSINE = Goal("cosine")


def score(name: str, value: float, ms: float, form: str = "f") -> Score:
    return Score(name, form, value, ms)


@pytest.mark.parametrize(
    ("candidates", "calibration", "heldout", "expected"),
    [
        (4, 64, 64, [Round("O2", 4, 64, 64)]),
        (12, 64, 128, [Round("O1", 12, 8, 8), Round("O2", 6, 64, 128)]),
        (
            60,
            64,
            128,
            [Round("O1", 60, 8, 8), Round("O1", 20, 24, 24), Round("O1", 7, 64, 72), Round("O2", 6, 64, 128)],
        ),
        (12, 4, 6, [Round("O1", 12, 4, 6), Round("O2", 6, 4, 6)]),
    ],
)
def test_rounds(candidates, calibration, heldout, expected):
    assert plan_rounds(candidates, calibration, heldout) == expected


@given(
    st.integers(1, 200),
    st.integers(1, 500),
    st.integers(1, 500),
    st.integers(1, 6),
    st.integers(1, 64),
    st.integers(2, 10),
    st.integers(1, 20),
)
def test_rounds_always_end_with_all_samples_and_few_candidates(
    n, calibration, heldout, forms, first, factor, finalists
):
    rounds = plan_rounds(n, calibration, heldout, forms=forms, first=first, factor=factor, finalists=finalists)
    assert rounds[-1].final and not any(r.final for r in rounds[:-1])
    assert (rounds[-1].calibration, rounds[-1].heldout) == (calibration, heldout)
    assert rounds[-1].candidates <= max(finalists, forms)
    sizes = [r.candidates for r in rounds]
    assert sizes[0] == n and sizes == sorted(sizes, reverse=True)


def test_front_holds_what_nothing_beats_in_both():
    scores = [score("slow-good", 0.999, 3.0), score("fast-bad", 0.9, 1.0), score("beaten", 0.9, 2.0)]
    scores.append(score("broken", math.nan, 0.1))
    assert [s.name for s in pareto_front(scores, COSINE)] == ["fast-bad", "slow-good"]


def test_best_and_fastest_stay_even_when_few_may():
    scores = [score("a", 0.99, 3.0), score("b", 0.98, 2.0), score("c", 0.97, 1.5), score("d", 0.9, 1.0)]
    assert choose_survivors(scores, 2, COSINE) == ["a", "d"]


def test_every_form_keeps_one_since_previews_mislead_between_forms():
    scores = [score(f"x{i}", 0.99, 1.0 + i / 10, "x") for i in range(4)] + [score("y", 0.98, 9.0, "y")]
    assert "y" in choose_survivors(scores, 2, COSINE)


def test_who_reaches_the_target_comes_before_who_is_fast():
    goal = Goal("max_abs", target=0.1)
    scores = [score("fast", 0.5, 1.0), score("near", 0.14, 2.0), score("good", 0.05, 3.0)]
    assert [s.name for s in order_within_form(scores, goal)][-1] == "fast"


@pytest.mark.parametrize(
    ("goal", "best"),
    [(COSINE, "slow"), (Goal("cosine", target=0.95), "fast"), (Goal("cosine", target=0.9999), "")],
)
def test_best_is_the_fastest_that_is_good_enough(goal, best):
    assert choose_best([score("slow", 0.999, 3.0), score("fast", 0.96, 1.0)], goal) == best


def test_without_a_target_a_hair_of_accuracy_does_not_buy_slowness():
    assert choose_best([score("slow", 0.99901, 3.0), score("fast", 0.99900, 1.0)], COSINE) == "fast"


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10), st.sampled_from("xyz")), min_size=1, max_size=30))
def test_order_loses_nobody(items):
    scores = [Score(f"c{k}", form, value, ms) for k, (value, ms, form) in enumerate(items)]
    everybody = choose_survivors(scores, len(scores), COSINE)
    assert sorted(everybody) == sorted(s.name for s in scores)
