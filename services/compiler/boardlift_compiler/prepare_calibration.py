"""Decode, check and rewrite calibration samples; nothing of the user's file names or bytes reaches the tool unread.

The vendor tool builds happily from NaN, Inf, zeros or normalised-twice data and runs file names through a shell. So
samples come in as one ``.npz`` without pickles, are checked, and are written as raw files under generated names.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from boardlift.npz import NpzError, read_npz

from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.findings import Finding
from boardlift_compiler.read_model import ModelSummary
from boardlift_compiler.spec import CompileSpec, InputSpec
from boardlift_compiler.write_config import calibration_folder

Array = npt.NDArray[np.generic]
MAX_SAMPLES = 10_000
MOST = float(np.finfo(np.float32).max)
FEW_SAMPLES = 20


class RefusedError(Exception):
    """The samples cannot be used."""

    def __init__(self, failure: StageFailure) -> None:
        """Carry the failure."""
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class CalibrationSet:
    """Checked samples, ready to be written."""

    arrays: dict[str, Array]
    """Per input ``[N, ...]`` in the element type that will be written."""
    spec: CompileSpec
    """The spec with the element types filled in."""
    count: int
    """Samples per input."""
    findings: tuple[Finding, ...]
    """Things worth knowing about the data."""


def read_samples(path: Path) -> dict[str, Array]:
    """Read an ``.npz`` of one array per input.

    Raises:
        RefusedError: when the file is not such an archive or too large.
    """
    try:
        return read_npz(path)
    except NpzError as error:
        raise RefusedError(make_failure("CALIBRATION_UNREADABLE", "", (str(error)[:200],))) from error


def prepare_samples(samples: dict[str, Array], spec: CompileSpec, model: ModelSummary) -> CalibrationSet:
    """Check the samples against the model and the spec.

    Args:
        samples: Per input ``[N, ...]``.
        spec: A completed spec; its inputs are the model's.
        model: The model.

    Raises:
        RefusedError: naming the input, the sample and what is wrong with it.
    """
    arrays: dict[str, Array] = {}
    inputs: list[InputSpec] = []
    findings: list[Finding] = []
    shapes = {t.name: t.shape for t in model.inputs}
    counts = {}
    for item in spec.inputs:
        if item.name not in samples:
            raise RefusedError(make_failure("CALIBRATION_MISSING", item.name))
        shape = item.shape or tuple(d for d in shapes[item.name] if isinstance(d, int))
        array = _as_samples(samples[item.name], shape, item)
        _check_values(array, item, findings)
        dtype = choose_dtype(item, array)
        arrays[item.name] = np.ascontiguousarray(_converted(array, dtype, item))
        inputs.append(replace(item, calibration_dtype=dtype))
        counts[item.name] = len(array)
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{k}: {v}" for k, v in counts.items())
        raise RefusedError(make_failure("CALIBRATION_MISSING", text, message=f"Sample counts differ: {text}."))
    count = next(iter(counts.values()), 0)
    if count < FEW_SAMPLES:
        findings.append(
            Finding(
                "CALIBRATION_FEW_SAMPLES",
                "note",
                f"Only {count} calibration samples.",
                "",
                "20 to 100 from the place of use give steadier thresholds.",
            )
        )
    return CalibrationSet(arrays, replace(spec, inputs=tuple(inputs)), count, tuple(findings))


def _as_samples(array: Array, shape: tuple[int, ...], item: InputSpec) -> Array:
    elements = math.prod(shape)
    if array.dtype.kind not in "fiub":
        raise RefusedError(make_failure("CALIBRATION_TYPE", item.name, (f"element type {array.dtype}",)))
    if array.ndim == 0 or len(array) == 0:
        raise RefusedError(make_failure("CALIBRATION_EMPTY", item.name))
    if len(array) > MAX_SAMPLES:
        raise RefusedError(make_failure("KNOB_RANGE", f"{len(array)} samples of {item.name} (at most {MAX_SAMPLES})"))
    per_sample = array.size // len(array)
    tail = tuple(d for d in array.shape[1:] if d != 1)
    if per_sample != elements or tail != tuple(d for d in shape if d != 1):
        evidence = (f"samples of shape {list(array.shape[1:])}, input {list(shape)}",)
        raise RefusedError(make_failure("CALIBRATION_SAMPLE_SIZE", item.name, evidence))
    return array.reshape(len(array), *shape)


def _check_values(array: Array, item: InputSpec, findings: list[Finding]) -> None:
    flat = array.reshape(len(array), -1)
    low, high = float(flat.min()), float(flat.max())  # NaN where any value is
    if not -MOST <= low <= high <= MOST:  # float64 goes further, and would be written as Inf
        finite = (np.abs(flat) <= MOST).all(axis=1)
        bad = int(np.flatnonzero(~finite)[0])
        evidence = (f"{int((~finite).sum())} of {len(array)} samples, first: sample {bad}",)
        raise RefusedError(make_failure("CALIBRATION_NOT_FINITE", item.name, evidence))
    if low == high == 0.0:
        raise RefusedError(make_failure("CALIBRATION_ALL_ZERO", item.name))
    if low == high:
        findings.append(
            Finding(
                "CALIBRATION_CONSTANT",
                "warning",
                f"All values of {item.name} are {low:g}.",
                item.name,
                "Record real samples; the thresholds will fit this one value.",
            )
        )
    elif len(array) > 1 and all(np.array_equal(sample, flat[0]) for sample in flat[1:]):
        findings.append(
            Finding(
                "CALIBRATION_IDENTICAL",
                "warning",
                f"All samples of {item.name} are the same.",
                item.name,
                "Record different situations.",
            )
        )
    if item.is_image:
        _check_image_range(low, high, item, findings)
    elif max(abs(low), abs(high)) > 1e6:
        findings.append(
            Finding(
                "CALIBRATION_HUGE",
                "warning",
                f"Values of {item.name} reach {max(-low, high):.3g}.",
                item.name,
                "Normalise the input in front of the model.",
            )
        )


def _check_image_range(low: float, high: float, item: InputSpec, findings: list[Finding]) -> None:
    if low < 0 or high > 255:
        evidence = (f"range {low:g} to {high:g}",)
        raise RefusedError(make_failure("CALIBRATION_RANGE", item.name, evidence))
    if high <= 1.0:
        text = f"Values of image input {item.name} lie in 0 to {high:g}: normalised already?"
        findings.append(
            Finding(
                "CALIBRATION_LOOKS_NORMALISED",
                "error",
                text,
                item.name,
                "Give raw 0 to 255 pixels; mean and scale belong into the input spec.",
            )
        )


def choose_dtype(item: InputSpec, array: Array) -> str:
    """Return the element type to write: what is asked, uint8 for whole-numbered images, float32 otherwise."""
    if item.calibration_dtype:
        return item.calibration_dtype
    if item.converted_as_float:
        return "float32"
    if item.is_image and (array.dtype.kind in "ub" or all(bool((sample == np.rint(sample)).all()) for sample in array)):
        return "uint8"
    return "float32"


def _converted(array: Array, dtype: str, item: InputSpec) -> Array:
    target = np.dtype(dtype)
    if array.dtype == target or dtype == "float32":
        return array.astype(target, copy=False)
    limits = np.iinfo(target)
    whole = array.dtype.kind != "f" or all(bool((sample == np.rint(sample)).all()) for sample in array)
    if array.min() < limits.min or array.max() > limits.max or not whole:
        raise RefusedError(make_failure("CALIBRATION_TYPE", item.name, (f"values do not fit {dtype}",)))
    return array.astype(target)


def first_md5_of(array: Array) -> str:
    """Return the MD5 of the first sample's file, which the tool prints when it reads it."""
    return hashlib.md5(array[0].tobytes(), usedforsecurity=False).hexdigest()


def write_samples(data: CalibrationSet, root: Path) -> None:
    """Write the samples under generated names."""
    for number, item in enumerate(data.spec.inputs):
        folder = root / calibration_folder(number, item)
        folder.mkdir()
        for index, sample in enumerate(data.arrays[item.name]):
            (folder / f"{index:06d}.bin").write_bytes(sample.tobytes())
