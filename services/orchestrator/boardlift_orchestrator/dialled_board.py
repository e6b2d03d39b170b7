"""One board that is dialled: while this orchestrator holds the board's lease, its queue is served from here.

The same dispatcher that a pulling agent runs takes the board's tasks; its runner calls the agent. It takes nothing
while the board is out of rotation, a person has it, or the wrong board answers; what is in the way is kept with the
lease, for lists. When the board's sign of life ends, or the lease, the stage goes back to the queue. While NATS itself
is away neither can be told, nobody else can take the lease, and what runs goes on.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import structlog
from boardlift.errors import BoardliftError, UnavailableError
from boardlift.v1 import queue_pb2, toolchain_pb2
from boardlift_servicekit import channels
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.consume import Pace
from boardlift_servicekit.dispatcher import Dispatcher, ResultStore
from boardlift_servicekit.lease import Lease
from boardlift_servicekit.messaging import board_consumer, pool_consumer
from nats.aio.client import Client

from boardlift_orchestrator.begun_elsewhere import begun_elsewhere
from boardlift_orchestrator.board_watch import BoardWatch
from boardlift_orchestrator.dial_address import DialRules, find_endpoint
from boardlift_orchestrator.dial_runner import DialRunner, Wanted
from boardlift_orchestrator.registry import DIAL_PREFIX, Buckets, Registry, not_dialled

LOOK_S: Final = 1.0
"""Time between looks at a board."""
_CHECK_EVERY_S: Final = 5.0
_STOP_S: Final = 8.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class DialParts:
    """What all dialled boards share."""

    client: Client
    """NATS."""
    store: ResultStore
    """Receives results."""
    registry: Registry
    """Knows signs of life and leases."""
    rules: DialRules
    """Where boards may be dialled."""
    channel: ChannelSettings
    """CA and own certificate; its token is never sent to a board."""
    tokens: Path | None
    """Folder with one token per board id."""
    owner: str
    """Name of this orchestrator."""
    pace: Pace
    """How the queue is served."""
    life_s: int
    """Life of a board's lease, in whole seconds."""
    patience_s: float
    """Seconds for which an agent that stopped answering in the middle of a stage is waited for."""


