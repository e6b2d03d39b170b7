"""Look at a dataset: figures per input, and what spoils a calibration. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np

from boardlift.datasets.archive import Array, Dataset
from boardlift.models import Finding

FEW_SAMPLES = 32
DROP_THEM = "Drop these samples and find out where they come from; the vendor's tool would take them unseen."
# A float input that reaches this far was probably never normalised, or is in raw units.
LARGE_VALUE = 1e4


def describe_arrays(dataset: Dataset) -> list[dict[str, Any]]:
    """Return a row of figures per input."""
    rows = []
    for name, array in dataset.arrays.items():
        values = array.astype(np.float64, copy=False)
        finite = values[np.isfinite(values)]
        figures = (finite.min(), finite.max(), finite.mean(), finite.std()) if finite.size else (float("nan"),) * 4
        shape = "x".join(str(size) for size in array.shape[1:]) or "scalar"
        row = {"input": name, "dtype": str(array.dtype), "samples": len(array), "shape": shape}
        rows.append(row | {k: float(f"{v:.6g}") for k, v in zip(("min", "max", "mean", "std"), figures, strict=True)})
    return rows


def find_problems(dataset: Dataset) -> list[Finding]:
    """Return what is wrong or odd about the samples by themselves."""
    findings = []
    if dataset.samples < FEW_SAMPLES:
        text = "There is one sample." if dataset.samples == 1 else f"There are only {dataset.samples} samples."
        findings.append(
            Finding("DATASET_FEW_SAMPLES", "warning", text, remedy="Use 64 or more, from different situations.")
        )
    for name, array in dataset.arrays.items():
        findings += _problems_of(name, array)
    duplicates = dataset.samples - len({_key(dataset, index) for index in range(dataset.samples)})
    if duplicates:
        text = f"{duplicates} of {dataset.samples} samples repeat others."
        findings.append(Finding("DATASET_DUPLICATES", "warning", text, remedy="Draw samples from more situations."))
    if not dataset.document:
        text = "The file says nothing about where its samples come from."
        findings.append(Finding("DATASET_NO_PROVENANCE", "note", text, remedy="Make it with `boardlift dataset`."))
    return findings


def describe_not_finite(array: Array) -> str:
    """Return which samples of `array` [N, ...] hold NaN or Inf, as a clause; empty when none does."""
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return ""
    bad = np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
    if len(bad) == 1:
        return f"Sample {bad[0]} holds NaN or Inf"
    return f"{len(bad)} samples hold NaN or Inf, the first is sample {bad[0]}"


def _problems_of(name: str, array: Array) -> list[Finding]:
    findings = []
    if bad := describe_not_finite(array):
        findings.append(Finding("DATASET_NOT_FINITE", "error", f"{bad}.", name, DROP_THEM))
    elif array.size and array.min() == array.max():
        text = f"Every number is {array.flat[0]}."
        findings.append(
            Finding("DATASET_INPUT_CONSTANT", "error", text, name, "Give real samples; scales would be meaningless.")
        )
    elif array.dtype.kind == "f" and np.abs(array).max() > LARGE_VALUE:
        text = f"Values reach {np.abs(array).max():.3g}."
        findings.append(
            Finding("DATASET_LARGE_VALUES", "warning", text, name, "Check that samples are scaled as in training.")
        )
    return findings


def _key(dataset: Dataset, index: int) -> bytes:
    return b"".join(np.ascontiguousarray(array[index]).tobytes() for array in dataset.arrays.values())
