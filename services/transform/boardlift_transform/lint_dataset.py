"""Is a dataset fit to calibrate and judge a model? Pure checks on arrays; hard faults refuse, the rest are findings.

The vendor tool takes NaN, Inf and all-zero calibration without a word, so nothing passes here unread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from boardlift_transform.check_result import Finding
from boardlift_transform.edit_graph import Array
from boardlift_transform.inspect import TensorSpec
from boardlift_transform.io_map import fits
from boardlift_transform.refusal import Refusal

FEW_SAMPLES = 20
OUTLIER_RATIO = 50.0
SCALE_SPREAD = 100.0


def check_dataset(arrays: Mapping[str, Array], inputs: Sequence[TensorSpec]) -> list[Finding]:
    """Check every input's samples `[N, ...]` against the model.

    Args:
        arrays: Samples by input name.
        inputs: The model's inputs; -1 in a shape fits any length.

    Raises:
        Refusal: DATASET_INPUT_MISSING, DATASET_SHAPE, DATASET_LENGTH, DATASET_EMPTY, DATASET_TYPE, DATASET_NOT_FINITE,
            DATASET_ALL_ZERO.
    """
    findings: list[Finding] = []
    lengths = {}
    for spec in inputs:
        if spec.name not in arrays:
            known = ", ".join(arrays) or "none"
            raise Refusal(
                "DATASET_INPUT_MISSING",
                f"the dataset has no array for input {spec.name} (it has {known})",
                remedy="name the arrays as the model names its inputs",
                metadata={"input": spec.name},
            )
        array = np.asarray(arrays[spec.name])
        lengths[spec.name] = len(array) if array.ndim else 0
        _check_shape(array, spec)
        _check_type(array, spec, findings)
        _check_finite(array, spec)
    if not lengths or min(lengths.values()) == 0:
        raise Refusal("DATASET_EMPTY", "the dataset has no samples", remedy="give at least 20 samples")
    if len(set(lengths.values())) > 1:
        raise Refusal("DATASET_LENGTH", f"inputs have different numbers of samples: {lengths}", metadata=lengths)
    if all(not np.any(arrays[spec.name]) for spec in inputs):
        raise Refusal(
            "DATASET_ALL_ZERO",
            "every sample is zero",
            remedy="record real inputs: the tool would build a useless model",
        )
    for name in arrays:
        if name not in lengths:
            findings.append(Finding("DATASET_EXTRA_ARRAY", f"array {name} belongs to no input and is ignored", name))
    for spec in inputs:
        findings += _look_at_values(np.asarray(arrays[spec.name]), spec)
    return findings + _look_at_samples(arrays, inputs, next(iter(lengths.values())))


def _check_shape(array: Array, spec: TensorSpec) -> None:
    item = array.shape[1:]
    shape = tuple(spec.shape)
    candidates = [shape, shape[1:]] if shape[:1] in ((1,), (-1,)) else [shape]
    for candidate in candidates:
        if len(candidate) == len(item) and all(want in (-1, have) for want, have in zip(candidate, item, strict=True)):
            return
    if -1 not in shape and fits(item, shape):
        return
    raise Refusal(
        "DATASET_SHAPE",
        f"samples of {spec.name} have shape {list(item)}, the model takes {list(shape)}",
        remedy="array[i] must be one sample in the input's shape, with or without its leading 1",
        metadata={"input": spec.name, "shape": list(item), "wanted": list(shape)},
    )


def _check_type(array: Array, spec: TensorSpec, findings: list[Finding]) -> None:
    if array.dtype.kind not in "fiub":
        raise Refusal("DATASET_TYPE", f"{spec.name} holds {array.dtype}, not numbers", metadata={"input": spec.name})
    want = np.dtype(spec.dtype)
    if array.dtype == want:
        return
    if want.kind in "iu" and array.dtype.kind == "f" and not np.all(array == np.rint(array)):
        raise Refusal(
            "DATASET_TYPE",
            f"{spec.name} holds fractions, the model takes {want}",
            remedy="store whole numbers",
            metadata={"input": spec.name},
        )
    findings.append(Finding("DATASET_TYPE_CONVERTED", f"{spec.name} is {array.dtype}, converted to {want}", spec.name))


def _check_finite(array: Array, spec: TensorSpec) -> None:
    if array.dtype.kind != "f":
        return
    bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1) if len(array) else np.zeros(0, bool)
    if bad.any():
        rows = np.flatnonzero(bad)
        raise Refusal(
            "DATASET_NOT_FINITE",
            f"{len(rows)} samples of {spec.name} hold NaN or Inf, the first is sample {rows[0]}",
            remedy="drop these samples and find out where they come from",
            metadata={"input": spec.name, "samples": ",".join(map(str, rows[:10]))},
        )


def _look_at_values(array: Array, spec: TensorSpec) -> list[Finding]:
    flat = array.reshape(len(array), -1).astype(np.float64)
    findings = []
    if not flat.any():
        return [Finding("DATASET_INPUT_ZERO", f"{spec.name} is zero in every sample", spec.name, "warning", _RECORD)]
    if flat.size > 1 and flat.min() == flat.max():
        text = f"{spec.name} is {flat.flat[0]:g} everywhere"
        return [Finding("DATASET_INPUT_CONSTANT", text, spec.name, "warning", _RECORD)]
    if len(flat) > 1 and flat.shape[1] > 1:
        still = int((flat.min(axis=0) == flat.max(axis=0)).sum())
        if still:
            text = f"{still} of {flat.shape[1]} elements of {spec.name} never change"
            findings.append(Finding("DATASET_ELEMENTS_CONSTANT", text, spec.name))
    magnitude = np.abs(flat)
    typical = float(np.quantile(magnitude, 0.999))
    largest = float(magnitude.max())
    if typical > 0 and largest > OUTLIER_RATIO * typical:
        text = f"the largest value of {spec.name} is {largest:.3g}, 99.9 % are below {typical:.3g}"
        findings.append(Finding("DATASET_OUTLIER", text, spec.name, "warning", "check the sensor; or use a percentile"))
    peaks = magnitude.max(axis=1)
    if len(peaks) > 1 and peaks.min() > 0 and peaks.max() > SCALE_SPREAD * peaks.min() and spec.dtype == "float32":
        text = f"samples of {spec.name} reach from {peaks.min():.3g} to {peaks.max():.3g} at most: mixed scales?"
        findings.append(Finding("DATASET_MIXED_SCALE", text, spec.name, "warning", "normalise all samples alike"))
    if len(spec.shape) == 4 and flat.min() >= 0 and 1.5 < largest <= 255 and np.all(flat == np.rint(flat)):
        text = f"{spec.name} holds whole numbers from 0 to {largest:g}: raw pixels"
        remedy = "right only where the model normalises, or its input's form does by mean and scale"
        findings.append(Finding("DATASET_RAW_PIXELS", text, spec.name, "note", remedy))
    return findings


def _look_at_samples(arrays: Mapping[str, Array], inputs: Sequence[TensorSpec], count: int) -> list[Finding]:
    findings = []
    copies = count - len(set(sample_keys(arrays, inputs, count)))
    if copies:
        text = f"{copies} of {count} samples are exact copies of others"
        severity = "warning" if copies > count // 10 else "note"
        findings.append(Finding("DATASET_DUPLICATES", text, "dataset", severity, "draw from more of the log"))
    if count < FEW_SAMPLES:
        text = f"{count} samples are few; 20 to 100 calibrate well"
        findings.append(Finding("DATASET_FEW_SAMPLES", text, "dataset", "warning", _RECORD))
    return findings


def sample_keys(arrays: Mapping[str, Array], inputs: Sequence[TensorSpec], count: int) -> list[bytes]:
    """A digest of each sample over all inputs: equal keys mean equal samples."""
    views = [np.ascontiguousarray(arrays[spec.name]) for spec in inputs]
    return [_digest(view[i] for view in views) for i in range(count)]


def _digest(parts: Iterable[Array]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:  # of one shape in every sample, so that nothing need stand between them
        digest.update(part.tobytes())
    return digest.digest()


_RECORD = "record inputs where the model will be used"
