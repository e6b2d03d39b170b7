"""Is the calibration data why the quantised model is wrong? Pure."""

from __future__ import annotations

import numpy as np

from boardlift_board_agent.diagnosis.evidence import Array, Diagnosis, Evidence

RATIO = 8.0
"""Spread of calibration and samples may differ by this factor."""
FEW = 20
"""Fewer calibration samples than this are few."""
OUTSIDE = 0.005
"""Share of the samples' values outside the calibration's range that is too much."""


def judge_calibration(e: Evidence, seen: str) -> list[Diagnosis]:
    """Compares calibration data with the samples the model really gets, input by input.

    Args:
        e: `calibration` and `samples`.
        seen: what made us look, for the evidence.
    """
    found = []
    for name, data in e.calibration.items():
        if name not in e.samples:
            continue
        sample, data = np.asarray(e.samples[name], np.float64), np.asarray(data, np.float64)
        found += [*_broken(name, data, seen), *_range(name, data, sample, seen), *_amount(name, data, sample, seen)]
    return found


def _broken(name: str, data: Array, seen: str) -> list[Diagnosis]:
    if np.isfinite(data).all() and data.std() > 0:
        return []
    what = "NaN or infinite values" if not np.isfinite(data).all() else "one constant value"
    text = f"The calibration data of {name} holds {what}."
    return [
        Diagnosis(
            "calibration-data-broken", "calibration", 0.98, text, "Make the calibration data anew.", name, (seen,)
        )
    ]


def _range(name: str, data: Array, sample: Array, seen: str) -> list[Diagnosis]:
    if not np.isfinite(data).all() or data.std() == 0 or sample.std() == 0:
        return []
    ratio = float(data.std() / sample.std())
    shift = float(abs(data.mean() - sample.mean()) / max(data.std(), sample.std()))
    if 1 / RATIO < ratio < RATIO and shift < 3:
        return []
    near = (
        " (about 255: not normalised)" if 150 < ratio < 400 else " (about 1/255)" if 1 / 400 < ratio < 1 / 150 else ""
    )
    text = (
        f"Calibration data of {name} is not scaled like the real inputs: its spread is {ratio:.3g} times theirs{near}."
    )
    facts = (
        seen,
        f"Calibration {data.min():.3g} to {data.max():.3g}, samples {sample.min():.3g} to {sample.max():.3g}",
    )
    step = "Prepare calibration data with the very code that prepares the real inputs."
    return [Diagnosis("calibration-not-normalised", "calibration", 0.95, text, step, name, facts)]


def _amount(name: str, data: Array, sample: Array, seen: str) -> list[Diagnosis]:
    if not np.isfinite(data).all() or len(data) >= FEW:
        return []
    outside = float(((sample < data.min()) | (sample > data.max())).mean())
    if outside < OUTSIDE:
        return []
    text = f"{len(data)} calibration samples do not cover {name}: {outside:.1%} of the real values lie outside."
    step = "Use 50 to 100 samples that cover everything the robot meets."
    return [Diagnosis("calibration-too-few", "calibration", 0.8, text, step, name, (seen, f"{len(data)} samples"))]
