"""Wire the compiler service: toolchain, artifact store, executions, gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import metadata
from pathlib import Path
from typing import Any

import structlog
from boardlift.errors import BoardliftError, InvalidInputError, PreconditionError
from boardlift.v1 import (
    artifact_pb2_grpc,
    compiler_pb2,
    compiler_pb2_grpc,
    explore_pb2_grpc,
    toolchain_pb2,
    toolchain_pb2_grpc,
)
from boardlift_servicekit.artifact_service import SERVICE as ARTIFACT_SERVICE
from boardlift_servicekit.artifact_service import ArtifactServicer
from boardlift_servicekit.artifacts import ArtifactStore, LocalStore, RemoteStore
from boardlift_servicekit.channels import connect
from boardlift_servicekit.clock import now
from boardlift_servicekit.executions import Executions, as_responses, code_version, execution_id, request_key
from boardlift_servicekit.keeper import Keeper, store_info
from boardlift_servicekit.server import Host, wait_for_signal
from google.protobuf.message import Message

from boardlift_compiler import convert
from boardlift_compiler.choose_slots import available_cores, choose_slots
from boardlift_compiler.explore_server import EXPLORE_SERVICE, ExploreServicer
from boardlift_compiler.history import History
from boardlift_compiler.read_config import read_config
from boardlift_compiler.run_folder import sweep
from boardlift_compiler.run_mapper import Limits
from boardlift_compiler.run_stages import StageRunner
from boardlift_compiler.run_vendor import toolchain_side
from boardlift_compiler.settings import AllSettings, Settings
from boardlift_compiler.spec import PRESETS, TARGET
from boardlift_compiler.toolchain import REMEDY, missing_cpu_flags, probe_toolchain
from boardlift_compiler.warm_start import WarmStart

_LOG = structlog.get_logger()
STAGE_VERSION = code_version(Path(__file__).parent, toolchain_side("run_quantised.py").parent)
COMPILER_SERVICE = "boardlift.v1.CompilerService"
SERVER_SERVICE = "boardlift.v1.ServerService"
MAX_YAML_BYTES = 1 << 20


class CompilerServicer(compiler_pb2_grpc.CompilerServiceServicer):
    """Answers `CompilerService`; without a toolchain the stages are refused with the command that gets it."""

    def __init__(self, executions: Executions[Any], runner: StageRunner | None, absent: BoardliftError | None) -> None:
        """Serve with a runner, or with the error that says why there is none."""
        self._executions = executions
        self._runner = runner
        self._absent = absent

    def CheckModel(self, request: compiler_pb2.CheckModelRequest, context: Any) -> AsyncIterator[Any]:
        """Run the checker; attaches to an equal execution."""
        runner = self._require()
        key = self.key("check", request)
        events = self._executions.run(
            key, execution_id(context), compiler_pb2.CheckResult, lambda e: runner.check(request, e)
        )
        return as_responses(compiler_pb2.CheckModelResponse, events)

    def CompileModel(self, request: compiler_pb2.CompileModelRequest, context: Any) -> AsyncIterator[Any]:
        """Compile; attaches to an equal execution."""
        runner = self._require()
        key = self.key("compile", request)
        events = self._executions.run(
            key, execution_id(context), compiler_pb2.CompileResult, lambda e: runner.compile(request, e)
        )
        return as_responses(compiler_pb2.CompileModelResponse, events)

    def SimulateModel(self, request: compiler_pb2.SimulateModelRequest, context: Any) -> AsyncIterator[Any]:
        """Simulate; attaches to an equal execution."""
        runner = self._require()
        key = self.key("simulate", request)
        events = self._executions.run(
            key, execution_id(context), compiler_pb2.SimulateResult, lambda e: runner.simulate(request, e)
        )
        return as_responses(compiler_pb2.SimulateModelResponse, events)

    async def DescribeToolchain(self, request: Any, context: Any) -> compiler_pb2.DescribeToolchainResponse:
        """Describe versions, knobs and failure kinds."""
        tool = convert.tool_to_wire(self._runner.toolchain) if self._runner else None
        return compiler_pb2.DescribeToolchainResponse(
            toolchain=tool or toolchain_pb2.ToolchainInfo(name="hb_mapper"),
            targets=[TARGET],
            knobs=convert.knobs_to_wire(),
            presets=PRESETS,
            failure_kinds=convert.failure_kinds_to_wire(),
        )

    async def ConvertConfig(self, request: Any, context: Any) -> compiler_pb2.ConvertConfigResponse:
        """Convert a makertbin YAML and lint it."""
        if len(request.yaml.encode()) > MAX_YAML_BYTES:
            raise InvalidInputError("The YAML is larger than 1 MiB.", metadata={"field": "yaml"})
        converted = read_config(request.yaml)
        response = compiler_pb2.ConvertConfigResponse(
            findings=convert.findings_to_wire(converted.findings), paths=converted.paths
        )
        if converted.spec is not None:
            response.variant.CopyFrom(convert.spec_to_wire(converted.spec))
        return response

    def _require(self) -> StageRunner:
        if self._runner is None:
            raise self._absent or PreconditionError("There is no toolchain.", reason="TOOLCHAIN_MISSING", remedy=REMEDY)
        return self._runner

    def key(self, stage: str, request: Message) -> str:
        """Reduce a request to what decides its result: not names, media types, or whether a default is written out."""
        runner = self._require()
        reduced = type(request)()
        reduced.CopyFrom(request)
        if stage in ("compile", "check"):
            variant = convert.spec_to_wire(convert.spec_from_wire(request.variant))  # type: ignore[attr-defined]
            variant.name = ""
            reduced.variant.CopyFrom(variant)  # type: ignore[attr-defined]
            reduced.target = TARGET if not reduced.target else reduced.target  # type: ignore[attr-defined]
        _clear_media_types(reduced)
        parts = [f"{k}={v}" for k, v in sorted(runner.toolchain.parts.items())]
        return request_key(stage, STAGE_VERSION, reduced, runner.toolchain.version, *parts)


def _clear_media_types(message: Message) -> None:
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None and descriptor.message_type.full_name == "boardlift.v1.ArtifactRef":
            value.media_type = ""


class ServerServicer(toolchain_pb2_grpc.ServerServiceServicer):
    """Answers `ServerService`."""

    def __init__(
        self,
        executions: Executions[Any],
        runner: StageRunner | None,
        absent: BoardliftError | None,
        explore: ExploreServicer,
        cache: LocalStore,
    ) -> None:
        """Describe these."""
        self._cache = cache
        self._executions, self._runner, self._absent, self._explore = executions, runner, absent, explore

    async def GetServerInfo(self, request: Any, context: Any) -> toolchain_pb2.GetServerInfoResponse:
        """Describe the server; what is missing is a finding with the command that gets it."""
        response = toolchain_pb2.GetServerInfoResponse(
            name="compiler",
            version=metadata.version("boardlift-compiler"),
            slots=self._executions.slots if self._runner else 0,
            busy_slots=self._executions.busy,
            store=store_info(self._cache),
            server_time=now(),
        )
        if self._runner is not None:
            response.tools.append(convert.tool_to_wire(self._runner.toolchain))
            missing = missing_cpu_flags()
            if missing:
                response.findings.add(
                    code="CPU_FLAGS_MISSING",
                    severity=toolchain_pb2.Finding.SEVERITY_WARNING,
                    message=f"This processor lacks {', '.join(missing)}; the toolchain may die of an illegal one.",
                    remedy="Use another machine, or pass the host CPU through to the virtual machine.",
                )
        elif self._absent is not None:
            response.findings.add(
                code=self._absent.reason,
                severity=toolchain_pb2.Finding.SEVERITY_ERROR,
                message=self._absent.message,
                remedy=self._absent.remedy,
            )
        return response

    async def CancelExecution(self, request: Any, context: Any) -> toolchain_pb2.CancelExecutionResponse:
        """Stop a running stage at once when nobody else waits for it."""
        name = request.execution_id
        stopped = await self._executions.cancel(name) or await self._explore.cancel(name)
        return toolchain_pb2.CancelExecutionResponse(stopped=stopped)


async def build_host(settings: AllSettings) -> tuple[Host, bool]:
    """Probe the toolchain, open the store and put the services together; nothing listens yet.

    Returns:
        The host, and True when there is a toolchain.
    """
    own = settings.own
    host = Host("compiler", settings.server)
    cache = LocalStore(own.state_dir / "artifacts", own.max_artifact_bytes)
    store = _open_store(settings, host, cache)
    if store is cache:
        host.add(artifact_pb2_grpc.add_ArtifactServiceServicer_to_server, ArtifactServicer(cache), ARTIFACT_SERVICE)
    removed = sweep(own.work_root)
    if removed:
        _LOG.warning("removed remains of killed runs", folders=len(removed))
    runner, absent = await _make_runner(own, store, host)
    slots = choose_slots(own.slots)
    executions: Executions[Any] = Executions(
        own.state_dir / "results", store, slots=slots, grace_s=own.cancel_grace.total_seconds()
    )
    host.on_stop(executions.close)
    compiler = CompilerServicer(executions, runner, absent)
    grace_s = own.cancel_grace.total_seconds()
    explore = ExploreServicer(executions, runner, absent, compiler.key, own.state_dir / "explore", grace_s)
    host.on_stop(explore.close)
    results = [own.state_dir / "results", own.state_dir / "explore" / "results"]
    runs = [executions, *([explore.executions] if explore.executions else [])]
    Keeper(cache, results, settings.keep, executions=runs).attach(host)
    host.add(compiler_pb2_grpc.add_CompilerServiceServicer_to_server, compiler, COMPILER_SERVICE)
    host.add(explore_pb2_grpc.add_ExploreServiceServicer_to_server, explore, EXPLORE_SERVICE)
    server = ServerServicer(executions, runner, absent, explore, cache)
    host.add(toolchain_pb2_grpc.add_ServerServiceServicer_to_server, server, SERVER_SERVICE)
    return host, runner is not None


def _open_store(settings: AllSettings, host: Host, cache: LocalStore) -> ArtifactStore:
    if not settings.own.artifacts:
        return cache
    channel = connect(settings.own.artifacts, settings.channel)
    host.on_stop(channel.close)
    return RemoteStore(channel, cache)


async def _make_runner(
    own: Settings, store: ArtifactStore, host: Host
) -> tuple[StageRunner | None, BoardliftError | None]:
    try:
        toolchain = await probe_toolchain(own.toolchain)
    except PreconditionError as error:
        _LOG.error("no toolchain: compile, check and simulate are refused", reason=error.message, remedy=error.remedy)
        return None, error
    _LOG.info("toolchain", version=toolchain.version, known=toolchain.known, **toolchain.parts)
    limits = Limits(
        own.compile_timeout.total_seconds(), own.silence_timeout.total_seconds(), memory_bytes=own.tool_memory_bytes
    )
    jobs = max(1, available_cores() // choose_slots(own.slots))
    runner = StageRunner(toolchain, store, own.work_root, limits, History(own.state_dir / "history.jsonl"), jobs)
    if own.warm_start:
        warm = WarmStart(toolchain, own.work_root)
        host.on_stop(warm.close)
        runner = StageRunner(toolchain, store, own.work_root, limits, runner.history, jobs, launcher=warm.launch)
    return runner, None


async def start_host(settings: AllSettings) -> Host:
    """Start serving; without a toolchain `CompilerService` is NOT_SERVING while the server itself is healthy."""
    host, has_toolchain = await build_host(settings)
    await host.start()
    for service in (COMPILER_SERVICE, EXPLORE_SERVICE):
        await host.set_serving(service, has_toolchain)
    return host


async def serve(settings: AllSettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    host = await start_host(settings)
    await wait_for_signal()
    _LOG.info("stopping", server="compiler")
    await host.stop()
