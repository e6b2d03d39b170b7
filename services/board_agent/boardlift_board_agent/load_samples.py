"""`.npz` artifacts -> arrays: no pickles, bounded, only what is needed."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from boardlift.errors import InvalidInputError
from boardlift.npz import NpzError, NpzTooLargeError, read_npz
from numpy.typing import NDArray

Array = NDArray[Any]


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
        arrays = read_npz(path, samples=samples)
        for array in arrays.values():
            if array.dtype.kind not in "fiub":
                raise NpzError(f"arrays of type {array.dtype} are not numbers")
    except NpzTooLargeError as error:
        raise InvalidInputError(
            f"The {what} can't be read: {error}.", reason="SAMPLES_TOO_LARGE", remedy="Send fewer samples."
        ) from error
    except NpzError as error:
        raise InvalidInputError(
            f"The {what} can't be read: {error}.",
            reason="SAMPLES_UNREADABLE",
            remedy="Send an .npz of plain numeric arrays, one per tensor, [N, ...].",
        ) from error
    if not arrays or any(a.ndim < 1 or len(a) == 0 for a in arrays.values()):
        raise InvalidInputError(
            f"The {what} hold no samples.", reason="SAMPLES_EMPTY", remedy="Give at least one sample per input."
        )
    return arrays


def save_arrays(arrays: dict[str, Array]) -> bytes:
    """The reverse: `.npz` bytes with a fixed time stamp, so that equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
