"""Build a dataset from arrays: `.npy`, `.npz`, raw binary files, or folders of them with one sample per file.

Layout and colour are declared, never guessed: a file of numbers can't say whether it is RGB or BGR.
"""

from __future__ import annotations

import hashlib
import random
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from boardlift._local_files import why
from boardlift.datasets.archive import Array, Dataset
from boardlift.datasets.draw import SplitRequest
from boardlift.datasets.inspect import DROP_THEM, describe_not_finite
from boardlift.errors import InvalidInputError

LAYOUTS = ("", "NCHW", "NHWC")
COLORS = ("", "rgb", "bgr", "gray", "yuv444")
RAW_SUFFIXES = (".bin", ".raw", ".dat")


@dataclass(frozen=True)
class ArraySource:
    """Where the samples of one input are, and what they are."""

    input_name: str
    """Input of the model; for an `.npz` the array of this name, or its only array."""
    path: Path
    """File, or folder with one sample per file."""
    dtype: str = "float32"
    """Element type of raw binary files."""
    shape: tuple[int, ...] = ()
    """Shape of one sample; needed for raw binary files, checked for others."""
    layout: str = ""
    """"NCHW", "NHWC" or empty when it has no meaning."""
    color: str = ""
    """"rgb", "bgr", "gray", "yuv444" or empty when it has no meaning."""
    member: str = ""
    """Array of an `.npz` to take; empty for the one of the input's name, or the only one."""


def build_from_arrays(
    sources: Sequence[ArraySource], split: SplitRequest | None = None, *, synthetic: bool = False
) -> Dataset:
    """Build a dataset from one source per input.

    Args:
        sources: One per input; all give the same number of samples.
        split: Draw and order the samples; None leaves the split to the server.
        synthetic: True when no sensor made the samples.

    Raises:
        InvalidInputError: A source can't be read, does not have the declared shape or holds NaN or Inf
            (`DATASET_NOT_FINITE`), or there are too few samples.
    """
    arrays, inputs, files = {}, {}, []
    for source in sources:
        _check_source(source)
        array, described = _load(source)
        _check_finite(source, array)
        arrays[source.input_name] = array
        inputs[source.input_name] = {"layout": source.layout, "color": source.color}
        files += described
    provenance: dict[str, Any] = {"builder": "arrays", "files": files}
    document = {"synthetic": synthetic, "inputs": inputs, "provenance": provenance}
    dataset = Dataset(arrays, document)
    return apply_split(dataset, split) if split else dataset


def apply_split(dataset: Dataset, split: SplitRequest) -> Dataset:
    """Draw samples at random and put calibration samples first; exact duplicates are used once.

    Raises:
        InvalidInputError: There are too few different samples (`TOO_FEW_SAMPLES`).
    """
    unique = _unique_samples(dataset.arrays)
    wanted = split.calibration + split.heldout
    if wanted > len(unique):
        raise InvalidInputError(
            f"{split.calibration} + {split.heldout} samples were asked for, there are {len(unique)} different ones.",
            reason="TOO_FEW_SAMPLES",
            remedy=_fewer(split, len(unique)),
            metadata={"samples": str(len(unique))},
        )
    drawn = random.Random(split.seed).sample(unique, wanted)  # noqa: S311  (a draw of samples, not a secret)
    order = sorted(drawn[: split.calibration]) + sorted(drawn[split.calibration :])
    provenance = {
        **dataset.document.get("provenance", {}),
        "candidates": dataset.samples,
        "duplicates": dataset.samples - len(unique),
        "draw": asdict(split),
        "samples": order,
        "samples_columns": ["index"],
    }
    counts = {"calibration": split.calibration, "heldout": split.heldout}
    document = {**dataset.document, "split": counts, "provenance": provenance}
    return Dataset({name: array[order] for name, array in dataset.arrays.items()}, document)


def _unique_samples(arrays: Mapping[str, Array]) -> list[int]:
    seen: set[bytes] = set()
    unique = []
    for index in range(len(next(iter(arrays.values())))):
        digest = hashlib.sha256()
        for name in sorted(arrays):
            digest.update(np.ascontiguousarray(arrays[name][index]).tobytes())
        if digest.digest() not in seen:
            seen.add(digest.digest())
            unique.append(index)
    return unique


