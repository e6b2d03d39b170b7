"""Boards that want to be dialled: find them among the registered ones, and look after each that is there."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog
from boardlift.errors import BoardliftError
from boardlift.v1 import board_agent_pb2, queue_pb2
from boardlift_servicekit.buckets import Bucket, Entry

from boardlift_orchestrator.board_watch import BoardWatch
from boardlift_orchestrator.dialled_board import DialledBoard, DialParts
from boardlift_orchestrator.registry import Buckets, read_record

_LOOK_S: Final = 1.0
_GONE_S: Final = 60.0
"""Time without a sign of life after which nobody looks after a board any more, until the next sign."""
_log = structlog.get_logger(__name__)


class BoardDialler:
    """Runs in every orchestrator; a board is served by the one that holds its lease."""

    def __init__(self, boards: Bucket, parts: DialParts) -> None:
        """Dial the boards in `boards` whose agents ask for it."""
        self._bucket = boards
        self._parts = parts
        buckets = Buckets.open(parts.client)
        self._watch = BoardWatch(buckets.presence, buckets.leases, parts.life_s)
        self._records: dict[str, queue_pb2.BoardRecord] = {}
        self._seen: dict[str, float] = {}
        self._boards: dict[str, DialledBoard] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._revision = 0
        self._stopping = False

    async def start(self) -> None:
        """Begin to look for boards."""
        self._task = asyncio.create_task(self._run(), name="dial boards")

    async def stop(self) -> None:
        """Give everything back to the queue."""
        self._stopping = True
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for name in list(self._boards):
            self._end(name)
        await asyncio.gather(*self._ending.values(), return_exceptions=True)

    @property
    def busy_slots(self) -> int:
        """Stages that run on dialled boards now, handed out from here."""
        return sum(board.busy_slots for board in self._boards.values())

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self._watch.read()
                await self._find()
            except BoardliftError as error:
                _log.warning("boards_not_read", reason=error.reason, error=error.message)
            except Exception:  # noqa: BLE001 - the outermost boundary of this task: the next look tries again
                _log.exception("looking_for_boards_failed")
            await asyncio.sleep(_LOOK_S)

    async def _find(self) -> None:
        changed: dict[str, Entry] = {}
        removed: set[str] = set()
        self._revision = await self._bucket.changes(changed, self._revision, removed)
        for name, entry in changed.items():
            record = read_record(entry)
            if record is None or record.info.mode != board_agent_pb2.BoardInfo.MODE_DIAL:
                removed.add(name)
                continue
            self._records[name] = record
            if name in self._boards:
                self._boards[name].follow(record)
        for name in removed:
            self._records.pop(name, None)
        now = time.monotonic()
        self._seen = {name: now if self._watch.presence(name) else self._seen.get(name, now) for name in self._records}
        for name in list(self._boards):
            gone = now - self._seen.get(name, now) > _GONE_S
            if name not in self._records or (gone and not self._boards[name].busy_slots):
                self._end(name)
        for name, record in self._records.items():
            taken = name in self._boards or name in self._ending
            if not taken and self._watch.presence(name):
                self._boards[name] = await DialledBoard(self._parts, self._watch, record).start()

    def _end(self, name: str) -> None:
        """Stop looking after a board; that takes a while, and keeps nobody waiting but the board itself."""
        task = asyncio.create_task(self._boards.pop(name).stop(), name=f"leave {name}")
        self._ending[name] = task
        task.add_done_callback(lambda done: self._ended(name, done))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        del self._ending[name]
        if not task.cancelled() and task.exception() is not None:
            _log.error("leaving_board_failed", board=name, exc_info=task.exception())
