"""Latency samples -> percentiles, jitter, confidence interval of the median, stable or not. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from boardlift.errors import InvalidInputError
from numpy.typing import NDArray

TIGHT = 0.01
"""Half width of the median's interval, relative to the median, from which on a result counts as tight."""
FEWEST = 30
"""Fewer frames than this settle nothing."""
DRIFT = 0.03
"""Largest relative difference between the medians of the two halves of a stable run."""
_Z = 1.959964


@dataclass(frozen=True)
class LatencyStatistics:
    """Figures of one series of latencies, in milliseconds."""

    count: int
    mean_ms: float
    min_ms: float
    max_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    jitter_ms: float
    """p99 - p50."""
    deviation_ms: float
    """Standard deviation."""
    ci_low_ms: float
    """Lower end of the 95 % confidence interval of the median."""
    ci_high_ms: float
    """Upper end of it."""
    drift: float
    """Relative difference between the medians of the second and the first half, of the whole or of the worst round."""
    stable: bool
    """Tight interval and no drift."""

    @property
    def why_unstable(self) -> str:
        """One sentence, empty when stable."""
        if self.stable:
            return ""
        if self.count < FEWEST:
            return f"{self.count} frames are too few, {FEWEST} are needed."
        if abs(self.drift) > DRIFT:
            word = "slower" if self.drift > 0 else "faster"
            return f"The second half of the run is {abs(self.drift):.1%} {word} than the first."
        half = (self.ci_high_ms - self.ci_low_ms) / 2 / self.p50_ms
        return f"The median is known to {half:.1%} only, {TIGHT:.0%} is asked for."


def summarize(samples_ms: NDArray[np.float64], round_frames: int = 0) -> LatencyStatistics:
    """Works out all figures.

    Args:
        samples_ms: latencies in the order they were taken, float64 [n], n >= 1, positive and finite.
        round_frames: length of the rounds they were taken in; drift is looked for inside each, too. 0 for one round.

    Returns:
        The figures. The interval uses order statistics, so it assumes no distribution; with autocorrelated samples
        it is widened by the number of independent blocks seen.

    Raises:
        InvalidInputError: LATENCY_SAMPLES_INVALID.
    """
    samples = np.asarray(samples_ms, np.float64)
    if samples.ndim != 1 or samples.size == 0 or not np.isfinite(samples).all() or (samples <= 0).any():
        raise InvalidInputError(
            "Latency samples must be positive numbers.",
            reason="LATENCY_SAMPLES_INVALID",
            remedy="Measure again; the clock must not go backwards.",
        )
    low, high = _median_interval(samples)
    p50, p90, p99, p999 = (float(v) for v in np.percentile(samples, [50, 90, 99, 99.9]))
    rounds = (
        [samples[i : i + round_frames] for i in range(0, samples.size, round_frames)] if round_frames >= 100 else []
    )
    drift = max((_drift(part) for part in (samples, *rounds)), key=abs)
    tight = (high - low) / 2 <= TIGHT * p50
    return LatencyStatistics(
        count=int(samples.size),
        mean_ms=float(samples.mean()),
        min_ms=float(samples.min()),
        max_ms=float(samples.max()),
        p50_ms=p50,
        p90_ms=p90,
        p99_ms=p99,
        p999_ms=p999,
        jitter_ms=p99 - p50,
        deviation_ms=float(samples.std(ddof=1)) if samples.size > 1 else 0.0,
        ci_low_ms=low,
        ci_high_ms=high,
        drift=drift,
        stable=bool(tight and abs(drift) <= DRIFT and samples.size >= FEWEST),
    )


def _drift(samples: NDArray[np.float64]) -> float:
    half = samples.size // 2
    return float(np.median(samples[half:]) / np.median(samples[:half]) - 1) if half else 0.0


def _median_interval(samples: NDArray[np.float64]) -> tuple[float, float]:
    ordered = np.sort(samples)
    n = samples.size
    reach = _Z * math.sqrt(n) / 2 * math.sqrt(_variance_inflation(samples))
    low = max(0, math.floor(n / 2 - reach))
    high = min(n - 1, math.ceil(n / 2 + reach))
    return float(ordered[low]), float(ordered[high])


def _variance_inflation(samples: NDArray[np.float64]) -> float:
    """How much autocorrelation widens the interval: variance of block means against that of independent samples."""
    blocks = 20
    length = samples.size // blocks
    if length < 5:
        return 1.0
    above = (samples > np.median(samples)).astype(float)
    means = above[: blocks * length].reshape(blocks, length).mean(1)
    expected = 0.25 / length
    return float(max(1.0, means.var(ddof=1) / expected))


def compare_rounds(first_ms: NDArray[np.float64], second_ms: NDArray[np.float64]) -> tuple[float, float, float]:
    """Interleaved A/B: medians of rounds A1 B1 A2 B2 ... -> relative difference B against A with its interval.

    Pairs stand side by side in time, so a drift of the board moves both and drops out of their ratio.

    Args:
        first_ms: median per round of A, float64 [r], r >= 2.
        second_ms: median per round of B, same length.

    Returns:
        (difference, low, high), relative to A; negative means that B is faster. The interval is Student's, 95 %, on
        the logarithms of the pairs' ratios.

    Raises:
        InvalidInputError: AB_ROUNDS_INVALID.
    """
    if first_ms.shape != second_ms.shape or first_ms.size < 2:
        raise InvalidInputError(
            "An A/B comparison needs at least two pairs.",
            reason="AB_ROUNDS_INVALID",
            remedy="Ask for two rounds or more.",
        )
    logs = np.log(second_ms / first_ms)
    reach = _student(logs.size - 1) * float(logs.std(ddof=1)) / math.sqrt(logs.size)
    middle = float(logs.mean())
    return math.expm1(middle), math.expm1(middle - reach), math.expm1(middle + reach)


def _student(degrees: int) -> float:
    table = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    return table[degrees - 1] if degrees <= len(table) else _Z * (1 + 1.2 / degrees)
