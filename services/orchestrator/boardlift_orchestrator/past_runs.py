"""How long stages took before: from the records of ended jobs, by what they have in common with a new one. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from boardlift.v1 import job_pb2, toolchain_pb2

from boardlift_orchestrator.facts import make_figure
from boardlift_orchestrator.record import JobRecord, StageState

SAME_MODEL: Final = "same model"
SIMILAR_SIZE: Final = "similar size"
ANY_MODEL: Final = "any model"
_ALIKE: Final = 2.0


@dataclass(frozen=True)
class PastRun:
    """One run of a stage that came to its end."""

    stage: str
    """Stage."""
    kind: str
    """Preset of its variant, or the precision that shared stages are made for."""
    model: str
    """Digest of the model."""
    model_bytes: int
    """Size of the model file."""
    seconds: float
    """Time from when a worker began it to its end; time in the queue is not in it."""


@dataclass(frozen=True)
class Expectation:
    """What a stage is expected to take."""

    figure: toolchain_pb2.Figure
    """Seconds, estimated."""
    runs: int
    """Past runs it comes from."""
    basis: str
    """What they have in common with the new one."""


def runs_of(job: JobRecord, spec: job_pb2.JobSpec) -> list[PastRun]:
    """Return the stages of a job that really ran to a result."""
    return [
        PastRun(
            stage.stage,
            kind_of(spec, stage.stage, stage.variant),
            spec.model.artifact.sha256,
            spec.model.artifact.size_bytes,
            stage.end - stage.begun,
        )
        for stage in job.stages
        if stage.state is StageState.SUCCEEDED and not stage.cached and 0 < stage.begun <= stage.end
    ]


def kind_of(spec: job_pb2.JobSpec, stage: str, variant: str) -> str:
    """Return what runs of a stage are told apart by: the variant's preset, else the name of the shared stage."""
    presets = {item.name: item.preset or "int8" for item in spec.variants}
    return presets.get(variant, "") if stage in ("compile", "simulate", "board") else variant


def expect(runs: Sequence[PastRun], spec: job_pb2.JobSpec, stage: str, variant: str) -> Expectation | None:
    """Return the median of the past runs that are most alike; None when there are none of this stage."""
    kind = kind_of(spec, stage, variant)
    alike = [run for run in runs if run.stage == stage and run.kind == kind]
    size = spec.model.artifact.size_bytes
    same = [run for run in alike if run.model == spec.model.artifact.sha256]
    near = [run for run in alike if size and size / _ALIKE <= run.model_bytes <= size * _ALIKE]
    for found, basis in ((same, SAME_MODEL), (near, SIMILAR_SIZE), (alike, ANY_MODEL)):
        if found:
            seconds = statistics.median(run.seconds for run in found)
            source = f"median of {len(found)} past runs, {basis}"
            kind_number = toolchain_pb2.FIGURE_KIND_ESTIMATED
            return Expectation(make_figure("duration_s", seconds, "s", kind_number, source), len(found), basis)
    return None
