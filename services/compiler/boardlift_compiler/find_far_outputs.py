"""Tell outputs that are far from the float model once their mean is taken out: a cosine does not show them; pure.

Found on random networks: an output between 0.51 and 0.54 at cosine 0.9999 whose integers held nothing of the signal
(-2 dB), a mean over a map at cosine 0.9997 and 2 dB.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from boardlift_compiler.compare_outputs import cosine_similarity
from boardlift_compiler.find_parting import LOSS_DB
from boardlift_compiler.findings import Finding

Array = npt.NDArray[np.generic]


def centred_db(got: Array, reference: Array) -> float:
    """Return the signal to noise in decibel over all elements; the signal is what is left without its mean.

    Args:
        got: ``[N, ...]``.
        reference: ``[N, ...]``, as many elements.

    Returns:
        inf when all are equal, -inf when the reference never changes, NaN when something is no number.
    """
    a, b = (v.astype(np.float64).ravel() for v in (got, reference))
    with np.errstate(invalid="ignore", over="ignore"):
        noise = float(np.square(a - b).sum())
        signal = float(np.square(b - b.mean()).sum())
    if noise == 0.0:
        return math.inf
    if math.isnan(noise) or math.isnan(signal) or math.isinf(noise):
        return math.nan
    return 10 * math.log10(signal / noise) if signal > 0.0 else -math.inf


def describe_constant_output(output: str, reference: Array) -> list[Finding]:
    """Return a warning when the float model gives the same for every sample: a comparison of it proves nothing.

    Args:
        output: Its name.
        reference: ``[N, ...]`` of the float model, several samples.
    """
    if (
        len(reference) < 2
        or not reference.size
        or not np.array_equal(reference, np.broadcast_to(reference[:1], reference.shape))
    ):
        return []
    values = reference[0].astype(np.float64).ravel()
    what = (
        f"{values[0]:.4g}"
        if np.ptp(values) == 0
        else f"{values.size} numbers from {values.min():.4g} to {values.max():.4g}"
    )
    text = (
        f"Output {output} of the float model is the same for all {len(reference)} samples ({what}): no figure of it"
        " says anything."
    )
    advice = "Look at the model's weights and at the samples; cut the output off where it is a constant."
    return [Finding("OUTPUT_CONSTANT", "warning", text, output, advice)]


def describe_far_output(output: str, got: Array, reference: Array) -> list[Finding]:
    """Return a warning when a float output changes and is below ``LOSS_DB``.

    Args:
        output: Its name.
        got: ``[N, ...]`` of the quantised model.
        reference: ``[N, ...]`` of the float model.
    """
    if reference.dtype.kind != "f" or got.size != reference.size or not got.size:
        return []
    value = centred_db(got, reference)
    if not math.isfinite(value) or value >= LOSS_DB:
        return []
    cosine = cosine_similarity(got.astype(np.float64).ravel(), reference.astype(np.float64).ravel())
    text = (
        f"Output {output} is at {value:.1f} dB of signal to noise without its mean, cosine {cosine:.4f}: it varies by"
        f" {float(reference.astype(np.float64).std()):.3g} around {float(reference.astype(np.float64).mean()):.3g}."
    )
    advice = "Take the findings of the compile first; if it has none, `boardlift sensitivity` finds the layer."
    return [Finding("OUTPUT_FAR_FROM_FLOAT", "warning", text, output, advice)]