class DialledBoard:
    """Looks after one board until it is stopped."""

    def __init__(self, parts: DialParts, watch: BoardWatch, record: queue_pb2.BoardRecord) -> None:
        """Dial the board that registered as `record`; `watch` knows signs of life and leases."""
        self._parts = parts
        self._watch = watch
        self._told = False
        self._record = record
        self.id = record.info.id
        self._jobs = Buckets.open(parts.client).jobs
        self._lease = Lease(parts.client.jetstream(), DIAL_PREFIX + self.id, parts.owner, life_s=parts.life_s)
        self._findings: list[toolchain_pb2.Finding] = []
        self._trouble: BoardliftError | None = None
        self._trusted = False
        self._checked = float("-inf")
        self._forget()
        self._dispatcher: Dispatcher | None = None
        self._channel: Any = None
        self._opened_as: tuple[str, ...] = ()
        self._renewed = float("-inf")
        self._wake = asyncio.Event()
        self._stopping = False

    async def start(self) -> DialledBoard:
        """Begin to look after it."""

        async def on_lease(_message: Any) -> None:
            self._told = True
            self._wake.set()

        self._heard = await self._parts.client.subscribe(f"ctl.board.{self.id}", cb=on_lease)
        self._task = asyncio.create_task(self._run(), name=f"dial {self.id}")
        return self

    async def stop(self) -> None:
        """Give its stage back to the queue, and the board to whoever dials it next."""
        self._stopping = True
        self._wake.set()
        await asyncio.wait({self._task}, timeout=_STOP_S)  # a look that is cut short could leave a dispatcher behind
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if not self._parts.client.is_closed:
            await self._heard.unsubscribe()
        await self._leave()

    def follow(self, record: queue_pb2.BoardRecord) -> None:
        """Take note of a new registration; another address or another start of the board ends what runs there."""
        self._record = record
        self._wake.set()

    @property
    def busy_slots(self) -> int:
        """Stages that run there now."""
        return self._dispatcher.busy_slots if self._dispatcher else 0

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self._look()
            except BoardliftError as error:
                _log.warning("dial_look_failed", board=self.id, reason=error.reason, error=error.message)
            except Exception:  # noqa: BLE001 - the outermost boundary of this task: the next look tries again
                _log.exception("dial_look_failed", board=self.id)
            try:
                await asyncio.wait_for(self._wake.wait(), LOOK_S)
            except asyncio.TimeoutError:
                continue
            self._wake.clear()

    async def _look(self) -> None:
        if self._told:
            await self._watch.read()
            self._told = False
        sign = self._watch.presence(self.id)
        if sign is None and not self._watch.recovering:
            await self._leave()
            return
        held = await self._hold()
        if held is False:
            await self._hang_up()
            self._forget()
            return
        if sign is None or held is None:
            self._pause()
            return
        if self._opened_as not in ((), _dialled_as(self._record)):
            await self._hang_up()
            self._forget()
        if self._trouble is not None:
            error, self._trouble = self._trouble, None
            await self._report([_finding(error, self.id)])
        now = time.monotonic()
        if not self.busy_slots and now - self._checked >= _CHECK_EVERY_S:  # a check would disturb a measurement
            self._checked = now
            await self._report(await self._examine())
        if self._dispatcher is None:
            return
        if self._trusted and sign.state.in_rotation and not self._watch.is_leased(self.id):
            await self._dispatcher.resume()
        else:
            self._pause()

    def _pause(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher.pause()

    async def _hold(self) -> bool | None:
        """Take or renew the lease; None when NATS does not say whether it is held: nobody else can take it then."""
        had = self._lease.revision
        if not had and not self._watch.is_vacant(self.id):
            return False
        if had and time.monotonic() - self._renewed < self._parts.life_s / 3:
            return True
        held = await self._lease.step()
        if not held and self._lease.revision:
            return None
        if not held and had:  # it ended while NATS was away: it is ours again unless somebody else was quicker
            held = await self._lease.step()
        self._renewed = time.monotonic()
        return held

    async def _examine(self) -> list[toolchain_pb2.Finding]:
        """Make sure that the right board answers, and serve its queue from then on."""
        try:
            if self._dispatcher is None:
                await self._open(self._record)
            await self._runner.check()
        except BoardliftError as error:
            await self._hang_up()
            return [_finding(error, self.id)]
        if self._dispatcher is None:
            consumers = (board_consumer(self.id), pool_consumer(self._record.info.target))
            parts = self._parts
            dispatcher = Dispatcher(
                parts.client,
                parts.store,
                self._runner,
                worker=self.id,
                consumers=consumers,
                slots=1,
                pace=parts.pace,
                refuse=lambda task: begun_elsewhere(task, self.id, self._jobs, parts.registry),
            )
            dispatcher.pause()
            self._dispatcher = await dispatcher.start()
        return []

    async def _open(self, record: queue_pb2.BoardRecord) -> None:
        await self._hang_up()
        self._opened_as = _dialled_as(record)
        parts, info = self._parts, record.info
        target = await find_endpoint(info.address, record.peer, parts.rules)
        try:
            self._channel = channels.connect(target, self._credentials(), server_name=f"{self.id}.board")
        except OSError as error:
            raise UnavailableError(
                f"The credentials to dial {self.id} with can't be read: {error.strerror}.",
                reason="DIAL_CREDENTIALS_UNREADABLE",
                remedy="Let the orchestrator read BOARDLIFT_DIAL_TOKENS and its certificates.",
            ) from error
        self._runner = DialRunner(
            self._channel,
            Wanted(self.id, info.boot_id, info.address),
            patience_s=parts.patience_s,
            check_s=min(5.0, parts.life_s / 3),
            on_trouble=self._on_trouble,
        )

    def _credentials(self) -> ChannelSettings:
        """The board's own token, never the orchestrator's: whoever sits at the address could use it elsewhere."""
        token = self._parts.tokens / self.id if self._parts.tokens else None
        return replace(self._parts.channel, token_file=token if token and token.is_file() else None)

    def _on_trouble(self, error: BoardliftError) -> None:
        """Say so, and take nothing more before the board has been checked again; both are done at once."""
        self._pause()
        self._trouble, self._trusted, self._checked = error, False, float("-inf")
        self._wake.set()

    async def _report(self, findings: list[toolchain_pb2.Finding]) -> None:
        self._trusted = not findings
        if findings != self._findings:
            codes = [finding.code for finding in findings]
            _log.info("dialling", board=self.id, address=self._record.info.address, in_the_way=codes)
            self._findings = findings
            self._lease.value = self._said(findings)
            await self._lease.step()

    def _said(self, findings: list[toolchain_pb2.Finding]) -> bytes:
        return queue_pb2.BoardDial(dialler=self._parts.owner, findings=findings).SerializeToString()

    def _forget(self) -> None:
        """Nothing is known of the board; it is checked next."""
        self._trusted = False
        self._findings = [not_dialled(self.id)]
        self._lease.value = self._said(self._findings)
        self._checked = float("-inf")

    async def _hang_up(self) -> None:
        """End what runs there; the stage goes back to the queue."""
        dispatcher, self._dispatcher = self._dispatcher, None
        channel, self._channel = self._channel, None
        self._opened_as = ()
        if dispatcher is not None:
            await dispatcher.stop()
        if channel is not None:
            await channel.close()

    async def _leave(self) -> None:
        await self._hang_up()
        self._forget()
        await self._lease.release()


def _dialled_as(record: queue_pb2.BoardRecord) -> tuple[str, ...]:
    info = record.info
    return info.address, info.boot_id, info.target


def _finding(error: BoardliftError, board: str) -> toolchain_pb2.Finding:
    return toolchain_pb2.Finding(
        code=error.reason,
        severity=toolchain_pb2.Finding.SEVERITY_ERROR,
        message=error.message,
        subject=board,
        remedy=error.remedy,
    )