def _check_source(source: ArraySource) -> None:
    if source.layout not in LAYOUTS or source.color not in COLORS:
        raise InvalidInputError(
            f"Unknown layout {source.layout!r} or colour {source.color!r} for {source.input_name}.",
            reason="DATASET_INVALID",
            remedy="Layouts: NCHW, NHWC. Colours: rgb, bgr, gray, yuv444.",
        )


def _check_finite(source: ArraySource, array: Array) -> None:
    if bad := describe_not_finite(array):
        raise InvalidInputError(
            f"{source.path.name} can't be used for input {source.input_name}: {bad[0].lower()}{bad[1:]}.",
            reason="DATASET_NOT_FINITE",
            remedy=DROP_THEM,
            metadata={"file": source.path.name, "input": source.input_name},
        )


def _load(source: ArraySource) -> tuple[Array, list[dict[str, Any]]]:
    path = source.path
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in (".npy", *RAW_SUFFIXES))
        if not files:
            raise _unreadable(source, "the folder has no .npy, .bin, .raw or .dat files")
        samples = [_load_file(source, file) for file in files]
        samples = [
            sample[0] if file.suffix in RAW_SUFFIXES else sample for sample, file in zip(samples, files, strict=True)
        ]
        if len({(sample.shape, sample.dtype) for sample in samples}) > 1:
            raise _unreadable(source, "the samples differ in shape or type")
        array = np.stack(samples)
    else:
        files, array = [path], _load_file(source, path)
    if source.shape and tuple(array.shape[1:]) != source.shape:
        raise _unreadable(source, f"a sample has shape {list(array.shape[1:])}, declared is {list(source.shape)}")
    described = [
        {"name": f.name, "sha256": hashlib.sha256(f.read_bytes()).hexdigest(), "size_bytes": f.stat().st_size}
        for f in files
    ]
    return array, described


def _load_file(source: ArraySource, path: Path) -> Array:
    try:
        if path.suffix == ".npz":
            return _load_npz(source, path)
        if path.suffix == ".npy":
            loaded: Array = np.load(path, allow_pickle=False)
            return loaded
        return _load_raw(source, path)
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise _unreadable(source, why(error)) from error


def _load_npz(source: ArraySource, path: Path) -> Array:
    with np.load(path, allow_pickle=False) as archive:
        names = [name for name in archive.files if name != "dataset.json"]
        name = source.member or (names[0] if len(names) == 1 else source.input_name)
        if name not in names:
            pick = f"; choose by {source.input_name}={path.name}:NAME" if names else ""
            raise ValueError(f"it holds {', '.join(names) or 'nothing'}, not {name}{pick}")
        array: Array = archive[name]
        return array


def _load_raw(source: ArraySource, path: Path) -> Array:
    if not source.shape:
        raise ValueError("a raw binary file needs the shape of one sample")
    flat: Array = np.fromfile(path, dtype=np.dtype(source.dtype).newbyteorder("<"))
    if flat.nbytes != path.stat().st_size or not flat.size or flat.size % int(np.prod(source.shape)):
        raise ValueError(f"{path.stat().st_size} bytes are not whole samples of {source.dtype} {list(source.shape)}")
    return flat.reshape(-1, *source.shape)


def _fewer(split: SplitRequest, there: int) -> str:
    """Return a split that fits, in the asked proportion, as a remedy."""
    calibration = round(there * split.calibration / (split.calibration + split.heldout))
    return f"Add samples, or ask for fewer: --calibration {calibration} --heldout {there - calibration}."


def _unreadable(source: ArraySource, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{source.path.name} can't be used for input {source.input_name}: {problem}.",
        reason="ARRAYS_UNREADABLE",
        remedy="Give [N, ...] arrays as .npy or .npz, or raw binary files with dtype and sample shape.",
        metadata={"file": source.path.name, "input": source.input_name},
    )
