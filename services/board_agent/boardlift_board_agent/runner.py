"""Runs board stages for callers over gRPC and for tasks from the queue, one at a time, equal requests once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from boardlift.errors import DeadlineError, InternalError, UnsupportedError
from boardlift.v1 import board_agent_pb2, queue_pb2
from boardlift_servicekit.executions import Emitter, Executions, code_version, request_key
from boardlift_servicekit.stage_calls import Emit, execution_id

from boardlift_board_agent.bench import Parts
from boardlift_board_agent.compare_models import compare_models
from boardlift_board_agent.convert import info_message, state_message
from boardlift_board_agent.diagnose_model import diagnose_model
from boardlift_board_agent.run_model import run_model
from boardlift_board_agent.watch_board import BoardWatch

Result = board_agent_pb2.RunResult
STAGE_VERSION = code_version(Path(__file__).parent)
Perform = Callable[[Any, Parts, Emitter], Awaitable[Any]]


@dataclasses.dataclass
class Agent:
    """What the servicer, the queue and the registration share."""

    board_id: str
    target: str
    labels: dict[str, str]
    boot_id: str
    capabilities: tuple[str, ...]
    parts: Parts
    executions: Executions[Any]
    dial_address: str = ""
    """Where the orchestrator calls; empty for a board that pulls."""

    @property
    def watch(self) -> BoardWatch:
        """The board."""
        return self.parts.watch

    def run(self, request: board_agent_pb2.RunModelRequest, name: str) -> AsyncIterator[Any]:
        """Events of one run, the result last; attaches to an equal run.

        Args:
            request: what to run.
            name: the caller's name for this call.
        """
        return self._share("board", request, name, Result, run_model)

    def compare(self, request: board_agent_pb2.CompareModelsRequest, name: str) -> AsyncIterator[Any]:
        """Events of one interleaved comparison, the result last."""
        return self._share("compare", request, name, board_agent_pb2.CompareResult, compare_models)

    def diagnose(self, request: board_agent_pb2.DiagnoseModelRequest, name: str) -> AsyncIterator[Any]:
        """Events of one diagnosis, the result last."""
        return self._share("diagnose", request, name, board_agent_pb2.DiagnoseResult, diagnose_model)

    def _share(self, stage: str, request: Any, name: str, kind: Any, perform: Perform) -> AsyncIterator[Any]:
        system = self.watch.facts.os_version or ""  # versions of the runtime are known only after the first run
        key = request_key(stage, STAGE_VERSION, request, self.board_id, system, str(self.watch.facts.simulated))

        async def work(emit: Emitter) -> Any:
            result = await perform(request, self.parts, emit)
            result.board.CopyFrom(self.info())
            return result

        return self.executions.run(key, name, kind, work)

    def info(self) -> board_agent_pb2.BoardInfo:
        """What this board is."""
        info = info_message(
            self.watch.facts,
            self.watch.version,
            self.board_id,
            self.target,
            self.labels,
            self.boot_id,
            self.capabilities,
        )
        dialled = bool(self.dial_address)
        info.mode = board_agent_pb2.BoardInfo.MODE_DIAL if dialled else board_agent_pb2.BoardInfo.MODE_PULL
        info.address = self.dial_address
        return info

    def mark_cloned(self, cloned: bool) -> None:
        """Remember that another agent serves under our id."""
        self.watch.mark_cloned(cloned)

    async def state(self) -> board_agent_pb2.BoardState:
        """How this board is now."""
        snapshot = await self.watch.look()
        return state_message(snapshot, self.watch.busy_job, self.watch.simulated)


class QueueRunner:
    """Runs board tasks from the queue in this process."""

    def __init__(self, agent: Agent) -> None:
        """Run on `agent`."""
        self._agent = agent

    async def run(self, task: queue_pb2.StageTask, emit: Emit) -> Result | board_agent_pb2.DiagnoseResult:
        """Run one attempt.

        Raises:
            UnsupportedError: the task is for another service.
            CancelledError: it was stopped.
            DeadlineError: nobody waits for this diagnosis any more.
        """
        name = execution_id(task)
        if task.stage == "board":
            events = self._agent.run(task.board, name)
        elif task.stage == "diagnose":
            if task.deadline_time.ToNanoseconds() < time.time_ns():
                raise DeadlineError(
                    "Nobody waits for this diagnosis any more.",
                    reason="DIAGNOSIS_DEADLINE_EXCEEDED",
                    remedy="Ask again.",
                )
            events = self._agent.diagnose(task.diagnose, name)
        else:
            raise UnsupportedError(
                f"A board does not run the stage {task.stage}.",
                reason="STAGE_UNSUPPORTED",
                remedy="Use an orchestrator and an agent of the same release.",
            )
        async for event in events:
            if isinstance(event, (Result, board_agent_pb2.DiagnoseResult)):
                return event
            await emit(event)
        raise InternalError(
            "The run ended without a result.",
            reason="NO_RESULT",
            remedy="Run it again; if it repeats, the agent's log says why.",
        )

    async def stop(self, task: queue_pb2.StageTask) -> None:
        """Make a running attempt end."""
        await self._agent.executions.cancel(execution_id(task))
