"""Boards that want to be dialled: find them among the registered ones, and look after each."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from boardlift.v1 import board_agent_pb2, queue_pb2
from boardlift_servicekit.buckets import Bucket, Entry

from boardlift_orchestrator.dialled_board import DialledBoard, DialParts

_LOOK_S: Final = 1.0
_log = structlog.get_logger(__name__)


class BoardDialler:
    """Runs in every orchestrator; a board is served by the one that holds its lease."""

    def __init__(self, boards: Bucket, parts: DialParts) -> None:
        """Dial the boards in `boards` whose agents ask for it."""
        self._bucket = boards
        self._parts = parts
        self._boards: dict[str, DialledBoard] = {}
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
        await asyncio.gather(*(board.stop() for board in self._boards.values()))

    @property
    def busy_slots(self) -> int:
        """Stages that run on dialled boards now, handed out from here."""
        return sum(board.busy_slots for board in self._boards.values())

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self._find()
            except Exception:  # noqa: BLE001 - the outermost boundary of this task: the next look tries again
                _log.exception("looking_for_boards_failed")
            await asyncio.sleep(_LOOK_S)

    async def _find(self) -> None:
        changed: dict[str, Entry] = {}
        revision = await self._bucket.changes(changed, self._revision)
        for entry in changed.values():
            record = queue_pb2.BoardRecord.FromString(entry.value)
            known = self._boards.get(record.info.id)
            if record.info.mode != board_agent_pb2.BoardInfo.MODE_DIAL:
                if known is not None:
                    await self._boards.pop(record.info.id).stop()
            elif known is not None:
                known.follow(record)
            else:
                self._boards[record.info.id] = await DialledBoard(self._parts, record).start()
        self._revision = revision  # last: what a fault has interrupted is read again
