"""Locks that keep "it is there, I need it" and "nobody has needed it for long, remove it" apart, between processes.

Whoever relies on an object renews its time under the shared lock of its shard; whoever removes one looks at that time
and renames the object under the exclusive lock. The locks are the system's own: they end with the process that holds
them, however it dies, and hold between hosts on a shared file system that knows POSIX locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class ObjectLocks:
    """One lock file for each of the 256 shards of a store."""

    def __init__(self, folder: Path) -> None:
        """Keep lock files in `folder`, made when absent."""
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def shared(self, sha256: str) -> Iterator[None]:
        """Hold off removals of a digest's shard; for moments, since it blocks the thread."""
        with self._hold(sha256, fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def exclusive(self, sha256: str) -> Iterator[None]:
        """Hold off everybody who relies on objects of a digest's shard; for moments."""
        with self._hold(sha256, fcntl.LOCK_EX):
            yield

    @contextlib.contextmanager
    def _hold(self, sha256: str, kind: int) -> Iterator[None]:
        handle = os.open(self._folder / f"{sha256[:2]}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, kind)
            yield
        finally:
            os.close(handle)
