"""Local files that can't be read or written: why, in the same words whatever wanted them."""

from __future__ import annotations

import errno
import mmap
import zipfile
from pathlib import Path

from boardlift.errors import InvalidInputError

_WHY = {
    errno.ENOENT: "there is no such file",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a folder on the way to it is a file",
    errno.EACCES: "you have no right to it",
    errno.EPERM: "you have no right to it",
    errno.EROFS: "its file system is read-only",
}
"""Number of a system's error -> what it means for a file that a user named."""


def why(error: BaseException) -> str:
    """Return in words why a file can't be used: a clause without a full stop."""
    if isinstance(error, OSError) and error.strerror:
        return _WHY.get(error.errno or 0, error.strerror)
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    text = str(error)
    if "allow_pickle" in text:  # numpy's advice would load code from the file
        return "it holds Python objects, not numbers"
    if isinstance(error, zipfile.BadZipFile):
        return "it is no .npz, or cut off" if "not a zip file" in text else f"it is damaged: {text}"
    return text or type(error).__name__


def unreadable(
    path: Path, error: BaseException, *, reason: str, remedy: str, kind: str = "", called: str = ""
) -> InvalidInputError:
    """Return the error for a file that can't be read.

    Args:
        path: The file as the user named it.
        error: What stopped the reading.
        reason: Stable code.
        remedy: What to do about it.
        kind: What it was read as: "an ONNX model"; empty when any file would do.
        called: What to call it where its own name says nothing, as on a server; empty for its name.
    """
    read_as = f" as {kind}" if kind else ""
    return InvalidInputError(
        f"{called or path.name} can't be read{read_as}: {'it is empty' if _is_empty(path) else why(error)}.",
        reason=reason,
        remedy=remedy,
        metadata={} if called else {"file": str(path)},
    )


def map_file(path: Path) -> memoryview:
    """Return a file's bytes, mapped; they are given back when nobody holds them any more.

    Raises:
        OSError: It can't be read.
        ValueError: It is empty.
    """
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def model_unreadable(path: Path, error: BaseException) -> InvalidInputError:
    """Return the error for a file that is no ONNX model (`MODEL_UNREADABLE`)."""
    remedy = "Name an .onnx file, whole as it was exported."
    return unreadable(path, error, reason="MODEL_UNREADABLE", remedy=remedy, kind="an ONNX model")


def _is_empty(path: Path) -> bool:
    try:
        return path.is_file() and not path.stat().st_size
    except OSError:
        return False
