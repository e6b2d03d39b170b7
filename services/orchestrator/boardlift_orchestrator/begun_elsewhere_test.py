from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from boardlift.v1 import board_agent_pb2, queue_pb2, toolchain_pb2
from support.dial_lab import DialLab
from support.nats_server import running_nats

from boardlift_orchestrator.begun_elsewhere import begun_elsewhere
from boardlift_orchestrator.record import JobRecord, Ref, Stage, StageState, encode_record
from boardlift_orchestrator.registry import LEASE_PREFIX, NOT_DIALLED

TASK = queue_pb2.StageTask(job_id="j", stage="board", variant="v", attempt=2)


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[DialLab]:
    with running_nats(tmp_path) as stack:
        made = await DialLab(stack.nats_url, tmp_path, "lab").start()
        yield made
        await made.stop()


async def test_a_task_is_left_to_the_board_that_has_begun_it(lab: DialLab) -> None:
    async def other(busy_job: str = "j", *, fit: bool = True) -> None:
        state = board_agent_pb2.BoardState(in_rotation=fit, busy_job=busy_job)
        sign = queue_pb2.BoardPresence(boot_id="1", state=state)
        await lab.buckets.presence.put("other", sign.SerializeToString())

    async def record(**fields: Any) -> None:
        stage = Stage(**{"stage": "board", "variant": "v", "state": StageState.RUNNING, "attempt": 2, **fields})
        job = JobRecord("j", Ref("0" * 64), time.time(), time.time() + 60, (stage,))
        await lab.buckets.jobs.put("j", encode_record(job))

    async def dialled(*codes: str) -> None:
        findings = [toolchain_pb2.Finding(code=code) for code in codes]
        await lab.buckets.leases.put(
            "dial.other", queue_pb2.BoardDial(dialler="o", findings=findings).SerializeToString()
        )

    async def left() -> bool:
        return await begun_elsewhere(TASK, "me", lab.buckets.jobs, lab.registry)

    async def registered(mode: board_agent_pb2.BoardInfo.Mode) -> None:
        info = board_agent_pb2.BoardInfo(id="other", target="rdk-x5", mode=mode)
        await lab.buckets.boards.put("other", queue_pb2.BoardRecord(info=info).SerializeToString())

    assert not await left()  # a diagnosis has no record
    await registered(board_agent_pb2.BoardInfo.MODE_DIAL)
    await other()
    await record(worker="other")
    assert await left()
    await dialled()
    assert await left()
    await dialled(NOT_DIALLED)
    assert await left()
    await dialled("DIAL_UNREACHABLE")
    assert not await left()
    await dialled()
    for busy, expected in (("", True), ("another-job", False)):
        await other(busy)
        assert await left() is expected
    await other(fit=False)
    assert not await left()
    await other()
    for fields in (
        {"worker": ""},
        {"worker": "me"},
        {"worker": "other", "attempt": 1},
        {"worker": "other", "attempt": 3},
    ):
        await record(**fields)
        assert not await left(), fields
    await record(worker="other", state=StageState.SUCCEEDED)
    assert not await left()
    await record(worker="other")
    lease = queue_pb2.BoardLease(board_id="other", holder="ann")
    lease.end_time.FromSeconds(int(time.time()) + 60)
    await lab.buckets.leases.put(LEASE_PREFIX + "other", lease.SerializeToString())
    assert not await left()
    await lab.buckets.leases.remove(LEASE_PREFIX + "other")
    assert await left()
    await registered(board_agent_pb2.BoardInfo.MODE_PULL)
    assert not await left()
    await registered(board_agent_pb2.BoardInfo.MODE_DIAL)
    await lab.buckets.presence.remove("other")
    assert not await left()
