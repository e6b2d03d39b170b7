"""Clients that go on while servers are away, as the SDK does."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

import grpc
from boardlift.v1 import job_pb2, job_pb2_grpc
from support import jobs

AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED, grpc.StatusCode.DEADLINE_EXCEEDED)
"""Codes after which a client repeats a call that may be repeated."""


async def persist(make: Any, seconds: float = 60.0) -> Any:
    """Repeat a call while servers are away, as a client does."""
    end = time.monotonic() + seconds
    while True:
        try:
            return await make()
        except grpc.aio.AioRpcError as error:
            if error.code() not in AGAIN or time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)


async def submit(addresses: list[Any], dataset: Any, index: int) -> str:
    channel = addresses[index % len(addresses)]
    request_id = str(uuid.uuid4())
    job = await persist(lambda: jobs.create(channel, jobs.spec(dataset, f"chaos{index}"), request_id))
    return str(job.id)


async def wait_for_end(channel: Any, job_id: str) -> Any:
    stub = job_pb2_grpc.JobServiceStub(channel)
    end = time.monotonic() + 240
    while True:
        answer = await persist(lambda: stub.GetJob(job_pb2.GetJobRequest(job_id=job_id), timeout=5))
        if answer.job.state in jobs.ENDED:
            return answer.job
        assert time.monotonic() < end, f"job did not end: {answer.job}"
        await asyncio.sleep(0.5)
