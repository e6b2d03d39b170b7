"""Keeps the board known to the orchestrator: registers, renews, reports health, obeys leases, leaves cleanly."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterable
from typing import Any, Protocol

import grpc
import structlog
from boardlift.errors import BoardliftError, from_rpc_error
from boardlift.v1 import board_agent_pb2, job_pb2, job_pb2_grpc, queue_pb2, toolchain_pb2
from boardlift_servicekit.buckets import Bucket
from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

_LOG = structlog.get_logger(__name__)
_RETRY_S = 2.0
_NEWS_S = 15.0
"""Time for which the orchestrator's word counts, whatever this board's clock says about the end of a lease."""


class Gate(Protocol):
    """What can be held: the dispatcher."""

    def pause(self) -> None:
        """Take nothing more."""
        ...

    async def resume(self) -> None:
        """Take work again."""
        ...


class Registrant(Protocol):
    """What registers: an agent, or a light board of a fleet."""

    board_id: str

    def info(self) -> board_agent_pb2.BoardInfo:
        """What the board is."""
        ...

    async def state(self) -> board_agent_pb2.BoardState:
        """How it is."""
        ...

    def mark_cloned(self, cloned: bool) -> None:
        """Remember that another agent serves under this id."""
        ...


class Registration:
    """One board's registration."""

    def __init__(self, agent: Registrant, channel: Any) -> None:
        """Register `agent` over `channel` to the orchestrator's BoardService."""
        self._agent = agent
        self._stub = job_pb2_grpc.BoardServiceStub(channel)
        self._gate: Gate | None = None
        self._open = True
        self._fit = True
        self._lease_until = 0.0
        self._lease_heard = float("-inf")
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._in_the_way: list[str] = []
        self.renew_s = 5.0
        self.registered = asyncio.Event()

    def start(self) -> None:
        """Begin to renew in the background."""
        self._task = asyncio.create_task(self._loop())
        self._task.add_done_callback(self._ended)

    async def hold(self, gate: Gate) -> None:
        """Let health and leases decide whether `gate`, which is open, takes work: by what is known now, and later."""
        self._gate = gate
        self._open = True
        await self._decide()

    async def stop(self, client: Client | None = None) -> None:
        """Stop renewing; with a NATS connection the presence goes at once instead of after its life time."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if client is not None and not client.is_closed and self.registered.is_set():
            try:
                bucket = Bucket(client, client.jetstream(), "PRESENCE")
                await asyncio.wait_for(bucket.remove(self._agent.board_id), timeout=2)
            except (BoardliftError, asyncio.TimeoutError) as error:
                _LOG.info("presence_left_to_expire", error=repr(error))

    async def leave(self) -> None:
        """Stop renewing and say so over gRPC: for a board that has no connection to NATS, or not any more."""
        await self.stop()
        if not self.registered.is_set():
            return
        request = job_pb2.RegisterBoardRequest(board=self._agent.info(), leaving=True)
        try:
            await self._stub.RegisterBoard(request, timeout=2)
        except grpc.aio.AioRpcError as error:
            _LOG.info("presence_left_to_expire", error=error.details())

    async def register(self) -> bool:
        """Register or renew once; True when the orchestrator knows the board now."""
        state = await self._agent.state()
        request = job_pb2.RegisterBoardRequest(board=self._agent.info(), state=state)
        try:
            answer = await self._stub.RegisterBoard(request, timeout=10)
        except grpc.aio.AioRpcError as error:
            failure = from_rpc_error(error)
            cloned = failure.reason == "BOARD_ID_IN_USE"
            self._agent.mark_cloned(cloned)
            _LOG.warning("not_registered", reason=failure.reason, error=failure.message)
            self._fit = state.in_rotation and not cloned
            await self._decide()
            return False
        self._agent.mark_cloned(False)
        self.renew_s = max(1.0, answer.renew_duration.ToTimedelta().total_seconds() or self.renew_s)
        self._note_lease(answer.lease_holder, answer.lease_end_time.ToNanoseconds() / 1e9)
        self.registered.set()
        self._tell(answer.findings)
        self._fit = state.in_rotation
        await self._decide()
        return True

    def _tell(self, findings: Iterable[toolchain_pb2.Finding]) -> None:
        """Log what keeps the orchestrator from dialling this board, when that changes."""
        found = list(findings)
        codes = [finding.code for finding in found]
        if codes == self._in_the_way:
            return
        self._in_the_way = codes
        if not codes:
            _LOG.info("dialled")
        for item in found:
            _LOG.info("not_dialled", reason=item.code, error=item.message, remedy=item.remedy)

    async def on_lease(self, message: Msg) -> None:
        """A person took the board or gave it back."""
        try:
            lease = queue_pb2.BoardLease.FromString(message.data)
        except DecodeError:
            _LOG.warning("lease_unreadable")
            return
        self._note_lease(lease.holder, lease.end_time.ToNanoseconds() / 1e9)
        await self._decide()

    @property
    def leased(self) -> bool:
        """A person has the board."""
        if not self._lease_until:
            return False
        return time.monotonic() - self._lease_heard < _NEWS_S or time.time() < self._lease_until

    def _note_lease(self, holder: str, until: float) -> None:
        self._lease_until = until if holder else 0.0
        self._lease_heard = time.monotonic()

    async def _decide(self) -> None:
        wanted = self._fit and not self.leased
        if self._gate is None or wanted == self._open:
            return
        self._open = wanted
        _LOG.info("rotation", takes_work=wanted, leased=self.leased)
        if wanted:
            await self._gate.resume()
        else:
            self._gate.pause()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A board that can't renew must not look healthy: end the process, so that its supervisor starts it again."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("registration_broke", exc_info=error)
            signal.raise_signal(signal.SIGTERM)

    async def _loop(self) -> None:
        while not self._stopping:
            known = await self.register()
            await asyncio.sleep(self.renew_s if known else _RETRY_S)
