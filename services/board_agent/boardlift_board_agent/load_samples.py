"""`.npz` artifacts -> arrays: no pickles, bounded, only what is needed."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from boardlift.errors import InvalidInputError
from numpy.typing import NDArray

Array = NDArray[Any]
MAX_BYTES = 2 << 30
_MAX_MEMBERS = 256


def load_arrays(path: Path, what: str, samples: int) -> dict[str, Array]:
    """Reads the first samples of every array.

    Args:
        path: the file; arrays are `[N, ...]`, numeric.
        what: name for messages: "held-out samples".
        samples: how many samples to keep.

    Returns:
        Name -> array `[n, ...]`, n = min(samples, N); members that are no arrays are passed over.

    Raises:
        InvalidInputError: SAMPLES_UNREADABLE, SAMPLES_TOO_LARGE or SAMPLES_EMPTY.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
            if len(members) > _MAX_MEMBERS or sum(m.file_size for m in members) > MAX_BYTES:
                raise InvalidInputError(
                    f"The {what} unpack to more than {MAX_BYTES >> 30} GiB.",
                    reason="SAMPLES_TOO_LARGE",
                    remedy="Send fewer samples.",
                )
            arrays = {m.filename[:-4]: _read(archive.read(m), samples) for m in members}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise InvalidInputError(
            f"The {what} can't be read: {error}.",
            reason="SAMPLES_UNREADABLE",
            remedy="Send an .npz of plain numeric arrays, one per tensor, [N, ...].",
        ) from error
    if not arrays or any(a.ndim < 1 or len(a) == 0 for a in arrays.values()):
        raise InvalidInputError(f"The {what} hold no samples.", reason="SAMPLES_EMPTY")
    return arrays


def _read(data: bytes, samples: int) -> Array:
    array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"arrays of type {array.dtype} are not numbers")
    return np.asarray(array[:samples] if array.ndim else array)


def save_arrays(arrays: dict[str, Array]) -> bytes:
    """The reverse: `.npz` bytes with a fixed time stamp, so that equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
