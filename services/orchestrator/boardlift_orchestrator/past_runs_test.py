from __future__ import annotations

import dataclasses

import pytest
from boardlift.v1 import artifact_pb2, compiler_pb2, job_pb2, toolchain_pb2, transform_pb2

from boardlift_orchestrator.past_runs import PastRun, expect, runs_of
from boardlift_orchestrator.plan_stages import plan_classes, plan_stages
from boardlift_orchestrator.record import JobRecord, Ref, StageState


def spec(model: str = "a", size: int = 1000) -> job_pb2.JobSpec:
    artifact = artifact_pb2.ArtifactRef(sha256=model * 64, size_bytes=size)
    variants = [
        compiler_pb2.VariantSpec(name="fast", preset="int8"),
        compiler_pb2.VariantSpec(name="b", preset="int16"),
    ]
    return job_pb2.JobSpec(model=transform_pb2.ModelSource(artifact=artifact), variants=variants)


def test_only_stages_that_really_ran_count_and_without_their_time_in_the_queue() -> None:
    job = JobRecord("j", Ref("a" * 64), 0.0, 1.0, plan_stages(spec()), classes=plan_classes(spec()))
    done = [
        dataclasses.replace(stage, state=StageState.SUCCEEDED, start=1.0, begun=50.0, end=60.0) for stage in job.stages
    ]
    done[1] = dataclasses.replace(done[1], cached=True)
    done[2] = dataclasses.replace(done[2], begun=0.0)  # of a release that did not keep it
    done[3] = dataclasses.replace(done[3], state=StageState.FAILED)
    runs = runs_of(dataclasses.replace(job, stages=tuple(done)), spec())
    assert len(runs) == len(done) - 3
    assert {run.seconds for run in runs} == {10.0}
    assert {(run.stage, run.kind) for run in runs} >= {("compile", "int8"), ("board", "int16"), ("ingest", "")}


@pytest.mark.parametrize(
    ("runs", "seconds", "basis"),
    [
        ([("a", 1000, 5.0), ("a", 1000, 7.0), ("b", 1000, 100.0)], 6.0, "same model"),
        ([("b", 1900, 20.0), ("b", 600, 30.0), ("c", 5000, 900.0)], 25.0, "similar size"),
        ([("c", 5000, 900.0)], 900.0, "any model"),
    ],
)
def test_the_most_alike_runs_decide(runs: list[tuple[str, int, float]], seconds: float, basis: str) -> None:
    past = [PastRun("compile", "int8", model * 64, size, took) for model, size, took in runs]
    found = expect(past, spec(), "compile", "fast")
    assert found is not None
    assert (found.figure.value, found.basis, found.figure.unit) == (seconds, basis, "s")
    assert found.figure.kind == toolchain_pb2.FIGURE_KIND_ESTIMATED
    assert expect(past, spec(), "compile", "b") is None
    assert expect(past, spec(), "simulate", "fast") is None
