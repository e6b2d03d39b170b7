"""Build variants through the compiler's own executions, so that no build is ever done twice."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from boardlift.errors import InternalError
from boardlift.v1 import artifact_pb2, compiler_pb2, toolchain_pb2
from boardlift_servicekit.executions import Emitter, Executions
from google.protobuf.message import Message

from boardlift_compiler.run_stages import StageRunner
from boardlift_compiler.spec import TARGET

R = TypeVar("R", bound=Message)


@dataclass
class VariantBuilder:
    """Checks and compiles with single flight and stored results; stopping it stops what it started."""

    runner: StageRunner
    """Does the work."""
    executions: Executions[Any]
    """The compiler's executions: their slots bound what runs at once."""
    key: Callable[[str, Message], str]
    """(stage, request) -> digest, as `CompilerService` makes it."""
    built: int = field(default=0)
    """Builds that ran."""
    reused: int = field(default=0)
    """Builds whose stored result answered."""

    async def compile(
        self, model: artifact_pb2.ArtifactRef, variant: compiler_pb2.VariantSpec, calibration: artifact_pb2.ArtifactRef
    ) -> compiler_pb2.CompileResult:
        """Compile a variant."""
        request = _compile_request(model, variant, calibration)
        key = self.key("compile", request)
        result = await self._run(key, compiler_pb2.CompileResult, lambda e: self.runner.compile(request, e))
        if result.execution.cached:
            self.reused += 1
        else:
            self.built += 1
        return result

    async def is_built(
        self, model: artifact_pb2.ArtifactRef, variant: compiler_pb2.VariantSpec, calibration: artifact_pb2.ArtifactRef
    ) -> bool:
        """Tell whether a variant's result is stored."""
        key = self.key("compile", _compile_request(model, variant, calibration))
        return await self.executions.is_stored(key, compiler_pb2.CompileResult)

    async def check(
        self, model: artifact_pb2.ArtifactRef, variant: compiler_pb2.VariantSpec
    ) -> compiler_pb2.CheckResult:
        """Run the vendor's checker."""
        request = compiler_pb2.CheckModelRequest(target=TARGET, model=model, variant=variant)
        key = self.key("check", request)
        return await self._run(key, compiler_pb2.CheckResult, lambda e: self.runner.check(request, e))

    async def _run(self, key: str, result_type: type[R], work: Callable[[Emitter], Awaitable[R]]) -> R:
        name = f"explore-{uuid.uuid4().hex}"
        task = asyncio.ensure_future(self._last(key, name, result_type, work))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await self.executions.cancel(name)
            await asyncio.gather(task, return_exceptions=True)
            raise

    async def _last(self, key: str, name: str, result_type: type[R], work: Callable[[Emitter], Awaitable[R]]) -> R:
        result: R | None = None
        async for event in self.executions.run(key, name, result_type, work):
            if isinstance(event, result_type):
                result = event
        if result is None:
            raise InternalError("An execution ended without a result.")
        return result


def _compile_request(
    model: artifact_pb2.ArtifactRef, variant: compiler_pb2.VariantSpec, calibration: artifact_pb2.ArtifactRef
) -> compiler_pb2.CompileModelRequest:
    return compiler_pb2.CompileModelRequest(target=TARGET, model=model, variant=variant, calibration=calibration)


def file_of(result: compiler_pb2.CompileResult, name: str) -> artifact_pb2.ArtifactRef | None:
    """Return one of a build's files by name."""
    files: list[toolchain_pb2.NamedArtifact] = list(result.files)
    return next((f.artifact for f in files if f.name == name), None)
