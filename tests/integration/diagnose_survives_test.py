"""A diagnosis on its way outlives a restart of NATS; when the orchestrator dies, asking again gives the answer."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import grpc
import pytest
from boardlift.v1 import job_pb2
from integration.board_queue_test import Lab, boards, lab, model, online, stack, until  # noqa: F401
from integration.diagnose_queue_test import Asker, asker  # noqa: F401
from support.stack import Stack, wait_for_port

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(500)]
Parts = tuple[Asker, Lab, Any, Stack]
CAUSE = ["input-not-divided-by-255"]


@pytest.fixture
def parts(asker: Asker, lab: Lab, boards: Any, stack: Stack) -> Parts:  # noqa: F811
    return asker, lab, boards, stack


def same_question(asker: Asker, board: str, samples: int) -> job_pb2.DiagnoseJobRequest:  # noqa: F811
    request = job_pb2.DiagnoseJobRequest()
    request.CopyFrom(asker.request)
    request.diagnosis.run_id = uuid.uuid4().hex
    request.diagnosis.sample_limit = samples
    request.board.id = board
    return request


async def until_it_runs(call: Any) -> None:
    """Read until the board tells how far it is."""
    while True:
        event = await call.read()
        assert event is not grpc.aio.EOF
        if event.WhichOneof("event") == "progress":
            return


async def last(call: Any) -> Any:
    event = None
    while (read := await call.read()) is not grpc.aio.EOF:
        event = read
    return event


@pytest.mark.parametrize("away_s", [0.5, 12.0], ids=["comes back during the run", "comes back after the run"])
async def test_nats_restarts_meanwhile(parts: Parts, away_s: float) -> None:
    asker, lab, boards, stack = parts  # noqa: F811
    name = f"q-nats-{int(away_s)}"
    boards(name)
    await online(lab, name)
    call = asker.stub.DiagnoseJob(same_question(asker, name, 2), timeout=150)
    await until_it_runs(call)
    stack.nats.kill()
    await asyncio.sleep(away_s)
    stack.nats.start()
    await asyncio.to_thread(stack.wait_for_nats)
    result = (await last(call)).result
    assert [d.cause for d in result.diagnoses] == CAUSE
    await until(asker.queue_is_empty, 30)


async def test_the_orchestrator_dies_and_is_asked_again(parts: Parts) -> None:
    asker, lab, boards, stack = parts  # noqa: F811
    boards("q-orch")
    await online(lab, "q-orch")
    question = same_question(asker, "q-orch", 2)
    call = asker.stub.DiagnoseJob(question, timeout=150)
    await until_it_runs(call)
    stack.servers[0].kill()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await last(call)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    stack.servers[0].start()
    await asyncio.to_thread(wait_for_port, stack.orchestrator_ports[0])
    await online(lab, "q-orch")
    result = (await last(asker.stub.DiagnoseJob(question, timeout=150))).result
    assert [d.cause for d in result.diagnoses] == CAUSE
    await until(asker.queue_is_empty, 60)

    async def free() -> bool:
        return not (await lab.boards())["q-orch"].state.busy_job

    await until(free, 30)
