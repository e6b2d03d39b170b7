"""Tell values beyond the calibrated range from quantisation loss: they saturate, and more bits do not help; pure.

Found on random networks: outputs at 16 to 21 dB of signal to noise, in int8 and int16 alike, where one of four held-out
samples held all of the noise (37, 47, 17 and 36 dB). A low cosine then says something about the samples, not the bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from boardlift_compiler.findings import Finding

Array = npt.NDArray[np.generic]
SHARE = 0.5
"""Least share of the squared error that values at the output's limits must have."""
FACTOR = 30.0
"""How many times the median error a sample outside the calibrated range has."""
QUIET = 1e-3
"""Squared error in proportion to the signal, 30 dB, below which nothing is said."""
ENOUGH = 4
"""Samples from which on one can be told from the others."""
ADVICE = "Calibrate with samples that reach as far (more of them, or these); int16 does not help."


def describe_saturation(output: str, got: Array, reference: Array) -> list[Finding]:
    """Return a warning when an output stops at a limit that the reference passes, or one sample has most of the noise.

    Args:
        output: Its name.
        got: ``[N, ...]`` of the quantised model.
        reference: ``[N, ...]`` of the float model, as many elements.
    """
    a = got.reshape(len(got), -1).astype(np.float64)
    b = reference.reshape(len(reference), -1).astype(np.float64)
    if a.shape != b.shape or not a.size or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return []
    noise = np.square(a - b)
    signal = float(np.square(b - b.mean()).sum())
    if float(noise.sum()) <= QUIET * signal or signal == 0.0:
        return []
    top, bottom = float(a.max()), float(a.min())
    at_limit = ((a >= top) & (b > top)) | ((a <= bottom) & (b < bottom))
    if float(noise[at_limit].sum()) >= SHARE * float(noise.sum()):
        text = (
            f"Output {output} stops at {bottom:.4g} and {top:.4g}, the float model reaches {b.min():.4g} and"
            f" {b.max():.4g}; {float(noise[at_limit].sum() / noise.sum()):.0%} of the squared error lies there."
        )
        return [Finding("OUTPUT_SATURATES", "warning", text, output, ADVICE)]
    per_sample = noise.mean(axis=1)
    worst, median = int(np.argmax(per_sample)), float(np.median(per_sample))
    if len(a) >= ENOUGH and float(per_sample[worst]) > FACTOR * median:
        share = float(per_sample[worst] / per_sample.sum())
        text = (
            f"Output {output}: sample {worst} has {share:.0%} of the squared error of {len(a)} samples; it"
            " probably lies outside the range that calibration saw."
        )
        return [Finding("SAMPLE_OUTSIDE_CALIBRATION", "warning", text, output, ADVICE)]
    return []
