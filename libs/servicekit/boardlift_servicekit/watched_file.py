"""A value that is read from a file, and read again when the file changes: no restart for a new token."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import structlog
from boardlift.errors import BoardliftError, InvalidInputError

_LOG = structlog.get_logger(__name__)
LOOK_S = 1.0
"""Seconds between looks at a file."""
T = TypeVar("T")
_Mark = tuple[int, int, int]


class WatchedFile(Generic[T]):
    """The latest usable value of a file; a file that is away or can't be used leaves the value as it is.

    Each trouble is told once, until the file is usable again or another trouble comes. That an absent file changes
    nothing is on purpose: a mount that goes away must not lock everybody out; what is to end is written into the file.
    """

    def __init__(self, path: Path, read: Callable[[Path], T]) -> None:
        """Read `path` by `read` now.

        Raises:
            BoardliftError: What `read` raises for a file that it can't use; FILE_NOT_TEXT.
            OSError: The file can't be read.
        """
        self._path = path
        self._read = read
        self._told = ""
        self._mark = self._look()
        self._value = self._load()
        self._due = time.monotonic() + LOOK_S

    @property
    def value(self) -> T:
        """The value, at most `LOOK_S` older than the file."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + LOOK_S
            self._renew()
        return self._value

    def _renew(self) -> None:
        try:
            mark = self._look()
            if mark == self._mark:
                return
            self._mark = mark  # before it is read: a change meanwhile is seen next time
            self._value = self._load()
        except BoardliftError as error:
            self._tell("file_not_usable", f"{error.reason}: {error.message}")
        except OSError as error:
            self._mark = (0, 0, 0)
            self._tell("file_not_readable", str(error))
        else:
            self._told = ""
            _LOG.info("file_read_again", file=self._path.name)

    def _load(self) -> T:
        try:
            return self._read(self._path)
        except UnicodeDecodeError as error:
            raise InvalidInputError(
                f"{self._path.name} is not a text in UTF-8.",
                reason="FILE_NOT_TEXT",
                remedy="Write it anew.",
                metadata={"file": self._path.name},
            ) from error

    def _tell(self, event: str, trouble: str) -> None:
        if trouble != self._told:
            self._told = trouble
            _LOG.error(event, file=self._path.name, error=trouble)

    def _look(self) -> _Mark:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino
