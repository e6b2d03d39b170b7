"""Key-value buckets with compare-and-set and a life time per key.

nats-py's own key-value class drops the life time on update and returns phantom entries for expired keys, so the
bucket's stream is read and written directly; the format is the same, and the `nats kv` command line can read it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import nats.js.errors as jetstream_errors
from boardlift.errors import ConflictError
from nats.aio.client import Client
from nats.js import JetStreamContext

from boardlift_servicekit.messaging import read_after, retry

_WRONG_SEQUENCE = (10071, 10164)
_AT_ONCE = 1000
REMOVAL_S = 900
"""Seconds for which the mark of a removed key stays: longer than the streams' window for doubles."""


@dataclass(frozen=True)
class Entry:
    """One key as stored."""

    key: str
    """The key."""
    value: bytes
    """Its value; never empty."""
    revision: int
    """Its revision: what a compare-and-set compares."""


class Bucket:
    """One bucket."""

    def __init__(self, client: Client, js: JetStreamContext, name: str) -> None:
        """Use the bucket `name`, which `messaging.ensure_streams` has made."""
        self._client = client
        self._js = js
        self._stream = f"KV_{name}"
        self._prefix = f"$KV.{name}."
        self._writes: dict[object, float] = {}

    @property
    def oldest_write(self) -> float:
        """When the oldest write began that has no answer yet, by `time.monotonic`; infinity when there is none."""
        return min(self._writes.values(), default=math.inf)

    async def get(self, key: str) -> Entry | None:
        """Return the newest value from the stream's leader, or None when there is none."""
        try:
            message = await retry(lambda: self._js.get_last_msg(self._stream, self._prefix + key))
        except jetstream_errors.NotFoundError:
            return None
        if not message.data:
            return None
        return Entry(key, message.data, message.seq or 0)

    async def put(self, key: str, value: bytes, *, revision: int | None = None, life_s: int = 0) -> int:
        """Write a key and return its new revision.

        Args:
            key: The key.
            value: The value.
            revision: Revision that must be the newest one; 0 for a key that must not exist; None for any.
            life_s: Seconds until the key vanishes; 0 keeps it.

        Raises:
            ConflictError: Somebody else wrote in between, or a try of ours whose answer was lost did.
        """
        headers = {}
        if revision is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(revision)
        if life_s:
            headers["Nats-TTL"] = f"{life_s}s"
        this = object()
        self._writes[this] = time.monotonic()
        try:
            answer = await retry(lambda: self._js.publish(self._prefix + key, value, headers=dict(headers), timeout=2))
        except jetstream_errors.APIError as error:
            if getattr(error, "err_code", 10071) not in _WRONG_SEQUENCE:
                raise
            raise ConflictError(f"{key} was changed by somebody else", metadata={"key": key}) from error
        finally:
            del self._writes[this]
        return int(answer.seq)

    async def remove(self, key: str) -> None:
        """Remove a key; one that does not exist is fine."""
        headers = {"KV-Operation": "PURGE", "Nats-Rollup": "sub", "Nats-TTL": f"{REMOVAL_S}s"}
        await retry(lambda: self._js.publish(self._prefix + key, b"", headers=dict(headers), timeout=2))

    async def identity(self) -> str:
        """Return what tells this bucket from any other of its name: when it was made, to the nanosecond."""
        info = await retry(lambda: self._js.stream_info(self._stream))
        return f"{self._stream} {info.created}"

    async def entries(self) -> list[Entry]:
        """Return all keys with their values, by key."""
        found: dict[str, Entry] = {}
        await self.changes(found, 0)
        return sorted(found.values(), key=lambda entry: entry.key)

    async def changes(self, into: dict[str, Entry], after: int, removed: set[str] | None = None) -> int:
        """Read what was written after a revision: changed keys go into `into`, removed ones out of it.

        Args:
            into: Receives the entries.
            after: Revision to read on from.
            removed: Receives the keys that were removed; a removal is seen for REMOVAL_S.

        Returns:
            The newest revision read, to go on from.
        """
        gone = set() if removed is None else removed
        more = True
        while more:
            messages, more = await read_after(self._client, self._stream, f"{self._prefix}>", after, most=_AT_ONCE)
            for message in messages:
                after = message.sequence
                key = message.subject[len(self._prefix) :]
                if message.data:
                    into[key] = Entry(key, message.data, message.sequence)
                    gone.discard(key)
                else:
                    into.pop(key, None)
                    gone.add(key)
            more = more and bool(messages)
        return after
