"""Make jobs in tests and follow them to their end."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

from boardlift.v1 import artifact_pb2, compiler_pb2, job_pb2, job_pb2_grpc, transform_pb2
from boardlift_servicekit.artifacts import LocalStore, RemoteStore

ENDED = (job_pb2.Job.STATE_SUCCEEDED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)
Source = transform_pb2.ModelSource


async def upload(channel: Any, folder: Any, data: bytes) -> artifact_pb2.ArtifactRef:
    return await RemoteStore(channel, LocalStore(folder)).put_bytes(data, "application/octet-stream")


def spec(dataset: artifact_pb2.ArtifactRef, name: str = "m", variants: tuple[str, ...] = ("int8", "int16")) -> Any:
    """A small job; different names give different models, hence different work."""
    presets = {"int8": "int8", "int16": "int16"}
    return job_pb2.JobSpec(
        model=Source(inline_model=f"model {name}".encode()),
        dataset=dataset,
        target="rdk-x5",
        variants=[compiler_pb2.VariantSpec(name=item, preset=presets.get(item, "int8")) for item in variants],
        gates=[job_pb2.Gate(metric="cosine", minimum=0.99), job_pb2.Gate(metric="estimated_latency_us", maximum=500)],
        model_name=f"{name}.onnx",
        command=["boardlift", "run", f"{name}.onnx"],
    )


async def create(channel: Any, job_spec: Any, request_id: str = "") -> Any:
    stub = job_pb2_grpc.JobServiceStub(channel)
    request = job_pb2.CreateJobRequest(spec=job_spec, request_id=request_id or str(uuid.uuid4()))
    return (await stub.CreateJob(request, timeout=20)).job


async def wait_ended(channel: Any, job_id: str, timeout_s: float = 120.0) -> Any:
    """Poll a job until it has ended."""
    stub = job_pb2_grpc.JobServiceStub(channel)
    end = time.monotonic() + timeout_s
    while True:
        job = (await stub.GetJob(job_pb2.GetJobRequest(job_id=job_id), timeout=10)).job
        if job.state in ENDED:
            return job
        if time.monotonic() > end:
            raise TimeoutError(str(job))
        await asyncio.sleep(0.1)
