"""Remove from a local store what nobody has needed for long, while others use it.

An object goes when it is not among those that are kept by name and was last used before a moment that lies before the
caller read those names. Whoever comes to rely on an object in the meantime has renewed its time (`LocalStore.touch`),
which is looked at again under the lock. So a sweep needs no pause, and any number of them may run. A sweep that dies
leaves files `gone-...` at most, which the next one removes.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from boardlift_servicekit.artifacts import LocalStore

_GONE = "gone-"
_SHARD = re.compile(r"[0-9a-f]{2}")
_REST = re.compile(r"[0-9a-f]{62}")


@dataclass(frozen=True)
class StoredObject:
    """One object of a store."""

    used: float
    """When it was last used, seconds since the epoch."""
    sha256: str
    """Digest of its bytes."""
    size_bytes: int
    """Its length."""


@dataclass(frozen=True)
class Swept:
    """What a sweep left and what it removed."""

    objects: int = 0
    """Objects that are left."""
    size_bytes: int = 0
    """Their bytes."""
    freed_objects: int = 0
    """Objects that were removed."""
    freed_bytes: int = 0
    """Bytes that were removed, of objects and of broken uploads."""

    def __add__(self, later: Swept) -> Swept:
        """What two sweeps one after the other came to."""
        return Swept(
            later.objects,
            later.size_bytes,
            self.freed_objects + later.freed_objects,
            self.freed_bytes + later.freed_bytes,
        )


def list_objects(store: LocalStore) -> Iterator[StoredObject]:
    """Yield the complete objects of a store, in no order; files of other names are none of ours."""
    for shard in os.scandir(store.objects):
        if not _SHARD.fullmatch(shard.name):
            continue
        for entry in os.scandir(shard.path):
            if not _REST.fullmatch(entry.name):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # another sweep was quicker
            yield StoredObject(status.st_mtime, shard.name + entry.name, status.st_size)


def sweep_store(store: LocalStore, kept: Collection[str], unused_since: float, most_bytes: int | None = None) -> Swept:
    """Remove objects.

    Args:
        store: The store.
        kept: Digests that stay, whatever their age.
        unused_since: Only what was last used before this time may go, in seconds since the epoch. It must lie before
            the moment at which `kept` was read.
        most_bytes: Remove no more than needed to get the store below this size, what was used longest ago first; None
            removes all that may go.

    Returns:
        What is left and what was removed.
    """
    count = total = freed = freed_bytes = 0
    may_go: list[tuple[float, str, int]] = []
    for item in list_objects(store):
        count += 1
        total += item.size_bytes
        if item.used < unused_since and item.sha256 not in kept:
            may_go.append((item.used, item.sha256, item.size_bytes))
    heapq.heapify(may_go)
    while may_go and (most_bytes is None or total - freed_bytes > most_bytes):
        _, sha256, size = heapq.heappop(may_go)
        if discard(store, sha256, unused_since):
            freed += 1
            freed_bytes += size
    return Swept(count - freed, total - freed_bytes, freed, freed_bytes)


def discard(store: LocalStore, sha256: str, unused_since: float) -> bool:
    """Remove one object unless it was used at or after a time; True when this call removed it."""
    path, gone = store.path(sha256), store.uploads / f"{_GONE}{sha256}"
    with store.locks.exclusive(sha256):
        try:
            if path.stat().st_mtime >= unused_since:
                return False
            path.replace(gone)
        except FileNotFoundError:
            return False
    gone.unlink(missing_ok=True)  # outside the lock: a large file takes a while
    return True


def sweep_partials(store: LocalStore, unused_since: float) -> int:
    """Remove what broken uploads, downloads and sweeps left; returns the bytes.

    Args:
        store: The store.
        unused_since: Uploads that received something at or after this time stay, to be gone on with.
    """
    freed = 0
    for entry in os.scandir(store.uploads):
        try:
            status = entry.stat(follow_symlinks=False)
            if entry.name.startswith(_GONE) or status.st_mtime < unused_since:
                Path(entry.path).unlink()
                freed += status.st_size
        except FileNotFoundError:
            continue  # it was completed, or another sweep was quicker
    return freed
