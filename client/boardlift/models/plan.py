"""What a job would do, before it is submitted."""

from __future__ import annotations

from dataclasses import dataclass

from boardlift.models.figure import Failure, Figure


@dataclass(frozen=True)
class StagePlan:
    """One stage of a job that is planned."""

    stage: str
    """ingest, transform, check, compile, simulate, board or verdict."""
    variant: str
    """Variant it is for; empty for shared stages."""
    answer: str
    """cached, runs, always_runs, after_run, unknown or skipped."""
    duration: Figure | None = None
    """Time it is expected to take, from past runs."""
    past_runs: int = 0
    """Past runs that the time comes from."""
    basis: str = ""
    """What they have in common with this one."""
    failure: Failure | None = None
    """Set when the stored result is a no."""


@dataclass(frozen=True)
class JobPlan:
    """What a job would do, and who is before it."""

    stages: tuple[StagePlan, ...] = ()
    """Its stages in order."""
    boards_online: int = 0
    """Boards that are online for it."""
    boards_free: int = 0
    """Those of them that could begin now."""
    board_stages_queued: int = 0
    """Board stages that are queued before it for those boards."""
    active_jobs: int = 0
    """Jobs that are being worked on, of all submitters."""
    waiting_jobs: int = 0
    """Jobs that wait for their turn, of all submitters."""
    own_waiting_jobs: int = 0
    """Those of them that the caller has submitted."""
