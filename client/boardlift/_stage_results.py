"""Results of a job's stages as messages, read from its artifacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import Message

from boardlift.v1 import compiler_pb2, job_pb2, transform_pb2

Read = Callable[[str], bytes]
"""Returns the bytes of an artifact by its SHA-256."""
M = TypeVar("M", bound=Message)


class StageResults:
    """Results of one job, each empty where its stage has none."""

    def __init__(self, job: job_pb2.Job, read: Read) -> None:
        """Read results of `job` by `read`."""
        self._job = job
        self._read = read

    def ingest(self) -> transform_pb2.PrepareDatasetResponse:
        """The checked and split dataset, in the form of the model as its user has it."""
        return self._parse(transform_pb2.PrepareDatasetResponse(), self._find("ingest", ""))

    def transform(self, variant: str) -> transform_pb2.TransformResult:
        """The transform that a variant was compiled from: one for all, or one per precision."""
        found = [s for s in self._job.stages if s.stage == "transform" and s.result.sha256]
        preset = next((v.preset for v in self._job.spec.variants if v.name == variant), "")
        stage = next((s for s in found if len(found) == 1 or s.variant == preset), found[0] if found else None)
        return self._parse(transform_pb2.TransformResult(), stage)

    def compiled(self, variant: str) -> compiler_pb2.CompileResult:
        """What compiling a variant gave."""
        return self._parse(compiler_pb2.CompileResult(), self._find("compile", variant))

    def simulated(self, variant: str) -> compiler_pb2.SimulateResult:
        """What simulating a variant gave."""
        return self._parse(compiler_pb2.SimulateResult(), self._find("simulate", variant))

    def _find(self, stage: str, variant: str) -> job_pb2.StageRecord | None:
        fits = (s for s in self._job.stages if (s.stage, s.variant) == (stage, variant) and s.result.sha256)
        return next(fits, None)

    def _parse(self, message: M, stage: job_pb2.StageRecord | None) -> M:
        if stage is not None:
            message.ParseFromString(self._read(stage.result.sha256))
        return message
