from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from boardlift.v1 import artifact_pb2, job_pb2
from boardlift_servicekit.artifacts import LocalStore

from boardlift_orchestrator.convert import read_ref
from boardlift_orchestrator.record import Failure, JobRecord, JobState, Ref, Stage, StageState
from boardlift_orchestrator.references import References


async def job_of(store: LocalStore, dataset: artifact_pb2.ArtifactRef, created: float) -> JobRecord:
    spec = job_pb2.JobSpec(dataset=dataset)
    ref = read_ref(await store.put_bytes(spec.SerializeToString(), "x"))
    return JobRecord("nightly", ref, created, created + 60, (Stage("ingest"),))


async def test_a_later_job_of_the_same_id_names_what_it_names(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    references = References(store)
    old, new = [await store.put_bytes(data, "x") for data in (b"old", b"new")]
    first = dataclasses.replace(await job_of(store, old, 1.0), state=JobState.SUCCEEDED, ended=2.0)
    assert references.known(first.id, first.created) is None
    assert references.read(first) == {first.spec.sha256, old.sha256}
    assert references.known(first.id, first.created) == {first.spec.sha256, old.sha256}
    second = await job_of(store, new, 3.0)
    assert references.known(second.id, second.created) is None
    assert references.read(second) == {second.spec.sha256, new.sha256}
    assert references.known(second.id, second.created) is None  # it has not ended: it will name more
    ended = dataclasses.replace(second, state=JobState.FAILED, ended=4.0)
    references.read(ended)
    references.keep_only({ended.id})
    assert references.known(ended.id, ended.created) == {ended.spec.sha256, new.sha256}
    references.keep_only(set())
    assert references.known(ended.id, ended.created) is None


async def test_logs_of_failures_and_results_that_are_gone_are_named(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    job = await job_of(store, await store.put_bytes(b"samples", "x"), time.time())
    log, lost = Ref("a" * 64), Ref("b" * 64)
    failed = Stage("check", state=StageState.FAILED, failure=Failure("X", "", log=log), result=lost)
    names = References(store).read(dataclasses.replace(job, stages=(failed,)))
    assert {log.sha256, lost.sha256} <= names
