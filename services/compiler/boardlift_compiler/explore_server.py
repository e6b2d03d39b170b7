"""Answer `ExploreService`: thin wiring between requests, executions and the work in `explore`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from boardlift.errors import BoardliftError, PreconditionError
from boardlift.v1 import explore_pb2, explore_pb2_grpc
from boardlift_servicekit.executions import Executions, as_responses, execution_id
from google.protobuf.message import Message

from boardlift_compiler.explore.answer_requests import Explorer
from boardlift_compiler.explore.run_estimate import estimate_latency
from boardlift_compiler.run_stages import StageRunner
from boardlift_compiler.toolchain import REMEDY

EXPLORE_SERVICE = "boardlift.v1.ExploreService"
EXPLORE_VERSION = "1"
SLOTS = 4
"""Explorations at once. They only wait for builds, which have slots of their own."""


class ExploreServicer(explore_pb2_grpc.ExploreServiceServicer):
    """Answers `ExploreService`; without a toolchain everything is refused with the command that gets it."""

    def __init__(
        self,
        builds: Executions[Any],
        runner: StageRunner | None,
        absent: BoardliftError | None,
        key: Callable[[str, Message], str],
        folder: Path,
        grace_s: float = 30.0,
    ) -> None:
        """Serve.

        Args:
            builds: The compiler's executions, through which everything is built.
            runner: Does the compiler's work; None without a toolchain.
            absent: Why there is none.
            key: (stage, request) -> digest, as `CompilerService` makes it.
            folder: Where results and evaluations are kept.
            grace_s: Time an exploration goes on after its last caller's stream broke.
        """
        self._builds, self._runner, self._absent, self._key, self._folder = builds, runner, absent, key, folder
        self.executions: Executions[Any] | None = None
        if runner is not None:
            self.executions = Executions(folder / "results", runner.store, slots=SLOTS, grace_s=grace_s)

    async def EstimateLatency(
        self, request: explore_pb2.EstimateLatencyRequest, context: Any
    ) -> explore_pb2.EstimateLatencyResponse:
        """Estimate a compiled model."""
        runner = self._require()
        return await estimate_latency(request, runner, runner.store)

    def MeasureSensitivity(self, request: explore_pb2.MeasureSensitivityRequest, context: Any) -> AsyncIterator[Any]:
        """Measure layers."""
        return self._stream(
            "sensitivity", request, context, explore_pb2.SensitivityResult, explore_pb2.MeasureSensitivityResponse
        )

    def SearchVariants(self, request: explore_pb2.SearchVariantsRequest, context: Any) -> AsyncIterator[Any]:
        """Search."""
        return self._stream("search", request, context, explore_pb2.SearchResult, explore_pb2.SearchVariantsResponse)

    def TryRemedies(self, request: explore_pb2.TryRemediesRequest, context: Any) -> AsyncIterator[Any]:
        """Name and try remedies."""
        return self._stream("remedies", request, context, explore_pb2.RemedyResult, explore_pb2.TryRemediesResponse)

    async def cancel(self, name: str) -> bool:
        """Stop an exploration by its caller's name for it."""
        return self.executions is not None and await self.executions.cancel(name)

    async def close(self) -> None:
        """Stop everything that runs."""
        if self.executions is not None:
            await self.executions.close()

    def _stream(
        self, stage: str, request: Message, context: Any, result: type[Any], response: type[Any]
    ) -> AsyncIterator[Any]:
        runner = self._require()
        if self.executions is None:
            raise PreconditionError("There is no toolchain.", reason="TOOLCHAIN_MISSING", remedy=REMEDY)
        explorer = Explorer(runner, self._builds, self._key, self._folder)
        version = EXPLORE_VERSION
        if getattr(request, "dry_run", False):
            version += f"/{time.time_ns()}"  # what is predicted depends on what has run before
        key = self._key(f"{stage}/{version}", request)
        events = self.executions.run(key, execution_id(context), result, lambda e: explorer.answer(stage, request, e))
        return as_responses(response, events)

    def _require(self) -> StageRunner:
        if self._runner is None:
            raise self._absent or PreconditionError("There is no toolchain.", reason="TOOLCHAIN_MISSING", remedy=REMEDY)
        return self._runner
