from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from boardlift.v1 import job_pb2, toolchain_pb2
from boardlift_servicekit.messaging import connect
from boardlift_servicekit.streams import QueueLimits, ensure_streams
from support.nats_server import running_nats

from boardlift_orchestrator import watch
from boardlift_orchestrator.watch import EventHub, JobTail


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Any]:
    with running_nats(tmp_path) as stack:
        connected = await connect(stack.nats_url, "test")
        await ensure_streams(connected.jetstream(), QueueLimits())
        yield connected
        await connected.close()


async def write(client: Any, kind: str, body: bytes) -> int:
    return int((await client.jetstream().publish(f"evt.job.j.{kind}", body)).seq)


def line(text: str) -> bytes:
    message = job_pb2.WatchJobResponse(log=toolchain_pb2.LogLine(text=text))
    return bytes(message.SerializeToString())


async def test_nobody_but_the_orchestrator_says_how_a_job_stands_and_nonsense_hides_nothing(client: Any) -> None:
    ended = job_pb2.WatchJobResponse(job=job_pb2.Job(id="j", state=job_pb2.Job.STATE_SUCCEEDED)).SerializeToString()
    first = await write(client, "log", line("before"))
    await write(client, "log", ended)  # a board may write lines, and only those
    await write(client, "progress", b"\xff\xff\xff")
    await write(client, "progress", b"")
    last = await write(client, "job", ended)
    for tail in (JobTail(client, "j", 0), JobTail(client, "j", last)):  # by what is kept, and from the store
        events = await tail.read(0, look=True)
        assert [(event.sequence, event.WhichOneof("event")) for event in events] == [(first, "log"), (last, "job")]


async def test_a_long_history_is_read_whole_and_not_kept_whole(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_KEPT", 10)
    texts = [str(number) for number in range(35)]
    for text in texts:
        await write(client, "log", line(text))
    tail = JobTail(client, "j", 0)
    for _ in range(2):
        assert [event.log.text for event in await tail.read(0, look=True)] == texts
        assert len(tail._events) == 10
    newest = (await tail.read(0, look=False))[-1].sequence
    assert [event.log.text for event in await tail.read(newest - 3, look=False)] == texts[-3:]


async def test_a_tail_goes_with_its_last_watcher(client: Any) -> None:
    hub = EventHub(client)
    watchers = [hub.join("j", after) for after in (0, 5, 0)]
    assert len({id(tail) for tail, _ in watchers}) == 1
    for _, wake in watchers:
        assert list(hub._tails) == ["j"]
        hub.leave("j", wake)
    assert not hub._tails
