"""A lease: one holder at a time, ends by itself when it is not renewed, with a fencing token."""

from __future__ import annotations

import time

import nats.errors
import nats.js.errors as jetstream_errors
from nats.js import JetStreamContext

_HELD_BY_OTHER = (10071, 10164)


class Lease:
    """Call `step` every third of its life time. `revision` is the fencing token while it is held.

    `value` is what others read under the key while it is held: the owner's name unless the owner puts something else,
    with its name in it: a lease with this very value is taken for its own.
    """

    def __init__(self, js: JetStreamContext, key: str, owner: str, life_s: int = 6) -> None:
        """Contend for the lease `key` as `owner`; it ends `life_s` whole seconds after the last renewal."""
        self._js = js
        self._subject = f"$KV.LEASE.{key}"
        self.value = owner.encode()
        self._life_s = life_s
        self._until = 0.0
        self.revision = 0

    async def step(self) -> bool:
        """Take or renew the lease; True while it is held."""
        try:
            if self.revision:
                return await self._write(self.revision)
            last = await self._vacant_revision()
            return last is not None and await self._write(last)
        except jetstream_errors.APIError as error:
            if getattr(error, "err_code", _HELD_BY_OTHER[0]) not in _HELD_BY_OTHER:
                raise
            self.revision = 0
            return False
        except nats.errors.Error:
            return bool(self.revision) and time.monotonic() < self._until

    async def release(self) -> None:
        """Give it up at once, if it is held."""
        if not self.revision:
            return
        headers = {
            "Nats-Expected-Last-Subject-Sequence": str(self.revision),
            "KV-Operation": "DEL",
            "Nats-TTL": f"{self._life_s}s",
        }
        self.revision = 0
        try:
            await self._js.publish(self._subject, b"", timeout=1, headers=headers)
        except (nats.errors.Error, jetstream_errors.APIError):
            return  # it ends by itself

    async def _vacant_revision(self) -> int | None:
        try:
            entry = await self._js.get_last_msg("KV_LEASE", self._subject)
        except jetstream_errors.NotFoundError:
            return 0
        ours = (
            entry.data == self.value
        )  # a renewal whose answer was lost, or that waited for the connection to come back
        return entry.seq if ours or not entry.data else None

    async def _write(self, last: int) -> bool:
        headers = {"Nats-Expected-Last-Subject-Sequence": str(last), "Nats-TTL": f"{self._life_s}s"}
        asked = time.monotonic()
        answer = await self._js.publish(self._subject, self.value, timeout=1, headers=headers)
        self.revision, self._until = answer.seq, asked + self._life_s * 0.7
        return True
