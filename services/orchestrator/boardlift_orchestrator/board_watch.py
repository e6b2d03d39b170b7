"""Signs of life and leases of all boards, read by one request each for all that are dialled from here.

What is known may be a second old. Whoever acts on a lease that is vacant here still takes it by compare-and-set.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from boardlift.v1 import queue_pb2
from boardlift_servicekit.buckets import Bucket, Entry

from boardlift_orchestrator.registry import DIAL_PREFIX, LEASE_PREFIX, read_presence

_FORGET_S: Final = 30.0
"""After a pause this long all is read anew: the marks of what ended meanwhile may be gone."""
_RETURN_S: Final = 12.0
"""After an outage of NATS boards need a moment to say that they live: they do so every 5 s."""


class BoardWatch:
    """What all dialled boards of one orchestrator share."""

    def __init__(self, presence: Bucket, leases: Bucket, life_s: float) -> None:
        """Follow two buckets.

        Args:
            presence: `BoardPresence` by board.
            leases: Leases of people and of orchestrators.
            life_s: Life of an orchestrator's lease on a board: one that is not renewed for so long has ended.
        """
        self._buckets = (presence, leases)
        self._life_s = life_s
        self._found: tuple[dict[str, Entry], dict[str, Entry]] = ({}, {})
        self._after = (0, 0)
        self._seen: dict[str, tuple[int, float]] = {}
        self._lock = asyncio.Lock()
        self._read = self._well_since = float("-inf")

    async def read(self) -> None:
        """Read what has changed.

        Raises:
            UnavailableError: NATS does not answer; what was known stays.
        """
        async with self._lock:
            begun = time.monotonic()
            anew = begun - self._read > _FORGET_S
            found = ({}, {}) if anew else self._found
            try:
                pairs = zip(self._buckets, found, (0, 0) if anew else self._after, strict=True)
                presence, leases = [await bucket.changes(into, after) for bucket, into, after in pairs]
            except BaseException:
                self._well_since = float("inf")
                raise
            now = time.monotonic()
            self._found, self._after, self._read = found, (presence, leases), begun
            if self._well_since > now:
                self._well_since = now
            seen = {key: (entry.revision, now) for key, entry in found[1].items()}
            self._seen = {
                key: self._seen[key] if self._seen.get(key, (0, now))[0] == new[0] else new for key, new in seen.items()
            }

    @property
    def recovering(self) -> bool:
        """True while NATS is away, and for a moment after: that a sign of life is missing means nothing then."""
        return time.monotonic() - self._well_since < _RETURN_S

    def presence(self, board: str) -> queue_pb2.BoardPresence | None:
        """Return a board's sign of life."""
        entry = self._found[0].get(board)
        return read_presence(entry) if entry else None

    def is_leased(self, board: str) -> bool:
        """Tell whether a person has a board."""
        entry = self._found[1].get(LEASE_PREFIX + board)
        return entry is not None and _end_s(entry) > time.time()

    def is_vacant(self, board: str) -> bool:
        """Tell whether no orchestrator seems to hold a board. A lease that ends by itself leaves no mark.

        After an outage the holder comes first: it may have a call running, and another one would begin anew.
        """
        key = DIAL_PREFIX + board
        if self.recovering:
            return False
        return key not in self._found[1] or time.monotonic() - self._seen[key][1] > self._life_s


def _end_s(entry: Entry) -> float:
    return float(queue_pb2.BoardLease.FromString(entry.value).end_time.ToNanoseconds() / 1e9)
