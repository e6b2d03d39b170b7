"""The job record: what is kept about a job in the JOB bucket, as JSON below 64 KiB.

It holds states, attempts and digests, never results: those are artifacts. All times are seconds since the epoch, UTC.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from boardlift.errors import DataLossError

MAX_RECORD_BYTES: Final = 60_000
_MAX_EVIDENCE: Final = 8
_MAX_TEXT: Final = 400


class JobState(str, Enum):
    """Life of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """True when nothing more will happen."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class StageState(str, Enum):
    """Life of a stage."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """True when the stage will not run again."""
        return self not in (StageState.WAITING, StageState.RUNNING)


@dataclass(frozen=True)
class Ref:
    """Names an artifact."""

    sha256: str
    """Digest of its bytes."""
    size_bytes: int = 0
    """Its length."""
    media_type: str = ""
    """Its media type."""


@dataclass(frozen=True)
class Failure:
    """Why a stage said no or could not run."""

    code: str
    """Stable code, UPPER_SNAKE."""
    message: str = ""
    """One sentence."""
    subject: str = ""
    """Node, file or parameter at fault."""
    remedy: str = ""
    """One thing to do about it."""
    evidence: tuple[str, ...] = ()
    """Lines or numbers that show it."""
    user_fault: bool = False
    """True when the user's input is at fault."""
    exit_code: int = 0
    """Exit code of the tool."""
    transform_pass: str = ""
    """Pass that cures it."""
    log: Ref | None = None
    """The whole log."""


@dataclass(frozen=True)
class Stage:
    """One stage of a job."""

    stage: str
    """ingest, transform, check, compile, simulate, board or verdict."""
    variant: str = ""
    """Variant, or precision class for transform and check; empty when shared by all."""
    after: str = ""
    """Key of the stage it needs; empty for the first; "*" for the verdict, which needs all others to have ended."""
    state: StageState = StageState.WAITING
    """Where it is."""
    attempt: int = 0
    """Number of the current attempt, from 1."""
    faults: int = 0
    """Attempts that ended by a fault of the machinery."""
    starts: int = 0
    """How often the current attempt was begun; more than once means that a worker died."""
    worker: str = ""
    """Who runs or ran it."""
    place: str = ""
    """Board stage: where the current attempt was queued, `pool.<target>` or `id.<board>`."""
    avoid: tuple[str, ...] = ()
    """Board stage: boards on which an attempt broke; others are tried first."""
    result: Ref | None = None
    """The stage's whole result."""
    failure: Failure | None = None
    """Why it failed."""
    start: float = 0.0
    """When it was first handed out."""
    begun: float = 0.0
    """When a worker began the current attempt; the time before it was spent in the queue."""
    end: float = 0.0
    """When it ended."""
    cached: bool = False
    """True when a stored result was used."""

    @property
    def key(self) -> str:
        """Its name within the job."""
        return f"{self.stage}/{self.variant}"


@dataclass(frozen=True)
class JobRecord:
    """One job."""

    id: str
    """Its id."""
    spec: Ref
    """The whole JobSpec, serialised."""
    created: float
    """When it was created."""
    deadline: float
    """When it fails if it has not ended."""
    stages: tuple[Stage, ...] = ()
    """Its stages in order; every stage comes after the one it needs."""
    owner: str = ""
    """Who submitted it."""
    request_id: str = ""
    """Makes its creation repeatable."""
    name: str = ""
    """Name for people."""
    state: JobState = JobState.QUEUED
    """Where it is."""
    started: float = 0.0
    """When its first stage began."""
    ended: float = 0.0
    """When it ended."""
    cancel_asked: float = 0.0
    """When it was asked to stop."""
    changed: float = 0.0
    """When the record last changed."""
    revision: int = 0
    """How often it has changed."""
    error: Failure | None = None
    """Why it failed; set when the machinery failed."""
    submitter: str = ""
    """Whose turn it takes."""
    priority: int = 0
    """Its place among its submitter's waiting jobs: higher first."""
    held: bool = False
    """True while it waits for its turn: nothing of it is queued, and its time does not run."""
    classes: dict[str, str] = field(default_factory=dict)
    """Variant -> variant name of the transform and check stages it builds on."""

    def find(self, stage: str, variant: str) -> Stage | None:
        """Return a stage by name."""
        return next((item for item in self.stages if item.stage == stage and item.variant == variant), None)

    def replace_stage(self, new: Stage) -> JobRecord:
        """Return a copy with one stage exchanged."""
        return dataclasses.replace(self, stages=tuple(new if item.key == new.key else item for item in self.stages))


def encode_record(job: JobRecord) -> bytes:
    """Write a record as JSON; evidence is dropped when it would grow too large."""
    data = json.dumps(dataclasses.asdict(job), separators=(",", ":")).encode()
    if len(data) > MAX_RECORD_BYTES:
        stages = tuple(
            dataclasses.replace(item, failure=dataclasses.replace(item.failure, evidence=(), remedy=""))
            if item.failure
            else item
            for item in job.stages
        )
        data = json.dumps(dataclasses.asdict(dataclasses.replace(job, stages=stages)), separators=(",", ":")).encode()
    return data


def decode_record(data: bytes) -> JobRecord:
    """Read a record as written by `encode_record`; fields of a newer release are left out.

    Raises:
        DataLossError: RECORD_UNREADABLE.
    """
    try:
        raw = json.loads(data)
        raw["stages"] = tuple(_stage(item) for item in raw["stages"])
        raw["spec"] = _ref(raw["spec"])
        raw["state"] = JobState(raw["state"])
        raw["error"] = _failure(raw["error"])
        return JobRecord(**_known(JobRecord, raw))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataLossError(
            "The record of a job can't be read.",
            reason="RECORD_UNREADABLE",
            remedy="Run the release of the orchestrator that wrote it.",
            metadata={"cause": repr(error)[:200]},
        ) from error


def trim_failure(failure: Failure) -> Failure:
    """Cut a failure's texts to what a record may hold; the log artifact has the rest."""
    return dataclasses.replace(
        failure,
        code=failure.code[:63],
        message=failure.message[:_MAX_TEXT],
        subject=failure.subject[:_MAX_TEXT],
        remedy=failure.remedy[:_MAX_TEXT],
        evidence=tuple(line[:200] for line in failure.evidence[-_MAX_EVIDENCE:]),
    )


def _stage(raw: dict[str, Any]) -> Stage:
    values = {**raw, "state": StageState(raw["state"]), "result": _ref(raw["result"])}
    values |= {"avoid": tuple(raw.get("avoid", ())), "failure": _failure(raw["failure"])}
    return Stage(**_known(Stage, values))


def _failure(raw: dict[str, Any] | None) -> Failure | None:
    if raw is None:
        return None
    return Failure(**_known(Failure, {**raw, "evidence": tuple(raw["evidence"]), "log": _ref(raw["log"])}))


def _ref(raw: dict[str, Any] | None) -> Ref | None:
    return Ref(**raw) if raw else None


def _known(cls: Any, raw: dict[str, Any]) -> dict[str, Any]:
    names = {item.name for item in dataclasses.fields(cls)}
    return {name: value for name, value in raw.items() if name in names}
