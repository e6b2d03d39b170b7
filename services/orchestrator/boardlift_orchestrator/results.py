"""Read what stages left in the artifact store: specifications, whole results, and the complete view of a job."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import structlog
from boardlift.errors import DataLossError, InvalidInputError, PreconditionError
from boardlift.v1 import artifact_pb2, job_pb2
from boardlift_servicekit.artifacts import ArtifactStore, missing_error
from google.protobuf.message import DecodeError

from boardlift_orchestrator.convert import job_message, ref_message
from boardlift_orchestrator.events import Outcome, Started
from boardlift_orchestrator.record import Failure, JobRecord, JobState, Ref, Stage
from boardlift_orchestrator.requests import RESULT_TYPES

_CACHED = 256
_log = structlog.get_logger(__name__)


class Results:
    """Typed access to stored results."""

    def __init__(self, store: ArtifactStore) -> None:
        """Read from `store`."""
        self.store = store
        self._specs: dict[str, job_pb2.JobSpec] = {}

    async def spec(self, job: JobRecord) -> Any:
        """Return a job's specification; callers must not change it."""
        known = self._specs.get(job.spec.sha256)
        if known is None:
            known = await self._parse(job.spec, job_pb2.JobSpec)
            if len(self._specs) >= _CACHED:
                self._specs.pop(next(iter(self._specs)))
            self._specs[job.spec.sha256] = known
        return known

    async def result(self, stage: Stage) -> Any:
        """Return a stage's whole result as its message."""
        if stage.result is None:
            raise DataLossError(
                f"The stage {stage.key} has no result.",
                reason="RESULT_MISSING",
                remedy="Submit the job again: the stage runs anew.",
            )
        return await self._parse(stage.result, RESULT_TYPES[stage.stage])

    async def checked(self, event: Outcome | Started) -> Outcome | Started:
        """Return a worker's report, as a fault of that worker's machine when its result is none that can be used.

        A job that took it in could neither be shown nor swept; another worker may do better.
        """
        if not isinstance(event, Outcome) or event.result is None or event.stage not in RESULT_TYPES:
            return event
        try:
            await self._parse(event.result, RESULT_TYPES[event.stage])
        except (DataLossError, InvalidInputError, PreconditionError) as error:
            _log.error("result_unusable", job_worker=event.worker, reason=error.reason, error=error.message)
            failure = Failure(
                "RESULT_UNUSABLE",
                f"{event.worker} reported a result of {event.stage} that can't be used ({error.reason}).",
                remedy=f"Look at the log of {event.worker}.",
            )
            return dataclasses.replace(event, result=None, failure=failure, retryable=True)
        return event

    async def all(self, job: JobRecord) -> dict[str, Any]:
        """Return all results of a job by stage key."""
        return {stage.key: await self.result(stage) for stage in job.stages if stage.result is not None}

    async def view(self, job: JobRecord, *, with_spec: bool = False) -> Any:
        """Return a job as clients see it, with verdict and artifacts once it has succeeded."""
        message = job_message(job)
        if with_spec:
            message.spec.CopyFrom(await self.spec(job))
        if job.state is JobState.SUCCEEDED:
            made = await self.result(job.stages[-1])
            message.verdict.CopyFrom(made.verdict)
            message.artifacts.extend(made.artifacts)
        return message

    async def summary(self, job: JobRecord) -> Any:
        """Return a job for a list: of what it is to do only the names."""
        message = await self.view(job)
        spec = await self.spec(job)
        names = job_pb2.JobSpec(
            target=spec.target, display_name=spec.display_name, model_name=spec.model_name, goal=spec.goal
        )
        for variant in spec.variants:
            names.variants.add(name=variant.name, preset=variant.preset)
        message.spec.CopyFrom(names)
        return message

    async def read(self, artifact: artifact_pb2.ArtifactRef) -> bytes:
        """Return an artifact's bytes; for small ones."""
        path = await self.store.fetch(artifact)
        try:
            return await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError as error:  # swept in between: it was found, and not read for longer than what is fresh
            raise missing_error(artifact.sha256) from error

    async def _parse(self, ref: Ref, kind: Any) -> Any:
        try:
            return kind.FromString(await self.read(ref_message(ref)))
        except DecodeError as error:
            raise DataLossError(
                f"A stored {kind.__name__} can't be read.",
                reason="RESULT_UNREADABLE",
                remedy="Submit the job again: the stage runs anew.",
            ) from error
