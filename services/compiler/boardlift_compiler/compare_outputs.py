"""Compare tensors: our own figures and the vendor's columns by the vendor's definitions; pure.

The vendor's columns were reproduced to the last printed digit on recorded runs: they compare the fake-quantised model
with the vendor's float run **on the first calibration sample only**; ``L1`` is the mean absolute difference, ``L2`` the
Euclidean norm of the difference divided by the number of elements, ``Chebyshev`` the largest absolute difference.
The same names mean the same here, over all samples given, against the user's own model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Comparison:
    """One output against its reference, over all samples."""

    output: str
    """Output name."""
    samples: int
    """Samples compared."""
    cosine: float
    """Cosine similarity over all elements of all samples; 1 when both are zero, 0 when one is."""
    cosine_min: float
    """Smallest cosine of a single sample."""
    l1: float
    """Mean absolute difference (vendor's definition)."""
    l2: float
    """Mean over samples of norm(difference) / elements per sample (vendor's definition)."""
    chebyshev: float
    """Largest absolute difference (vendor's definition)."""
    max_abs: float
    """Largest absolute difference; equals chebyshev."""
    mean_abs: float
    """Mean absolute difference; equals l1."""
    rmse: float
    """Root of the mean squared difference."""
    sqnr_db: float
    """Signal to quantisation noise in decibel; inf when equal."""
    worst_sample: int
    """Sample with the largest absolute difference."""

    def figures(self) -> dict[str, float]:
        """Return the numbers by their stable names."""
        names = ("cosine", "cosine_min", "l1", "l2", "chebyshev", "max_abs", "mean_abs", "rmse", "sqnr_db")
        return {name: float(getattr(self, name)) for name in names}


class ShapeMismatchError(ValueError):
    """Two arrays that should be compared have different sizes."""


def require_same_shape(name: str, got: Array, reference: Array) -> None:
    """Refuse arrays whose elements do not belong together one by one; dimensions of 1 may differ.

    Args:
        name: Output name, for the message.
        got: ``[N, ...]``.
        reference: ``[N, ...]``.

    Raises:
        ShapeMismatchError: when there is nothing, or sample counts, sizes or the order of dimensions differ.
    """
    shapes = [[d for d in a.shape[1:] if d != 1] for a in (got, reference)]
    if not got.size or len(got) != len(reference) or shapes[0] != shapes[1]:
        raise ShapeMismatchError(f"{name}: {list(got.shape)} against {list(reference.shape)}")


def compare_output(name: str, got: Array, reference: Array) -> Comparison:
    """Compare one output.

    Args:
        name: Output name.
        got: ``[N, ...]`` any numeric type.
        reference: ``[N, ...]`` with as many elements per sample; dimensions of 1 may differ.

    Raises:
        ShapeMismatchError: when sample counts, sizes or the order of dimensions differ.
    """
    require_same_shape(name, got, reference)
    a = got.reshape(len(got), -1).astype(np.float64)
    b = reference.reshape(len(reference), -1).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # what is no number stays none, and the gates say so
        difference = np.abs(a - b)
        worst = difference.max(axis=1)
        noise, signal = float(np.square(a - b).sum()), float(np.square(b).sum())
        per_sample = [cosine_similarity(x, y) for x, y in zip(a, b, strict=True)]
    return Comparison(
        name,
        len(a),
        cosine_similarity(a.ravel(), b.ravel()),
        float(np.min(per_sample)),  # NaN wins, wherever it stands
        float(difference.mean()),
        float((np.sqrt(np.square(difference).sum(axis=1)) / difference.shape[1]).mean()),
        float(worst.max()),
        float(worst.max()),
        float(difference.mean()),
        math.sqrt(noise / difference.size),
        _decibel(signal, noise),
        int(np.argmax(np.nan_to_num(worst, nan=np.inf))),
    )


def cosine_similarity(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    """Cosine of two vectors; 1 when both are zero, 0 when exactly one is."""
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    if norms == 0.0:
        return 1.0 if not a.any() and not b.any() else 0.0
    return float(a @ b) / norms


def _decibel(signal: float, noise: float) -> float:
    if noise == 0.0:
        return math.inf
    if math.isnan(signal) or math.isnan(noise) or math.isinf(signal):
        return math.nan
    return 10 * math.log10(signal / noise) if signal > 0 and noise < math.inf else -math.inf


@dataclass(frozen=True)
class BitComparison:
    """Compiled code against quantised model, for one tensor."""

    subgraph: str
    """BPU node."""
    tensor: str
    """Output tensor of it."""
    samples: int
    """Samples compared."""
    equal: bool
    """True when every integer of every sample was equal."""
    different: int = 0
    """Differing elements."""
    max_difference: int = 0
    """Largest difference in integer steps."""
    first: str = ""
    """Where the first difference is, and whether it lies on the border."""
    not_compared: str = ""
    """Why nothing was compared; the check then says neither yes nor no."""


def compare_bits(subgraph: str, tensor: str, pairs: list[tuple[Array, Array]]) -> BitComparison:
    """Compare integers sample by sample.

    Args:
        subgraph: BPU node.
        tensor: Its output tensor.
        pairs: Per sample (compiled code, quantised model), same number of elements; none means that nothing was
            compared.
    """
    if not pairs:
        return BitComparison(subgraph, tensor, 0, False, not_compared="there was no sample to compare")
    different, largest, first = 0, 0, ""
    for sample, (got, want) in enumerate(pairs):
        if got.size != want.size:
            text = f"sample {sample}: {got.size} elements against {want.size}"
            return BitComparison(subgraph, tensor, len(pairs), False, max(got.size, want.size), 0, text)
        delta = np.abs(got.reshape(want.shape).astype(np.int64) - want.astype(np.int64))
        wrong = int(np.count_nonzero(delta))
        if wrong and not first:
            where = [int(i) for i in np.argwhere(delta)[0]]
            first = f"sample {sample} at {where}{_border(delta)}"
        different += wrong
        largest = max(largest, int(delta.max(initial=0)))
    return BitComparison(subgraph, tensor, len(pairs), different == 0, different, largest, first)


def _border(delta: npt.NDArray[np.int64]) -> str:
    """Say where the differences lie: only on the outermost rows and columns, or inside."""
    if delta.ndim != 4 or (min(delta.shape[-2:]) < 2 and min(delta.shape[1:3]) < 2):
        return ""
    places = []
    for axis in (1, 2, 3):
        size = delta.shape[axis]
        if size < 3:
            continue
        inner = np.take(delta, range(1, size - 1), axis=axis)
        if not inner.any():
            places.append(f"axis {axis}")
    return f", border only ({', '.join(places)})" if places else ", inside"
