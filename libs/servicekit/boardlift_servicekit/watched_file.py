"""A value that is read from a file, and read again when the file changes: no restart for a new token."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import structlog
from boardlift.errors import BoardliftError

_LOG = structlog.get_logger(__name__)
LOOK_S = 1.0
"""Seconds between looks at a file."""
T = TypeVar("T")
_Mark = tuple[int, int, int]


class WatchedFile(Generic[T]):
    """The latest usable value of a file; a file that can't be used leaves the value as it is, and is told once."""

    def __init__(self, path: Path, read: Callable[[Path], T]) -> None:
        """Read `path` by `read` now.

        Raises:
            BoardliftError: What `read` raises for a file that it can't use.
            OSError: The file can't be read.
        """
        self._path = path
        self._read = read
        self._mark = self._look()
        self._value = read(path)
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
            self._value = self._read(self._path)
            _LOG.info("file_read_again", file=self._path.name)
        except BoardliftError as error:
            _LOG.error("file_not_usable", file=self._path.name, reason=error.reason, error=error.message)
        except OSError as error:
            self._mark = (0, 0, 0)
            _LOG.error("file_not_readable", file=self._path.name, error=str(error))

    def _look(self) -> _Mark:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino
