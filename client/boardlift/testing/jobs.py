"""`JobService` that plays a scenario in a thread per job."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc

from boardlift.errors import InvalidInputError, NotFoundError, PreconditionError
from boardlift.testing.abort import abort
from boardlift.testing.artifacts import ArtifactServicer
from boardlift.testing.play import Player
from boardlift.testing.scenario import Scenario
from boardlift.v1 import job_pb2, job_pb2_grpc, toolchain_pb2

ENDED = (job_pb2.Job.STATE_SUCCEEDED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)


@dataclass
class FakeJob:
    """A job, its events, and the way to stop it."""

    job: job_pb2.Job
    """As it is."""
    events: list[job_pb2.WatchJobResponse] = field(default_factory=list)
    """What happened."""
    changed: threading.Condition = field(default_factory=threading.Condition)
    """Notified with each event."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set asks it to stop."""

    def emit(self, **event: Any) -> None:
        """Add an event."""
        with self.changed:
            message = job_pb2.WatchJobResponse(sequence=len(self.events) + 1, **event)
            message.event_time.GetCurrentTime()
            self.events.append(message)
            self.changed.notify_all()


class JobServicer(job_pb2_grpc.JobServiceServicer):
    """Serves jobs that play `scenario`."""

    def __init__(self, scenario: Scenario, artifacts: ArtifactServicer) -> None:
        """Play `scenario`; results go to `artifacts`."""
        self.scenario = scenario
        self.jobs: dict[str, FakeJob] = {}
        self._artifacts = artifacts
        self._requests: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def CreateJob(self, request: job_pb2.CreateJobRequest, context: grpc.ServicerContext) -> Any:
        """Create a job; the same request id gives the same job."""
        spec = request.spec
        if not spec.variants or not spec.target:
            abort(context, InvalidInputError("spec.variants: a job needs one.", reason="SPEC_INVALID"))
        wanted = [spec.model.artifact.sha256, spec.dataset.sha256]
        if any(digest not in self._artifacts.stored for digest in wanted):
            abort(context, PreconditionError("An artifact is missing.", reason="ARTIFACT_MISSING"))
        with self._lock:
            known = self._requests.get(request.request_id)
            if known:
                return job_pb2.CreateJobResponse(job=self.jobs[known].job)
            job_id = request.job_id or f"job-{next(self._numbers)}"
            fake = FakeJob(job_pb2.Job(id=job_id, spec=spec, state=job_pb2.Job.STATE_QUEUED, owner="tester"))
            fake.job.create_time.GetCurrentTime()
            if not request.validate_only:
                self.jobs[job_id] = fake
                self._requests[request.request_id] = job_id
                threading.Thread(target=Player(fake, self.scenario, self._artifacts).run, daemon=True).start()
        return job_pb2.CreateJobResponse(job=fake.job)

    def GetJob(self, request: job_pb2.GetJobRequest, context: grpc.ServicerContext) -> Any:
        """Return a job."""
        return job_pb2.GetJobResponse(job=self._find(request.job_id, context).job)

    def ListJobs(self, request: job_pb2.ListJobsRequest, context: grpc.ServicerContext) -> Any:
        """List jobs, newest first."""
        jobs = [fake.job for fake in reversed(list(self.jobs.values()))]
        jobs = [job for job in jobs if request.state in (job_pb2.Job.STATE_UNSPECIFIED, job.state)]
        start, size = int(request.page_token or 0), request.page_size or 50
        more = str(start + size) if start + size < len(jobs) else ""
        return job_pb2.ListJobsResponse(jobs=jobs[start : start + size], next_page_token=more)

    def CancelJob(self, request: job_pb2.CancelJobRequest, context: grpc.ServicerContext) -> Any:
        """Ask a job to stop."""
        fake = self._find(request.job_id, context)
        fake.stop.set()
        if fake.job.state not in ENDED:
            fake.job.state = job_pb2.Job.STATE_CANCELLING
        return job_pb2.CancelJobResponse(job=fake.job)

    def DeleteJob(self, request: job_pb2.DeleteJobRequest, context: grpc.ServicerContext) -> Any:
        """Remove a job that has ended."""
        fake = self._find(request.job_id, context)
        if fake.job.state not in ENDED:
            abort(context, PreconditionError("The job has not ended.", reason="JOB_NOT_ENDED", remedy="Stop it."))
        del self.jobs[request.job_id]
        return job_pb2.DeleteJobResponse()

    def PlanJob(self, request: job_pb2.PlanJobRequest, context: grpc.ServicerContext) -> Any:
        """Say that the transform comes from the cache and the rest runs."""
        figure = toolchain_pb2.Figure(
            name="duration_s", value=83.0, unit="s", kind=toolchain_pb2.FIGURE_KIND_ESTIMATED, source="made up"
        )
        plan = job_pb2.PlanJobResponse(boards_online=1, boards_free=1, active_jobs=2, waiting_jobs=3)
        plan.stages.add(stage="ingest", answer=job_pb2.StagePlan.ANSWER_ALWAYS_RUNS)
        plan.stages.add(stage="transform", answer=job_pb2.StagePlan.ANSWER_CACHED)
        for variant in request.spec.variants:
            plan.stages.add(
                stage="compile",
                variant=variant.name,
                answer=job_pb2.StagePlan.ANSWER_RUNS,
                duration=figure,
                past_runs=4,
                basis="same model",
            )
        return plan

    def WatchJob(self, request: job_pb2.WatchJobRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        """Send the job as it is, then its events behind the sequence."""
        fake = self._find(request.job_id, context)
        yield job_pb2.WatchJobResponse(sequence=request.after_sequence, job=fake.job)
        position = request.after_sequence
        while context.is_active():
            with fake.changed:
                if len(fake.events) <= position:
                    fake.changed.wait(timeout=0.2)
                news = fake.events[position:]
            for event in news:
                yield event
                position = event.sequence
                if event.HasField("job") and event.job.state in ENDED:
                    return

    def wait_until_ended(self, job_id: str, timeout_s: float = 10.0) -> None:
        """Block until a job has ended, for tests of the server itself."""
        end = time.monotonic() + timeout_s
        while self.jobs[job_id].job.state not in ENDED and time.monotonic() < end:
            time.sleep(0.005)

    def _find(self, job_id: str, context: grpc.ServicerContext) -> FakeJob:
        if job_id not in self.jobs:
            abort(context, NotFoundError(f"There is no job {job_id}.", reason="JOB_NOT_FOUND", remedy="List the jobs."))
        return self.jobs[job_id]
