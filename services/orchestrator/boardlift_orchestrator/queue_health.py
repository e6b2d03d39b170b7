"""Know whether the queue can be reached and stores what it is given, and say so by gRPC health and in words.

A nats-server whose disk was full answers every look and stores nothing any more, also when there is room again, until
it is started anew (measured with nats-server 2.15.1): only a write tells.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import nats.errors
import nats.js.errors as jetstream_errors
import structlog
from boardlift.errors import UnavailableError
from boardlift.v1 import toolchain_pb2
from boardlift_servicekit.buckets import Bucket
from boardlift_servicekit.messaging import LOST
from boardlift_servicekit.server import Host
from nats.aio.client import Client

SERVICES: Final = ("", "boardlift.v1.JobService", "boardlift.v1.BoardService")
_SUBJECT: Final = "$KV.LEASE.alive"
_LOOK_S: Final = 1.0
_AWAY_S: Final = 3.0
_WRITE_EVERY_S: Final = 5.0
_PATIENCE_S: Final = 20.0
"""Writes that fail for so long are no restart and no election of a leader."""
_LIFE_S: Final = 60
_log = structlog.get_logger(__name__)


class QueueHealth:
    """Looks after one connection."""

    def __init__(self, client: Client, jobs: Bucket) -> None:
        """Look after `client`.

        Args:
            client: Written over, under a name that all orchestrators share: what it says matters to nobody.
            jobs: Its writes are watched: each stream ends by itself when the disk is full.
        """
        self._client = client
        self._jobs = jobs
        self._js = client.jetstream()
        self._connected = self._stored = time.monotonic()
        self._written = float("-inf")

    @property
    def stores(self) -> bool:
        """False when the server has answered for a while and stored nothing."""
        waits_since = max(min(self._stored, self._jobs.oldest_write), self._connected)
        return not self._client.is_connected or time.monotonic() - waits_since < _PATIENCE_S

    def check(self) -> None:
        """Refuse what needs the queue to store something, instead of waiting for it in vain.

        Raises:
            UnavailableError: NATS_NOT_STORING.
        """
        if not self.stores:
            finding = _NOT_STORING
            raise UnavailableError(finding.message, reason=finding.code, remedy=finding.remedy)

    def findings(self) -> list[toolchain_pb2.Finding]:
        """What an operator should know."""
        if not self._client.is_connected:
            return [_AWAY]
        return [] if self.stores else [_NOT_STORING]

    async def run(self, host: Host) -> None:
        """Look until cancelled; answer NOT_SERVING while the queue is of no use for more than a moment."""
        serving, away_since = True, 0.0
        while True:
            await asyncio.sleep(_LOOK_S)
            await self.look()
            now = time.monotonic()
            away_since = 0.0 if self._client.is_connected else away_since or now
            wanted = self.stores and (not away_since or now - away_since < _AWAY_S)
            if wanted != serving:
                serving = wanted
                for finding in self.findings():
                    _log.error("queue_of_no_use", reason=finding.code, remedy=finding.remedy)
                for service in SERVICES:
                    await host.set_serving(service, serving)

    async def look(self) -> None:
        """Write something now and then."""
        now = time.monotonic()
        if not self._client.is_connected:
            self._connected = now
            return
        if now - self._written < _WRITE_EVERY_S:
            return
        self._written = now
        try:
            await self._js.publish(_SUBJECT, b"1", timeout=5, headers={"Nats-TTL": f"{_LIFE_S}s"})
            self._stored = time.monotonic()
        except (*LOST, nats.errors.Error, jetstream_errors.APIError) as error:
            _log.info("queue_did_not_store", error=repr(error))


_AWAY: Final = toolchain_pb2.Finding(
    code="NATS_UNAVAILABLE",
    severity=toolchain_pb2.Finding.SEVERITY_ERROR,
    message="The NATS server can't be reached; jobs wait.",
    remedy="Start nats-server.",
)
_NOT_STORING: Final = toolchain_pb2.Finding(
    code="NATS_NOT_STORING",
    severity=toolchain_pb2.Finding.SEVERITY_ERROR,
    message="The NATS server answers and stores nothing; jobs wait.",
    remedy="Make room on its disk, then start nats-server anew.",
)
