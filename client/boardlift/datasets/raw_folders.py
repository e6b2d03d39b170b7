"""Read and write the calibration folders of a makertbin YAML: raw binary files without headers, one sample each.

Only the numbers are kept: neither folder nor file names enter the dataset.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from boardlift.datasets.archive import Array, Dataset
from boardlift.errors import InvalidInputError
from boardlift.npz import MAX_BYTES

MAX_FILES = 10_000
_WRITTEN = re.compile(r"[0-9]{6,}\.bin")


@dataclass(frozen=True)
class RawFolder:
    """Where the raw samples of one input are, and what one of them is."""

    input_name: str
    """Input of the model."""
    folder: Path
    """Folder of raw files, one sample each; hidden files are not samples."""
    shape: tuple[int, ...]
    """Shape of one sample, as the model takes it."""
    dtype: str = "uint8"
    """Element type; uint8 is what the vendor's tool takes where nothing is said."""


def build_from_raw_folders(folders: Sequence[RawFolder]) -> Dataset:
    """Read one folder per input into a dataset of calibration samples, in the order of the files' names.

    Args:
        folders: One per input; all hold the same number of files.

    Raises:
        InvalidInputError: A folder is missing or empty, a file has another size than a sample, or counts differ
            (`CALIBRATION_FOLDER_INVALID`).
    """
    arrays = {item.input_name: _read(item) for item in folders}
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise _invalid(f"The inputs have different numbers of samples ({text}).", "", "Give every input as many files.")
    count = next(iter(counts.values()), 0)
    provenance = {"builder": "raw_folders", "files": count * len(arrays)}
    return Dataset(arrays, {"split": {"calibration": count, "heldout": 0}, "provenance": provenance})


def _read(item: RawFolder) -> Array:
    files = _list_files(item)
    dtype = np.dtype(item.dtype)
    wanted = math.prod(item.shape) * dtype.itemsize
    if wanted * len(files) > MAX_BYTES:
        raise _invalid(f"The samples of {item.input_name} exceed {MAX_BYTES >> 30} GiB.", "", "Use fewer samples.")
    for file in files:
        if file.stat().st_size != wanted:
            raise _invalid(
                f"{file.name} has {file.stat().st_size} bytes; a sample of {item.input_name} has {wanted}"
                f" ({dtype} {list(item.shape)}).",
                file.name,
                _remedy(item, file.stat().st_size),
            )
    array = np.empty((len(files), *item.shape), dtype)
    for index, file in enumerate(files):
        array[index] = np.fromfile(file, dtype=dtype.newbyteorder("<")).reshape(item.shape)
    return array


def write_raw_folder(samples: Array, folder: Path, dtype: str) -> None:
    """Write samples as the vendor's tool reads them, one file each, named by number.

    Args:
        samples: `[N, ...]`, values that fit the type.
        folder: Folder, made when absent; samples that were written into it before are removed.
        dtype: Element type of the files.

    Raises:
        InvalidInputError: CALIBRATION_FOLDER_INVALID when it holds anything else; nothing is removed then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    old = list(folder.iterdir())
    for path in old:
        if not (_WRITTEN.fullmatch(path.name) and path.is_file()):
            text = f"{folder} holds {path.name}, which is none of the samples that boardlift writes there."
            raise _invalid(text, path.name, "Name another folder for the result.")
    for path in old:
        path.unlink()
    element = np.dtype(dtype).newbyteorder("<")
    for index, sample in enumerate(samples):
        np.ascontiguousarray(sample, element).tofile(folder / f"{index:06d}.bin")


def _remedy(item: RawFolder, size_bytes: int) -> str:
    if item.dtype != "float32" and size_bytes == 4 * math.prod(item.shape):
        return "The size is that of float32: set cal_data_type: float32, or end the folder's name with _f32."
    return "Write raw numbers without a header (array.tofile), and nothing else into this folder."


def _list_files(item: RawFolder) -> list[Path]:
    if not item.folder.is_dir():
        text = f"The calibration folder of {item.input_name} is not there: {item.folder}."
        raise _invalid(text, str(item.folder), "Correct cal_data_dir, or give --data.")
    files = sorted(p for p in item.folder.iterdir() if p.is_file() and not p.name.startswith("."))
    if not 1 <= len(files) <= MAX_FILES:
        text = f"The calibration folder of {item.input_name} holds {len(files)} files: {item.folder}."
        raise _invalid(text, str(item.folder), f"Keep 20 to 100 samples in it, at most {MAX_FILES}.")
    return files


def _invalid(message: str, file: str, remedy: str) -> InvalidInputError:
    metadata = {"file": file} if file else {}
    return InvalidInputError(message, reason="CALIBRATION_FOLDER_INVALID", remedy=remedy, metadata=metadata)
