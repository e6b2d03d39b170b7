"""Board against a reference: figures per output over all samples. Pure.

`l1` is the mean absolute difference, `l2` the mean over samples of norm / elements, `chebyshev` the largest absolute
difference: the vendor's own definitions, here against the user's model and on held-out samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_TOP_CLASSES = 10


@dataclass(frozen=True)
class OutputDifference:
    """One output against its reference."""

    output: str
    samples: int
    figures: dict[str, float]
    """By name: cosine, cosine_min, l1, l2, chebyshev, max_abs, mean_abs, rmse, sqnr_db, equal_share; top1_agreement
    for scores."""
    worst_sample: int
    """Sample with the largest absolute difference."""

    @property
    def bit_equal(self) -> bool:
        """Every value of every sample is the same."""
        return self.figures["equal_share"] == 1.0


def compare_output(output: str, got: Array, reference: Array) -> OutputDifference:
    """Compares one output.

    Args:
        output: its name.
        got: `[N, ...]`.
        reference: `[N, ...]` with the same elements in the same order; dimensions of 1 may differ.

    Raises:
        ValueError: the sizes or the order of dimensions differ.
    """
    shapes = [[d for d in a.shape[1:] if d != 1] for a in (got, reference)]
    if len(got) != len(reference) or got.size != reference.size or shapes[0] != shapes[1]:
        raise ValueError(f"{output}: {list(got.shape)} against {list(reference.shape)}")
    a = got.reshape(len(got), -1).astype(np.float64)
    b = reference.reshape(len(reference), -1).astype(np.float64)
    with np.errstate(invalid="ignore"):  # inf less inf is NaN, which no figure below survives and no gate accepts
        signed = a - b
    difference = np.abs(signed)
    worst = np.nan_to_num(difference.max(axis=1), nan=np.inf)
    noise, signal = float(np.square(signed).sum()), float(np.square(b).sum())
    figures = {
        "cosine": cosine(a.ravel(), b.ravel()),
        "cosine_min": float(np.min([cosine(x, y) for x, y in zip(a, b, strict=True)])),  # NaN wins, as it should
        "l1": float(difference.mean()),
        "l2": float((np.linalg.norm(difference, axis=1) / difference.shape[1]).mean()),
        "chebyshev": float(difference.max()),
        "max_abs": float(difference.max()),
        "mean_abs": float(difference.mean()),
        "rmse": math.sqrt(noise / difference.size) if noise >= 0 else math.nan,
        "sqnr_db": _decibel(signal, noise),
        "equal_share": float((a == b).mean()),
    }
    if len(shapes[0]) == 1 and shapes[0][0] >= _TOP_CLASSES:
        figures["top1_agreement"] = float((a.argmax(1) == b.argmax(1)).mean())
    return OutputDifference(output, len(a), figures, int(worst.argmax()))


def cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Cosine of two vectors; 1 when both are zero, 0 when exactly one is."""
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    if norms == 0.0:
        return 1.0 if not a.any() and not b.any() else 0.0
    return float(a @ b) / norms


def compare_all(
    got: dict[str, Array], reference: dict[str, Array], samples: int
) -> tuple[list[OutputDifference], list[str]]:
    """Compares every output that the reference has.

    Args:
        got: by output name, `[n, ...]`.
        reference: by output name, `[N, ...]`, N >= n.
        samples: n.

    Returns:
        (differences, complaints): complaints name outputs that could not be compared.
    """
    found, complaints = [], []
    for name, values in got.items():
        if name not in reference:
            complaints.append(f"Output {name} is not among the reference's {', '.join(sorted(reference))}.")
            continue
        try:
            found.append(compare_output(name, values, reference[name][:samples]))
        except ValueError as error:
            complaints.append(f"Output {error}; not compared.")
    return found, complaints


def _decibel(signal: float, noise: float) -> float:
    if noise == 0.0:
        return math.inf
    if math.isnan(signal) or math.isnan(noise) or math.isinf(signal):
        return math.nan
    return 10 * math.log10(signal / noise) if signal > 0 and noise < math.inf else -math.inf
