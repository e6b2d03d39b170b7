"""The one reader of `.npz` files, for the client and every service: no pickles, bounded, and no larger than it must be.

A file may unpack to `MAX_BYTES` in at most `MAX_MEMBERS` members, whatever it is: a dataset, calibration samples, the
outputs of a model. What its headers promise is held against the member's size before memory is taken for it.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from boardlift._local_files import why

MAX_BYTES: Final = 4 << 30
"""Bytes that a file may unpack to: 4 GiB, as large as an artifact may be."""
MAX_MEMBERS: Final = 256
"""Arrays and other members that a file may have."""
_SUFFIX: Final = ".npy"
_PIECE: Final = 1 << 20
"""Bytes read at a time: an archive's stream joins what it is asked for in memory first, which takes 6 times as long."""
_HEADERS: Final[Mapping[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}

Array = npt.NDArray[Any]


class NpzError(ValueError):
    """A file that can't be read, with why in words."""


class NpzTooLargeError(NpzError):
    """A file that unpacks to more than is allowed."""


def read_npz(path: Path, *, samples: int | None = None, also: Mapping[str, int] | None = None) -> dict[str, Array]:
    """Read the arrays of a file.

    Args:
        path: The file.
        samples: Rows `array[:samples]` to read of each array; None reads all.
        also: Names of members that are no arrays and may be there, with the bytes each may have; None allows any.

    Returns:
        Name -> array, in the file's order.

    Raises:
        NpzTooLargeError: It unpacks to more than `MAX_BYTES`, or has more than `MAX_MEMBERS` members.
        NpzError: It is no such file, is cut off, or holds something other than plain arrays.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            check_size(members)
            for member in members:
                if also is not None and not member.filename.endswith(_SUFFIX):
                    _check_other(member, also)
            arrays = [member for member in members if member.filename.endswith(_SUFFIX)]
            return {member.filename[: -len(_SUFFIX)]: _read(archive, member, samples) for member in arrays}
    except NpzError:
        raise
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError) as error:
        raise NpzError(why(error)) from error


def check_size(members: list[zipfile.ZipInfo]) -> None:
    """Refuse an archive that unpacks to too much.

    Raises:
        NpzTooLargeError: It does.
    """
    total = sum(member.file_size for member in members)
    if total > MAX_BYTES:
        raise NpzTooLargeError(f"it unpacks to {total} bytes, more than {MAX_BYTES}")
    if len(members) > MAX_MEMBERS:
        raise NpzTooLargeError(f"it has {len(members)} members, more than {MAX_MEMBERS}")


def _check_other(member: zipfile.ZipInfo, also: Mapping[str, int]) -> None:
    if member.filename not in also:
        raise NpzError(f"unknown member {member.filename!r}")
    if member.file_size > also[member.filename]:
        raise NpzTooLargeError(f"{member.filename} is larger than {also[member.filename]} bytes")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, samples: int | None) -> Array:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in _HEADERS:
            raise NpzError(f"{member.filename} has the unknown version {version}")
        shape, fortran, dtype = _HEADERS[version](stream)
        if dtype.hasobject:
            raise NpzError(f"{member.filename} holds Python objects, not numbers")
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > member.file_size:
            raise NpzError(f"{member.filename} is shorter than its header says")
        if samples is not None and shape and not fortran:
            shape = (min(samples, shape[0]), *shape[1:])
        array = np.empty(shape[::-1] if fortran else shape, dtype)
        _fill(stream, array, member.filename)
    array = array.T if fortran else array
    return array[:samples] if samples is not None and array.ndim else array


def _fill(stream: IO[bytes], array: Array, name: str) -> None:
    if not array.nbytes:
        return
    rest = array.reshape(-1).view(np.uint8).data
    while rest.nbytes:
        got = stream.readinto(rest[:_PIECE])  # type: ignore[attr-defined]  # the stream of an archive has it
        if not got:
            raise NpzError(f"{name} is cut off")
        rest = rest[got:]
