"""The boards that have registered themselves: records in BOARD, presence in PRESENCE, leases of people in LEASE."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

import structlog
from boardlift.v1 import board_agent_pb2, job_pb2, queue_pb2, toolchain_pb2
from boardlift_servicekit.buckets import Bucket, Entry
from boardlift_servicekit.streams import QueueLimits, delete_board_consumer, ensure_board_consumers
from google.protobuf.message import DecodeError
from nats.aio.client import Client

from boardlift_orchestrator.schedule import BoardView

LEASE_PREFIX = "board."
DIAL_PREFIX = "dial."
NOT_DIALLED = "BOARD_NOT_DIALLED"
_REWRITE_S = 300.0
_GONE_S = 1800.0
"""Time since the last sign of life after which a board is no longer waited for: longer than an update takes."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Buckets:
    """The buckets of the orchestrator."""

    jobs: Bucket
    """Job records by id."""
    boards: Bucket
    """`BoardRecord` by board id."""
    presence: Bucket
    """`BoardPresence` by board id, with a life time."""
    leases: Bucket
    """With a life time: `BoardLease` by `board.<id>`, `BoardDial` by `dial.<id>`; others are the machinery's own."""

    @classmethod
    def open(cls, client: Client) -> Buckets:
        """Use the buckets that `messaging.ensure_streams` has made."""
        js = client.jetstream()
        return cls(*(Bucket(client, js, name) for name in ("JOB", "BOARD", "PRESENCE", "LEASE")))


