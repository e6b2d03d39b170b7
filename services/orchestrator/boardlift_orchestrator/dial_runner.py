"""Run stages on a dialled board, and on no other than the one that registered: who it is is asked before each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import grpc
from boardlift.errors import (
    BoardliftError,
    CancelledError,
    DeadlineError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedError,
    from_rpc_error,
)
from boardlift.v1 import board_agent_pb2, board_agent_pb2_grpc, queue_pb2
from boardlift_servicekit.stage_calls import Emit, GrpcRunner
from grpc_status import rpc_status

_REFUSALS: Final = (UnauthenticatedError, PermissionDeniedError, UnsupportedError)
_WRONG_NAME: Final = "Hostname Verification"
"""What gRPC says of a certificate for another name, in the text of UNAVAILABLE; there is no code for it."""
_LONGEST_TEXT: Final = 300


@dataclass(frozen=True)
class Wanted:
    """Who must answer."""

    board: str
    """Id that registered."""
    boot_id: str
    """Its start, as it registered."""
    address: str
    """Where it wants to be dialled, for messages."""


class DialRunner:
    """Runs stages over a channel to one board's agent."""

    def __init__(
        self,
        channel: Any,
        wanted: Wanted,
        *,
        patience_s: float,
        check_s: float,
        on_trouble: Callable[[BoardliftError], None],
    ) -> None:
        """Call `wanted` over `channel`.

        Args:
            channel: To the agent; this class does not close it.
            wanted: Who must answer.
            patience_s: Seconds for which an agent that stopped answering in the middle of a stage is waited for.
            check_s: Longest wait for the answer who it is.
            on_trouble: Called when the board can't be used as it is; the stage then goes elsewhere.
        """
        self._wanted = wanted
        self._check_s = check_s
        self._on_trouble = on_trouble
        self._agent = board_agent_pb2_grpc.BoardAgentServiceStub(channel)
        self._calls = GrpcRunner(channel, patience_s=patience_s)

    async def check(self) -> None:
        """Make sure that the board which registered answers.

        Raises:
            UnavailableError: DIAL_UNREACHABLE, DIAL_REFUSED, DIAL_WRONG_BOARD or DIAL_NOT_WANTED.
        """
        try:
            answer = await self._agent.DescribeBoard(board_agent_pb2.DescribeBoardRequest(), timeout=self._check_s)
        except grpc.aio.AioRpcError as error:
            failure = from_rpc_error(error)
            silent = isinstance(failure, DeadlineError)
            raise self._blame(UnavailableError(failure.message) if silent else failure) from error
        self._compare(answer.board, self._wanted.boot_id)
        if answer.board.mode != board_agent_pb2.BoardInfo.MODE_DIAL:
            raise UnavailableError(
                f"The agent of {self._wanted.board} pulls its work by now.",
                reason="DIAL_NOT_WANTED",
                remedy="Wait some minutes for its registration, or set its BOARDLIFT_MODE=dial.",
            )

    async def run(self, task: queue_pb2.StageTask, emit: Emit) -> Any:
        """Run one attempt.

        Raises:
            UnavailableError: The board can't be used; another one may.
            BoardliftError: The stage could not be run.
        """
        try:
            with self._calls.begun(task):
                await self.check()
                result: Any = await self._calls.run(task, emit)
            self._compare(result.board, "")  # a stored result may be of an earlier start of the board
        except CancelledError:
            raise
        except BoardliftError as error:
            blamed = self._blame(error)
            if blamed is error and not error.reason.startswith("DIAL_"):
                raise
            self._on_trouble(blamed)
            raise blamed from error
        return result

    async def stop(self, task: queue_pb2.StageTask) -> None:
        """Make a running attempt end."""
        await self._calls.stop(task)

    def _compare(self, board: board_agent_pb2.BoardInfo, boot_id: str) -> None:
        wanted = self._wanted
        if board.id == wanted.board and board.boot_id == (boot_id or board.boot_id):
            return
        who = f"another start of {board.id}" if board.id == wanted.board else f"the board {board.id[:40] or '?'}"
        raise UnavailableError(
            f"At {wanted.address} answers {who}, not the one that registered as {wanted.board}.",
            reason="DIAL_WRONG_BOARD",
            remedy="Correct the agent's BOARDLIFT_DIAL_ADDRESS; give each board its own id and state folder.",
            metadata={"address": wanted.address, "board": wanted.board, "answers": board.id[:40]},
        )

    def _blame(self, error: BoardliftError) -> BoardliftError:
        """Turn what went wrong with the connection, not with the stage, into a reason of its own."""
        where, text = self._wanted.address, error.message[:_LONGEST_TEXT]
        metadata = {"address": where, "board": self._wanted.board, "cause": error.reason}
        if isinstance(error, _REFUSALS):
            return UnavailableError(
                f"The agent at {where} refuses the orchestrator: {text}",
                reason="DIAL_REFUSED",
                remedy="Let the agent's BOARDLIFT_TOKENS_FILE know the token that lies in BOARDLIFT_DIAL_TOKENS, with "
                "the scope write; deploy/make_secrets.py board makes both.",
                metadata=metadata,
            )
        if error.reason != UnavailableError.default_reason or _is_said(error):
            return error
        if _WRONG_NAME in error.message:
            return UnavailableError(
                f"At {where} answers somebody with a certificate for another name than {self._wanted.board}.",
                reason="DIAL_WRONG_BOARD",
                remedy="Correct the agent's BOARDLIFT_DIAL_ADDRESS, or give it "
                f"the certificate for {self._wanted.board}.board.",
                metadata=metadata,
            )
        return UnavailableError(
            f"No agent answers for {self._wanted.board} at {where}: {text}",
            reason="DIAL_UNREACHABLE",
            remedy="Start the agent, open its port, or correct its BOARDLIFT_DIAL_ADDRESS and its certificate.",
            metadata=metadata,
        )


def _is_said(error: BoardliftError) -> bool:
    """Tell whether the agent itself said so: it gives details with every error, a broken connection gives none."""
    cause = error.__cause__
    try:
        return isinstance(cause, grpc.aio.AioRpcError) and rpc_status.from_call(cause) is not None
    except ValueError:
        return False  # details of another status, for example by a proxy
