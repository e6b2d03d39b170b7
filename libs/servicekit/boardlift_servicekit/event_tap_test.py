from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from boardlift.v1 import job_pb2, queue_pb2, toolchain_pb2

from boardlift_servicekit import event_tap, messaging
from boardlift_servicekit.event_tap import EventTap

TASK = queue_pb2.StageTask(job_id="j", stage="check", attempt=1)


async def test_events_are_thinned_out_but_the_last_progress_is_told(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(event_tap, "time", SimpleNamespace(monotonic=lambda: now[0]))
    heard = await client.subscribe("evt.job.j.*")
    tap = EventTap(client, TASK)
    for number in range(200):
        await tap.emit(toolchain_pb2.LogLine(text=str(number)))
    now[0] += 1.0
    await tap.emit(toolchain_pb2.LogLine(text="a second later"))
    for percent in range(101):
        await tap.emit(toolchain_pb2.Progress(step="s", fraction=percent / 100))
    await tap.close()
    events = [job_pb2.WatchJobResponse.FromString((await heard.next_msg(timeout=5)).data) for _ in range(44)]
    lines = [event.log.text for event in events if event.HasField("log")]
    assert lines[:40] == [str(number) for number in range(40)]
    assert lines[40:] == ["(160 lines left out here; the stage's log has them all)", "a second later"]
    assert [event.progress.fraction for event in events if event.HasField("progress")] == [0.0, 1.0]
    assert all(event.stage == "check" for event in events)


async def test_a_stage_goes_on_when_nobody_can_be_told_any_more(nats_stack: Any) -> None:
    client = await messaging.connect(nats_stack.nats_url, "chatty", pending_size=2048, reconnect_time_wait=0.1)
    nats_stack.nats.kill()
    while client.is_connected:
        await asyncio.sleep(0.01)
    tap = EventTap(client, TASK)
    for number in range(100):
        await tap.emit(toolchain_pb2.LogLine(text=f"{number} {'x' * 100}"))
    await tap.close()
    await messaging.publish_started(client, queue_pb2.StageOutcome(job_id="j", worker="w"))
    assert client.pending_data_size <= 2048
    await messaging.disconnect(client)
