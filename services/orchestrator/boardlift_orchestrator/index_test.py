from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from boardlift_servicekit.buckets import REMOVAL_S
from support.dial_lab import DialLab
from support.nats_server import running_nats

from boardlift_orchestrator.index import JobIndex
from boardlift_orchestrator.record import JobRecord, Ref, Stage, encode_record


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[DialLab]:
    with running_nats(tmp_path) as stack:
        made = await DialLab(stack.nats_url, tmp_path, "lab").start()
        yield made
        await made.stop()


async def test_a_removal_is_seen_even_when_its_mark_has_gone_meanwhile(lab: DialLab) -> None:
    jobs, js = lab.buckets.jobs, lab.client.jetstream()
    for name in ("stays", "goes", "vanishes"):
        await jobs.put(name, encode_record(JobRecord(name, Ref("0" * 64), 1.0, 2.0, (Stage("ingest"),))))
    index = JobIndex(jobs)
    assert {line.id for line in await index.lines()} == {"stays", "goes", "vanishes"}
    await jobs.remove("goes")
    assert {line.id for line in await index.lines()} == {"stays", "vanishes"}
    await js.purge_stream("KV_JOB", subject="$KV.JOB.vanishes")  # removed, and the mark's life time is over
    assert {line.id for line in await index.lines()} == {"stays", "vanishes"}  # what an index that slept believes
    index._looked -= REMOVAL_S
    assert {line.id for line in await index.lines()} == {"stays"}


async def test_a_record_that_can_t_be_read_hides_no_other_and_is_named(lab: DialLab) -> None:
    jobs = lab.buckets.jobs
    for name in ("a", "z"):
        await jobs.put(name, encode_record(JobRecord(name, Ref("0" * 64), 1.0, 2.0, (Stage("ingest"),))))
        if name == "a":
            await jobs.put("newer", b'{"state": "a state of a newer release"}')
    index = JobIndex(jobs)
    for _ in range(2):
        assert {line.id for line in await index.lines()} == {"a", "z"}
        assert index.unreadable == {"newer"}
    await jobs.put("newer", encode_record(JobRecord("newer", Ref("0" * 64), 1.0, 2.0, (Stage("ingest"),))))
    assert {line.id for line in await index.lines()} == {"a", "newer", "z"}
    assert not index.unreadable
