"""Say clearly that a disk is full, wherever that shows: in a write, in closing a file, in making a folder."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from boardlift.errors import ExhaustedError


@contextlib.contextmanager
def named_full_disk() -> Iterator[None]:
    """Name the error of a full disk in the body.

    Raises:
        ExhaustedError: DISK_FULL.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ExhaustedError(
            "The artifact store's disk is full.", reason="DISK_FULL", remedy="Free some space."
        ) from error
