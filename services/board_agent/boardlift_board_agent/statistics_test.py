"""Percentiles of known distributions, honest intervals, instability named."""

import numpy as np
import pytest
from boardlift.errors import InvalidInputError

from boardlift_board_agent.statistics import compare_rounds, summarize


def lognormal(n: int, sigma: float, seed: int = 0) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).standard_normal(n) * sigma)


def test_percentiles_of_a_known_distribution() -> None:
    got = summarize(lognormal(100_000, 0.1))
    assert got.p50_ms == pytest.approx(1.0, rel=0.002)
    assert got.p90_ms == pytest.approx(np.exp(1.2816 * 0.1), rel=0.005)
    assert got.p99_ms == pytest.approx(np.exp(2.3263 * 0.1), rel=0.01)
    assert got.p999_ms == pytest.approx(np.exp(3.0902 * 0.1), rel=0.02)
    assert got.stable
    assert got.why_unstable == ""


def test_interval_covers_the_median_about_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(400):
        got = summarize(lognormal(200, 0.2, seed))
        covered += got.ci_low_ms <= 1.0 <= got.ci_high_ms
    assert covered / 400 >= 0.93


def test_interval_widens_when_samples_hang_together() -> None:
    rng = np.random.default_rng(1)
    walk = np.exp(0.05 * np.repeat(rng.standard_normal(50), 40))
    loose = summarize(walk)
    tight = summarize(rng.permutation(walk))
    assert loose.ci_high_ms - loose.ci_low_ms > 1.5 * (tight.ci_high_ms - tight.ci_low_ms)


def test_drift_is_unstable_and_said_so() -> None:
    samples = lognormal(1000, 0.01)
    samples[500:] *= 2
    got = summarize(samples)
    assert not got.stable
    assert "99.9%" in got.why_unstable
    assert "slower" in got.why_unstable


def test_wide_jitter_is_unstable() -> None:
    got = summarize(lognormal(100, 0.5))
    assert not got.stable
    assert "known to" in got.why_unstable


@pytest.mark.parametrize("bad", [[], [0.0], [float("nan")], [-1.0], [[1.0]]])
def test_senseless_samples_are_refused(bad: list[float]) -> None:
    with pytest.raises(InvalidInputError):
        summarize(np.array(bad))


def test_interleaved_rounds_find_a_small_difference_under_drift() -> None:
    rng = np.random.default_rng(2)
    drift = np.linspace(1.0, 1.5, 20)
    a = drift * np.exp(rng.standard_normal(20) * 0.003)
    b = drift * 0.98 * np.exp(rng.standard_normal(20) * 0.003)
    difference, low, high = compare_rounds(a, b)
    assert low < difference < high < 0
    assert difference == pytest.approx(-0.02, abs=0.004)


def test_equal_rounds_are_undecided() -> None:
    rng = np.random.default_rng(3)
    a, b = (np.exp(rng.standard_normal(10) * 0.01) for _ in range(2))
    _, low, high = compare_rounds(a, b)
    assert low < 0 < high


def test_drift_inside_every_round_is_seen() -> None:
    rounds = [np.concatenate([lognormal(200, 0.01, s), 2 * lognormal(200, 0.01, s + 9)]) for s in range(3)]
    got = summarize(np.concatenate(rounds), 400)
    assert not got.stable
    assert "slower" in got.why_unstable


def test_too_few_frames_are_called_too_few() -> None:
    found = summarize(np.full(12, 1.5))
    assert not found.stable and "12 frames are too few" in found.why_unstable
