"""`BoardService`: boards register themselves, people look at them and take them for a while."""

from __future__ import annotations

import time
import uuid
from typing import Any, Final

from boardlift.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
)
from boardlift.v1 import board_agent_pb2, job_pb2, job_pb2_grpc, queue_pb2
from boardlift_servicekit.interceptors import caller_is_only_board, current_principal
from boardlift_servicekit.names import check_token
from nats.aio.client import Client

from boardlift_orchestrator.dial_address import peer_address, split_address
from boardlift_orchestrator.paging import cut_page
from boardlift_orchestrator.registry import LEASE_PREFIX, Buckets, Registry
from boardlift_orchestrator.schedule import has_labels

RENEW_S: Final = 5
"""How often a board renews its presence."""
PRESENCE_S: Final = 15
"""Life of a sign of life."""
_LEASE_S: Final = 1800
_LEASE_BOUNDS_S: Final = (10, 86400)


class BoardServicer(job_pb2_grpc.BoardServiceServicer):
    """Serves boards."""

    def __init__(self, client: Client, registry: Registry, buckets: Buckets) -> None:
        """Keep boards in `registry`."""
        self._client = client
        self._registry = registry
        self._buckets = buckets

    async def RegisterBoard(self, request: job_pb2.RegisterBoardRequest, context: Any) -> Any:
        """Register a board, or renew its registration; a second living board of the same id is refused."""
        info = request.board
        check_token("board id", info.id)
        check_token("target", info.target)
        if caller_is_only_board() and info.id != current_principal():
            raise PermissionDeniedError(
                f"The token of {current_principal()} can't register {info.id}.",
                reason="NOT_THIS_BOARD",
                remedy="Give each board its own token.",
                metadata={"board_id": info.id},
            )
        sign = await self._registry.presence(info.id)
        _refuse_clone(sign, info)
        if request.leaving:
            await self._buckets.presence.remove(info.id)
            return job_pb2.RegisterBoardResponse()
        dial = info.mode == board_agent_pb2.BoardInfo.MODE_DIAL
        if dial:
            split_address(info.address)
        record = queue_pb2.BoardRecord(
            info=info, state=request.state, peer=peer_address(context.peer()) if dial else ""
        )
        record.register_time.GetCurrentTime()
        digest = await self._registry.register(record, sign.record_digest if sign else b"")
        sign = queue_pb2.BoardPresence(boot_id=info.boot_id, state=request.state, record_digest=digest)
        if not sign.state.HasField("observe_time"):
            sign.state.observe_time.GetCurrentTime()
        await self._buckets.presence.put(info.id, sign.SerializeToString(), life_s=PRESENCE_S)
        answer = job_pb2.RegisterBoardResponse()
        answer.renew_duration.FromSeconds(RENEW_S)
        lease, _ = await self._registry.lease(info.id)
        if lease is not None:
            answer.lease_holder = lease.holder
            answer.lease_end_time.CopyFrom(lease.end_time)
        if dial:
            answer.findings.extend(await self._registry.dial_findings(info.id))
        return answer

    async def ListBoards(self, request: job_pb2.ListBoardsRequest, context: Any) -> Any:
        """List boards by id."""
        boards = await self._registry.boards()
        found = [board for board in boards if has_labels(board.info.labels, request.labels)]
        page, token = cut_page(found, lambda board: str(board.info.id), request.page_size, request.page_token)
        return job_pb2.ListBoardsResponse(boards=page, next_page_token=token)

    async def DeleteBoard(self, request: job_pb2.DeleteBoardRequest, context: Any) -> Any:
        """Forget a board that is gone."""
        board = check_token("board id", request.board_id)
        if not await self._registry.knows(board):
            raise _not_found(board)
        if await self._registry.presence(board) is not None:
            raise PreconditionError(
                f"The board {board} is online; it would register again at once.",
                reason="BOARD_ONLINE",
                remedy=f"Stop its agent first; 15 s later it is offline. To use it alone: boardlift lease {board}.",
                metadata={"board_id": board},
            )
        await self._registry.forget(board)
        return job_pb2.DeleteBoardResponse()

    async def GrantBoardLease(self, request: job_pb2.GrantBoardLeaseRequest, context: Any) -> Any:
        """Give a person a board for some time."""
        board = check_token("board id", request.board_id)
        seconds = request.limit_duration.seconds if request.HasField("limit_duration") else _LEASE_S
        low, high = _LEASE_BOUNDS_S
        if not low <= seconds <= high:
            raise InvalidInputError(
                f"A lease lasts {low} s to {high} s, not {seconds} s.",
                reason="LEASE_TIME_INVALID",
                remedy="Ask for a time between the two, for example 30m.",
                metadata={"field": "limit_duration"},
            )
        if not await self._registry.knows(board):
            raise _not_found(board)
        held, revision = await self._registry.lease(board)
        if held is not None and held.lease_id != request.lease_id:
            raise _held(held)
        lease = queue_pb2.BoardLease(
            board_id=board,
            lease_id=request.lease_id or uuid.uuid4().hex,
            holder=(request.holder or current_principal())[:100],
        )
        lease.end_time.FromNanoseconds(int((time.time() + seconds) * 1e9))
        await self._write(lease, revision, seconds)
        sign = await self._registry.presence(board)
        return job_pb2.GrantBoardLeaseResponse(
            lease_id=lease.lease_id, end_time=lease.end_time, busy_job=sign.state.busy_job if sign else ""
        )

    async def ReleaseBoardLease(self, request: job_pb2.ReleaseBoardLeaseRequest, context: Any) -> Any:
        """Give a board back; one that has no lease is fine."""
        board = check_token("board id", request.board_id)
        held, _ = await self._registry.lease(board)
        if held is None:
            return job_pb2.ReleaseBoardLeaseResponse()
        if held.lease_id != request.lease_id:
            raise _held(held)
        await self._buckets.leases.remove(LEASE_PREFIX + board)
        await self._tell(queue_pb2.BoardLease(board_id=board))
        return job_pb2.ReleaseBoardLeaseResponse()

    async def _write(self, lease: queue_pb2.BoardLease, revision: int, seconds: int) -> None:
        key = LEASE_PREFIX + lease.board_id
        try:
            await self._buckets.leases.put(key, lease.SerializeToString(), revision=revision, life_s=seconds)
        except ConflictError:
            if revision:
                raise
            # The key's last message may be the marker of a lease that was given back: then write over it.
            held, _ = await self._registry.lease(lease.board_id)
            if held is not None:
                raise _held(held) from None
            await self._buckets.leases.put(key, lease.SerializeToString(), life_s=seconds)
        await self._tell(lease)

    async def _tell(self, lease: queue_pb2.BoardLease) -> None:
        public = queue_pb2.BoardLease(board_id=lease.board_id, holder=lease.holder, end_time=lease.end_time)
        await self._client.publish(f"ctl.board.{lease.board_id}", public.SerializeToString())


def _refuse_clone(sign: queue_pb2.BoardPresence | None, info: board_agent_pb2.BoardInfo) -> None:
    if sign is not None and sign.boot_id and info.boot_id and sign.boot_id != info.boot_id:
        raise ConflictError(
            f"Another agent is running as board {info.id}.",
            reason="BOARD_ID_IN_USE",
            remedy="Give each board its own id. After a restart, wait 15 s for the old agent's presence to end.",
            metadata={"board_id": info.id},
        )


def _not_found(board: str) -> NotFoundError:
    return NotFoundError(
        f"No board {board} has registered.",
        reason="BOARD_NOT_FOUND",
        remedy="List the boards with `boardlift boards`.",
    )


def _held(lease: queue_pb2.BoardLease) -> PreconditionError:
    end = lease.end_time.ToJsonString()
    return PreconditionError(
        f"{lease.holder} has the board {lease.board_id} until {end}.",
        reason="BOARD_LEASED",
        remedy="Wait, or ask the holder to give it back.",
        metadata={"board_id": lease.board_id, "holder": lease.holder, "end_time": end},
    )