class Registry:
    """Reads and writes boards."""

    def __init__(self, client: Client, buckets: Buckets, limits: QueueLimits) -> None:
        """Keep boards in `buckets`; make their consumers by `limits`."""
        self._js = client.jetstream()
        self._buckets = buckets
        self._limits = limits
        self._written: dict[str, float] = {}

    async def register(self, record: queue_pb2.BoardRecord, stored: bytes = b"") -> bytes:
        """Store a board and make sure that its tasks have a queue.

        Args:
            record: The board.
            stored: `record_digest` of its sign of life: what is stored of it, by whichever replica; empty for nothing.

        Returns:
            What its next sign of life must carry as `record_digest`.
        """
        name = record.info.id
        text = record.info.SerializeToString(deterministic=True) + record.peer.encode()
        digest = hashlib.sha256(text).digest()
        lately = time.monotonic() - self._written.get(name, float("-inf")) < _REWRITE_S
        if stored == digest and lately:
            return digest  # a write costs the server a flush to disk; presence says that the board lives
        await ensure_board_consumers(self._js, name, record.info.target, self._limits)
        await self._buckets.boards.put(name, record.SerializeToString())
        self._written[name] = time.monotonic()
        return digest

    async def presence(self, board: str) -> queue_pb2.BoardPresence | None:
        """Return a board's sign of life."""
        entry = await self._buckets.presence.get(board)
        return read_presence(entry) if entry else None

    async def knows(self, board: str) -> bool:
        """Tell whether a board has ever registered."""
        return await self._buckets.boards.get(board) is not None

    async def forget(self, board: str) -> None:
        """Remove a board with its queue; jobs that were placed there go elsewhere by the next sweep."""
        self._written.pop(board, None)
        await self._buckets.boards.remove(board)
        await delete_board_consumer(self._js, board)
        await self._buckets.presence.remove(board)  # last: one that lives after all registers in full next time

    async def forget_old(self, before: float) -> list[str]:
        """Remove the boards whose latest sign of life is older than a time in seconds since the epoch; return them."""
        old = [b for b in await self.boards() if not b.online and b.last_seen_time.ToNanoseconds() / 1e9 < before]
        for board in old:
            await self.forget(board.info.id)
            _log.info("board_forgotten", board=board.info.id, last_seen=board.last_seen_time.ToJsonString())
        return [board.info.id for board in old]

    async def lease(self, board: str) -> tuple[queue_pb2.BoardLease | None, int]:
        """Return the lease that somebody holds on a board, and the key's revision (0: none)."""
        entry = await self._buckets.leases.get(LEASE_PREFIX + board)
        if entry is None:
            return None, 0
        lease = queue_pb2.BoardLease.FromString(entry.value)
        return (lease if lease.end_time.ToNanoseconds() / 1e9 > time.time() else None), entry.revision

    async def is_dialled(self, board: str) -> bool:
        """Tell whether a board wants to be dialled."""
        entry = await self._buckets.boards.get(board)
        record = queue_pb2.BoardRecord.FromString(entry.value) if entry else queue_pb2.BoardRecord()
        return bool(record.info.mode == board_agent_pb2.BoardInfo.MODE_DIAL)

    async def dial_findings(self, board: str) -> list[toolchain_pb2.Finding]:
        """Return what keeps a board that wants to be dialled from getting work; empty when nothing does."""
        entry = await self._buckets.leases.get(DIAL_PREFIX + board)
        return list(queue_pb2.BoardDial.FromString(entry.value).findings) if entry else [not_dialled(board)]

    async def boards(self) -> list[job_pb2.Board]:
        """Return all boards by id."""
        present = {entry.key: read_presence(entry) for entry in await self._buckets.presence.entries()}
        held = {entry.key: entry.value for entry in await self._buckets.leases.entries()}
        boards = []
        for entry in await self._buckets.boards.entries():
            record = read_record(entry)
            if record is None:
                continue
            sign = present.get(entry.key)  # absent or unreadable: not online
            board = job_pb2.Board(info=record.info, state=sign.state if sign else record.state, online=sign is not None)
            board.last_seen_time.CopyFrom(board.state.observe_time if sign else record.register_time)
            if LEASE_PREFIX + entry.key in held:
                lease = queue_pb2.BoardLease.FromString(held[LEASE_PREFIX + entry.key])
                board.state.lease_holder = lease.holder
                board.state.lease_end_time.CopyFrom(lease.end_time)
            if sign is not None and record.info.mode == board_agent_pb2.BoardInfo.MODE_DIAL:
                dial = held.get(DIAL_PREFIX + entry.key)
                in_the_way = queue_pb2.BoardDial.FromString(dial).findings if dial else [not_dialled(entry.key)]
                board.state.findings.extend(in_the_way)
                board.state.in_rotation = board.state.in_rotation and not in_the_way
            boards.append(board)
        return boards

    async def views(self) -> list[BoardView]:
        """Return all boards as the scheduler sees them."""
        return [
            BoardView(
                id=board.info.id,
                target=board.info.target,
                labels=dict(board.info.labels),
                online=board.online,
                in_rotation=board.state.in_rotation,
                reachable=not any(finding.code.startswith("DIAL_") for finding in board.state.findings),
                leased=bool(board.state.lease_holder),
                busy_job=board.state.busy_job,
                capabilities=tuple(board.info.capabilities),
                governor=board.state.governor,
                gone=not board.online and time.time() - board.last_seen_time.ToNanoseconds() / 1e9 > _GONE_S,
            )
            for board in await self.boards()
        ]


def not_dialled(board: str) -> toolchain_pb2.Finding:
    """What is in the way of a board that nobody has reached yet."""
    return toolchain_pb2.Finding(
        code=NOT_DIALLED,
        severity=toolchain_pb2.Finding.SEVERITY_ERROR,
        message="The board waits to be dialled, and no orchestrator has reached it yet.",
        subject=board,
        remedy="Wait some seconds; if it stays so, look at the orchestrator's log.",
    )


def read_presence(entry: Entry) -> queue_pb2.BoardPresence | None:
    """Read a sign of life; None for bytes that are none: a board writes its own key, and must not stop all others."""
    try:
        return queue_pb2.BoardPresence.FromString(entry.value)
    except DecodeError:
        _log.error("presence_unreadable", board=entry.key)
        return None


def read_record(entry: Entry) -> queue_pb2.BoardRecord | None:
    """Read a board's record; None for bytes that are none: one board must not hide all others."""
    try:
        return queue_pb2.BoardRecord.FromString(entry.value)
    except DecodeError:
        _log.error("board_record_unreadable", board=entry.key)
        return None
