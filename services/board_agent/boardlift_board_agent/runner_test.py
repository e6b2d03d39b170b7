"""Tasks from the queue: what is too late is not begun, what is another service's is refused."""

import time
from types import SimpleNamespace

import pytest
from boardlift.errors import DeadlineError, UnsupportedError
from boardlift.v1 import board_agent_pb2, queue_pb2

from boardlift_board_agent.runner import QueueRunner

Result = board_agent_pb2.DiagnoseResult


def runner(begun: list[str]) -> QueueRunner:
    async def events(request, name):
        begun.append(name)
        yield Result()

    return QueueRunner(SimpleNamespace(diagnose=events, run=events))  # type: ignore[arg-type]


def task(stage: str, seconds: float) -> queue_pb2.StageTask:
    made = queue_pb2.StageTask(job_id="d-1", stage=stage, attempt=1)
    made.deadline_time.FromNanoseconds(time.time_ns() + int(seconds * 1e9))
    return made


async def no_event(event) -> None:
    pytest.fail(f"nothing is to be told, not {event}")


async def test_a_diagnosis_that_nobody_waits_for_any_more_is_not_begun() -> None:
    begun: list[str] = []
    with pytest.raises(DeadlineError) as caught:
        await runner(begun).run(task("diagnose", -1), no_event)
    assert caught.value.reason == "DIAGNOSIS_DEADLINE_EXCEEDED" and begun == []
    assert await runner(begun).run(task("diagnose", 60), no_event) == Result()
    assert len(begun) == 1


async def test_a_stage_of_another_service_is_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        await runner([]).run(task("compile", 60), no_event)
    assert caught.value.reason == "STAGE_UNSUPPORTED"
