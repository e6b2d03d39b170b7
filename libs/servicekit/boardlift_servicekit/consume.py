"""Take messages from a durable consumer, as many at a time as there are slots, and keep them while they are worked on.

One standing request asks for exactly the free slots; idle heartbeats show that it is still known to the server. While a
handler runs, the message is kept by beats. A handler that raises gives the message back with a delay.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

Handler = Callable[[Msg], Awaitable[None]]
_log = structlog.get_logger(__name__)
_LOOK_S: Final = 0.25
_CANCEL_S: Final = 5.0


async def acknowledge(message: Msg) -> None:
    """Confirm a message, once: after a server's crash the answer may never come, and redelivery is harmless."""
    try:
        await message.ack_sync(timeout=2)
    except (nats.errors.Error, asyncio.TimeoutError) as error:
        _log.debug("ack_not_confirmed", subject=message.subject, error=repr(error))


async def give_back(message: Msg, delay_s: float) -> None:
    """Let somebody else have the message after a delay."""
    try:
        await message.nak(delay=delay_s)
    except (nats.errors.Error, asyncio.TimeoutError) as error:
        _log.debug("nak_not_sent", subject=message.subject, error=repr(error))


@dataclass(frozen=True)
class Pace:
    """How a consumer is served."""

    expires_s: float = 30.0
    """Life of one request."""
    heartbeat_s: float = 5.0
    """Time between the server's signs of life while nothing is queued."""
    beat_s: float = 4.0
    """Time between our signs of life for a message in work; below half of the consumer's ack wait."""


class Slots:
    """How many messages may be in work at the same time, over one or several consumers."""

    def __init__(self, size: int) -> None:
        """Allow `size` messages at once."""
        self.size = size
        self.used = 0

    @property
    def free(self) -> int:
        """Messages that may still be taken."""
        return max(0, self.size - self.used)


class Consume:
    """A running consumer. Start it with `start`, end it with `stop`, hold it with `pause`."""

    def __init__(
        self, client: Client, stream: str, consumer: str, handler: Handler, *, slots: Slots, pace: Pace | None = None
    ) -> None:
        """Serve `consumer` of `stream`; several of them may share `slots`, then a message too many is given back."""
        self._client = client
        self._handler = handler
        self._slots = slots
        self._pace = pace or Pace()
        self._name = consumer
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._asked = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._paused = False
        self._heard = 0.0

    async def start(self) -> Consume:
        """Begin to take messages."""
        self._heard = time.monotonic()
        self._reconnects = self._client.stats["reconnects"]
        self._inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(self._inbox, cb=self._receive)
        await self._ask()
        self._watchdog = asyncio.create_task(self._watch())
        return self

    def pause(self) -> None:
        """Take no further message; those in work go on."""
        self._paused = True

    async def resume(self) -> None:
        """Take messages again."""
        if self._paused:
            self._paused = False
            await self._ask()

    async def stop(self, grace_s: float = 0.0) -> None:
        """Take nothing more, wait up to `grace_s` for handlers, then cancel them."""
        self._stopping = True  # first: a cancel alone can be swallowed by Python 3.11's wait_for
        self._watchdog.cancel()
        if not self._client.is_closed:
            await self._subscription.unsubscribe()
        if self._tasks and grace_s:
            await asyncio.wait(set(self._tasks), timeout=grace_s)
        for task in set(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=_CANCEL_S)
        await asyncio.gather(self._watchdog, return_exceptions=True)

    async def _ask(self) -> None:
        count = self._slots.free - self._asked
        if count <= 0 or self._stopping or self._paused or self._client.is_closed:
            return
        self._asked += count
        body = {
            "batch": count,
            "expires": int(self._pace.expires_s * 1e9),
            "idle_heartbeat": int(self._pace.heartbeat_s * 1e9),
        }
        try:
            await self._client.publish(self._subject, json.dumps(body).encode(), reply=self._inbox)
        except nats.errors.Error as error:
            self._asked -= count  # the watchdog asks again
            _log.debug("pull_not_sent", consumer=self._name, error=repr(error))

    async def _receive(self, message: Msg) -> None:
        self._heard = time.monotonic()
        headers = message.headers or {}
        status = headers.get("Status")
        if status == "100":
            return
        if status is None:
            self._asked = max(0, self._asked - 1)
            await self._take(message)
            return
        self._asked = max(0, self._asked - int(headers.get("Nats-Pending-Messages", self._asked)))
        if status in ("409", "503"):
            await asyncio.sleep(_LOOK_S)
        await self._ask()

    async def _take(self, message: Msg) -> None:
        if self._stopping or self._paused or not self._slots.free:
            await give_back(message, 0.0 if not self._slots.free else 0.5)
            return
        self._slots.used += 1
        task = asyncio.create_task(self._run(message))
        self._tasks.add(task)

    async def _run(self, message: Msg) -> None:
        beat = asyncio.create_task(self._beat(message))
        try:
            await self._handler(message)
        except asyncio.CancelledError:
            await give_back(message, 0.0)
            raise
        except Exception:  # noqa: BLE001 - the outermost boundary of a handler: the message must go back
            _log.exception("handler_failed", consumer=self._name, subject=message.subject)
            await give_back(message, 1.0)
        finally:
            beat.cancel()
            self._slots.used -= 1
            self._tasks.discard(asyncio.current_task())
            if not self._stopping:
                await self._ask()

    async def _beat(self, message: Msg) -> None:
        while not message.is_acked:
            await asyncio.sleep(self._pace.beat_s)
            try:
                await message.in_progress()
            except (nats.errors.Error, asyncio.TimeoutError) as error:
                if isinstance(error, nats.errors.ConnectionClosedError):
                    return
                _log.debug("beat_not_sent", consumer=self._name, error=repr(error))

    async def _watch(self) -> None:
        """Ask again when the server has forgotten the request: after a reconnect, or when its heartbeats stop."""
        while not self._stopping and not self._client.is_closed:
            await asyncio.sleep(_LOOK_S)
            reconnects = self._client.stats["reconnects"]
            silent = time.monotonic() - self._heard > 2 * self._pace.heartbeat_s
            if reconnects != self._reconnects or silent:
                self._reconnects = reconnects
                self._heard = time.monotonic()
                self._asked = 0
            await self._ask()
