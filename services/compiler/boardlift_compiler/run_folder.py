"""A private work folder per run, with neutral names, that leaves nothing behind.

Layout: ``<root>/boardlift-run-<16 hex>/`` holding the run's files, ``t/`` for the tool's temporary files, ``h/`` as its
home. The name's length is fixed because the tool writes it into the compiled code. A lock file tells a live run from
the remains of a killed service, which :func:`sweep` removes.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PREFIX = "boardlift-run-"
LOCK = "lock"


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path
    """Work folder: the tool's current directory."""

    @property
    def temporary(self) -> Path:
        """Where the tool puts its temporary files."""
        return self.path / "t"

    @property
    def home(self) -> Path:
        """The tool's home."""
        return self.path / "h"

    def free_bytes(self) -> int:
        """Free space on the folder's file system, in bytes."""
        return shutil.disk_usage(self.path).free


@contextmanager
def run_folder(root: Path) -> Iterator[RunFolder]:
    """Make a run folder under ``root`` and remove it in the end, whatever happened."""
    root.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(root / f"{PREFIX}{secrets.token_hex(8)}")
    folder.path.mkdir(mode=0o700)
    lock = os.open(folder.path / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder.temporary.mkdir()
        folder.home.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)
        os.close(lock)


def sweep(root: Path) -> list[str]:
    """Remove run folders whose service is gone; return their names."""
    removed = []
    for path in sorted(root.glob(f"{PREFIX}*")):
        if path.is_symlink() or not path.is_dir() or path.stat().st_uid != os.getuid():
            continue
        try:
            lock = os.open(path / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # not a run folder of ours, or one that is being made right now
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path.name)
        except BlockingIOError:
            continue  # a live run
        finally:
            os.close(lock)
    return removed
