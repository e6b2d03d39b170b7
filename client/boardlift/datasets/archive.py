"""The dataset file: an `.npz` without pickles, one array `[N, ...]` per model input and a member `dataset.json`.

`array[i]` is one sample: the input's shape, with or without its leading batch dimension of 1.
All arrays have the same N.

`dataset.json` (UTF-8, sorted keys) holds

    format      "boardlift-dataset/1"
    synthetic   true when no sensor made the samples
    inputs      name -> {dtype, shape of one sample, layout ("NCHW", "NHWC" or ""), color ("rgb", "bgr", "gray" or "")}
    split       {"calibration": C, "heldout": H}: the first C samples calibrate, the next H are kept back for proof;
                absent when the samples have not been split yet
    provenance  where the samples come from; free form, for people and reports

The same content gives the same bytes on every machine: members are stored, not compressed, in a fixed order and with a
fixed date. That makes the file's SHA-256 a name for the samples.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boardlift._local_files import unreadable
from boardlift.errors import InvalidInputError
from boardlift.npz import read_npz

FORMAT = "boardlift-dataset/1"
DOCUMENT = "dataset.json"
MAX_DOCUMENT_BYTES = 64 << 20
# Input names appear as member names: no folders, nothing that climbs, nothing hidden.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]{0,199}")
_EPOCH = (1980, 1, 1, 0, 0, 0)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Dataset:
    """Samples of a model's inputs."""

    arrays: Mapping[str, Array]
    """Input name -> samples [N, ...]."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """Content of dataset.json; `format` and `inputs` are filled in when it is written."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(next(iter(self.arrays.values()))) if self.arrays else 0

    @property
    def split(self) -> tuple[int, int] | None:
        """(calibration, held-out) counts, in this order in the arrays; None when not split yet."""
        split = self.document.get("split")
        return (int(split["calibration"]), int(split["heldout"])) if split else None

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(array.shape)} {array.dtype}" for name, array in self.arrays.items())
        split = f", split {self.split[0]}+{self.split[1]}" if self.split else ""
        return f"Dataset({self.samples} samples: {shapes}{split})"


def write_dataset(dataset: Dataset, path: Path) -> None:
    """Write a dataset; equal datasets give equal files.

    Raises:
        InvalidInputError: Arrays are missing, differ in length or have unusable names or types; the split is too large.
    """
    _check(dataset)
    document = {**dataset.document, "format": FORMAT, "inputs": _describe_inputs(dataset)}
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_member(DOCUMENT), text.encode())
            for name in sorted(dataset.arrays):
                array = np.asarray(dataset.arrays[name])
                with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
                    np.lib.format.write_array(member, little, version=(1, 0), allow_pickle=False)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_dataset(path: Path, called: str = "") -> Dataset:
    """Read a dataset, or a plain `.npz` of arrays as one without a document.

    Args:
        path: The file.
        called: What errors call it, where its own name is a digest that says nothing; empty for its name.

    Raises:
        InvalidInputError: The file is not a dataset, is too large, or holds something other than numbers.
    """
    with _as_dataset(path, called):
        dataset = Dataset(read_npz(path, also={DOCUMENT: MAX_DOCUMENT_BYTES}), _read_document(path))
    _check(dataset)
    return dataset


def check_dataset_file(path: Path) -> None:
    """Look at what a file says about its arrays, before it is sent to where only its digest is known.

    The samples themselves are not read: that costs milliseconds, however large the file is.

    Raises:
        InvalidInputError: No server could read it as a dataset (`DATASET_UNREADABLE`).
    """
    with _as_dataset(path):
        read_npz(path, samples=0, also={DOCUMENT: MAX_DOCUMENT_BYTES})
        _read_document(path)


@contextmanager
def _as_dataset(path: Path, called: str = "") -> Iterator[None]:
    try:
        yield
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        remedy = "Make it with `boardlift dataset`, or save arrays with numpy.savez."
        reason = "DATASET_UNREADABLE"
        raise unreadable(path, error, reason=reason, remedy=remedy, kind="a dataset", called=called) from error


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = 3
    info.external_attr = 0o644 << 16
    return info


def _describe_inputs(dataset: Dataset) -> dict[str, dict[str, Any]]:
    known = dataset.document.get("inputs", {})
    return {
        name: {
            "layout": "",
            "color": "",
            **known.get(name, {}),
            "dtype": str(array.dtype),
            "shape": list(array.shape[1:]),
        }
        for name, array in sorted(dataset.arrays.items())
    }


def _read_document(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        if DOCUMENT not in archive.namelist():
            return {}
        document = json.loads(archive.read(DOCUMENT))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{DOCUMENT} does not say {FORMAT}")
    return document


def _check(dataset: Dataset) -> None:
    lengths = {name: array.shape[0] if array.ndim else -1 for name, array in dataset.arrays.items()}
    problem = ""
    if not lengths:
        problem = "it holds no arrays"
    elif len(set(lengths.values())) > 1 or min(lengths.values()) < 1:
        counts = ", ".join(f"{name} has {max(length, 0)}" for name, length in lengths.items())
        problem = f"every array needs the same number of samples first, at least one; {counts}"
    for name, array in dataset.arrays.items():
        if not _NAME.fullmatch(name):
            problem = f"{name!r} can't be an input name"
        elif array.dtype.kind not in "fiub":
            problem = f"{name} holds {array.dtype}, not numbers"
    split = dataset.split
    if not problem and split and (min(split) < 0 or sum(split) > dataset.samples):
        problem = f"a split of {split[0]} + {split[1]} does not fit {dataset.samples} samples"
    if problem:
        raise InvalidInputError(
            f"The dataset is not usable: {problem}.",
            reason="DATASET_INVALID",
            remedy="Give one array [N, ...] per input of the model, all with the same N.",
        )
