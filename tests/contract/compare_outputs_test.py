"""The same word means the same figure in every service.

Compiler, board agent and transform each compare outputs by a module of their own, since services do not import each
other; a gate reads their figures by name, so the names must agree on every number.
"""

import math

import numpy as np
import pytest
from boardlift_board_agent import compare_outputs as board
from boardlift_compiler import compare_outputs as compiler
from boardlift_transform import equivalence

RNG = np.random.default_rng(7)
SHARED_BY_ALL = ("cosine", "max_abs", "mean_abs")
BIG = RNG.normal(size=(6, 12))
CASES = {
    "close": (BIG + RNG.normal(size=BIG.shape) * 1e-3, BIG),
    "far": (RNG.normal(size=(4, 3, 5, 2)), RNG.normal(size=(4, 3, 5, 2))),
    "equal": (BIG, BIG),
    "one sample": (BIG[:1], -BIG[:1]),
    "both zero": (np.zeros((2, 3)), np.zeros((2, 3))),
    "reference zero": (np.ones((2, 3)), np.zeros((2, 3))),
    "integers": (RNG.integers(-9, 9, (3, 4)), RNG.integers(-9, 9, (3, 4))),
}


def figures_of_all(got, want):
    """(compiler, board agent, transform): figures by name."""
    # The transform's own entry takes one array per sample.
    proven = equivalence.compare_output("y", list(want), list(got), 0.0)
    return (
        compiler.compare_output("y", got, want).figures(),
        board.compare_output("y", got, want).figures,
        {name: getattr(proven, name) for name in SHARED_BY_ALL},
    )


@pytest.mark.parametrize("name", CASES)
def test_equal_names_are_equal_figures(name):
    ours, theirs, proven = figures_of_all(*CASES[name])
    assert set(ours) <= set(theirs)
    for figure, value in ours.items():
        assert theirs[figure] == pytest.approx(value, rel=1e-12, abs=1e-15), figure
    for figure, value in proven.items():
        assert ours[figure] == pytest.approx(value, rel=1e-12, abs=1e-15), figure


@pytest.mark.parametrize("name", CASES)
def test_the_figures_are_those_that_the_names_say(name):
    got, want = (a.reshape(len(a), -1).astype(float) for a in CASES[name])
    ours, _, _ = figures_of_all(*CASES[name])
    difference = np.abs(got - want)
    norms = np.linalg.norm(got) * np.linalg.norm(want)
    assert ours["max_abs"] == ours["chebyshev"] == difference.max()
    assert ours["mean_abs"] == ours["l1"] == pytest.approx(difference.mean())
    assert ours["l2"] == pytest.approx(np.mean([np.linalg.norm(row) / row.size for row in difference]))
    assert ours["rmse"] == pytest.approx(math.sqrt(np.square(difference).mean()))
    expected = (got.ravel() @ want.ravel()) / norms if norms else float(not difference.any())
    assert ours["cosine"] == pytest.approx(expected)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_never_taken_for_agreement(bad):
    got = BIG.copy()
    got[3, 2] = bad
    ours, theirs, proven = figures_of_all(got, BIG)
    for figure in SHARED_BY_ALL[1:]:
        assert not math.isfinite(ours[figure])
        assert not math.isfinite(theirs[figure])
        assert not math.isfinite(proven[figure])
