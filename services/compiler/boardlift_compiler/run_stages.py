"""The work behind the three stage calls: fetch artifacts, run, store what came out, and say it in messages."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import structlog
from boardlift.errors import InvalidInputError
from boardlift.v1 import artifact_pb2, compiler_pb2, toolchain_pb2
from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.executions import Emitter
from boardlift_servicekit.tool import run_tool

from boardlift_compiler import convert
from boardlift_compiler.choose_slots import available_cores
from boardlift_compiler.explain_failure import explain_os_error
from boardlift_compiler.history import History
from boardlift_compiler.run_check import ARGUMENTS as CHECK_ARGUMENTS
from boardlift_compiler.run_check import check_placement
from boardlift_compiler.run_compile import CompileInputs, CompileOutcome, compile_model, prepare_run
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Launcher, Limits, MapperRun
from boardlift_compiler.run_simulation import DEFAULT_BIT_SAMPLES, SimulateInputs, simulate_model
from boardlift_compiler.spec import TARGET, CompileSpec
from boardlift_compiler.toolchain import Toolchain
from boardlift_compiler.track_progress import ProgressTracker

_LOG = structlog.get_logger()
ONNX, BIN, NPZ, TEXT, JSON = (
    "application/onnx",
    "application/octet-stream",
    "application/x-npz",
    "text/plain",
    "application/json",
)
MEDIA_TYPES = {".onnx": ONNX, ".json": JSON, ".yaml": "application/yaml", ".txt": TEXT, ".log": TEXT,
               ".html": "text/html", ".zip": "application/zip"}  # fmt: skip
MAX_BIT_SAMPLES = 64
R = TypeVar("R", compiler_pb2.CheckResult, compiler_pb2.CompileResult, compiler_pb2.SimulateResult)


@dataclass(frozen=True)
class StageRunner:
    """Runs the stages of one compiler service."""

    toolchain: Toolchain
    """The probed toolchain."""
    store: ArtifactStore
    """Where inputs come from and outputs go."""
    work_root: Path
    """Where run folders are made."""
    limits: Limits
    """What one run may use."""
    history: History
    """Past runs."""
    jobs: int
    """Compiler threads per run."""
    launcher: Launcher = run_tool
    """How the tool is started."""
    lanes: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(available_cores()))
    """One simulator of compiled code per core: a stage alone uses them all, several stages share them."""

    async def check(self, request: compiler_pb2.CheckModelRequest, emitter: Emitter) -> compiler_pb2.CheckResult:
        """Run the checker."""
        return await self._explained(compiler_pb2.CheckResult, self._check(request, emitter))

    async def compile(self, request: compiler_pb2.CompileModelRequest, emitter: Emitter) -> compiler_pb2.CompileResult:
        """Compile a model."""
        return await self._explained(compiler_pb2.CompileResult, self._compile(request, emitter))

    async def simulate(
        self, request: compiler_pb2.SimulateModelRequest, emitter: Emitter
    ) -> compiler_pb2.SimulateResult:
        """Simulate a compiled model."""
        return await self._explained(compiler_pb2.SimulateResult, self._simulate(request, emitter))

    async def _explained(self, result_type: type[R], work: Awaitable[R]) -> R:
        """Give a full disk or an unwritable folder, wherever it strikes, the form of every other failure."""
        try:
            return await work
        except OSError as error:
            result = result_type(failure=convert.failure_to_wire(explain_os_error(error)))
            self._describe(result.execution, None, {})
            return result

    async def _check(self, request: compiler_pb2.CheckModelRequest, emitter: Emitter) -> compiler_pb2.CheckResult:
        require_target(request.target)
        model = await self.store.fetch(request.model)
        spec = convert.spec_from_wire(request.variant)
        with run_folder(self.work_root) as folder:
            outcome = await check_placement(self.toolchain, model, spec, folder, self.limits, self._hooks(emitter))
            result = compiler_pb2.CheckResult(
                nodes=convert.nodes_to_wire(outcome.facts, outcome.reasons),
                findings=convert.findings_to_wire([*outcome.findings, *self.toolchain.findings]),
                bpu_subgraphs=len({n.subgraph for n in outcome.facts.nodes if n.device == "BPU"}),
                bpu_nodes=sum(n.device == "BPU" for n in outcome.facts.nodes),
                cpu_nodes=sum(n.device == "CPU" for n in outcome.facts.nodes),
                subgraphs=[convert.subgraph_to_wire(s, None, self._source) for s in outcome.facts.subgraphs],
            )
            if outcome.console is not None:
                result.log.CopyFrom(await self.store.put_file(outcome.console, TEXT))
            if outcome.failure is not None:
                result.failure.CopyFrom(convert.failure_to_wire(outcome.failure))
                result.failure.log.CopyFrom(result.log)
            self._describe(result.execution, outcome.run, outcome.facts.step_seconds)
            _LOG.info("checked", command=" ".join(CHECK_ARGUMENTS[:1]), failure=result.failure.code)
        return result

    async def _compile(self, request: compiler_pb2.CompileModelRequest, emitter: Emitter) -> compiler_pb2.CompileResult:
        require_target(request.target)
        model = await self.store.fetch(request.model)
        samples = await self.store.fetch(request.calibration) if request.calibration.sha256 else None
        spec = convert.spec_from_wire(request.variant)
        inputs = CompileInputs(model, spec, samples, self.jobs, tuple(self.history.runs))
        with run_folder(self.work_root) as folder:
            if request.validate_only:
                outcome = CompileOutcome(spec=spec)
                await asyncio.to_thread(prepare_run, inputs, folder, outcome)
            else:
                outcome = await compile_model(self.toolchain, inputs, folder, self.limits, self._hooks(emitter))
            result = self._compile_result(outcome)
            await self._store_products(outcome, result)
        if outcome.failure is None and outcome.size is not None:
            self.history.add(outcome.size, outcome.facts.step_seconds)
        return result

    def _compile_result(self, outcome: CompileOutcome) -> compiler_pb2.CompileResult:
        facts, source = outcome.facts, self._source
        reports = {r.name: r for r in outcome.reports}
        result = compiler_pb2.CompileResult(
            nodes=convert.nodes_to_wire(facts, outcome.reasons),
            vendor_outputs=[convert.vendor_output_to_wire(o, source) for o in facts.outputs],
            subgraphs=[convert.subgraph_to_wire(s, reports.get(s.name), source) for s in facts.subgraphs],
            bpu_nodes=sum(n.device == "BPU" for n in facts.nodes),
            cpu_nodes=sum(n.device == "CPU" for n in facts.nodes),
            chosen_method=facts.chosen_method,
            batch_fallback=facts.batch_fallback,
            samples_read=facts.samples,
            findings=convert.findings_to_wire([*outcome.findings, *self.toolchain.findings]),
            yaml=outcome.config,
            command=outcome.command,
            optimize_level=outcome.spec.compiler.optimize_level,
        )
        if outcome.failure is not None:
            result.failure.CopyFrom(convert.failure_to_wire(outcome.failure))
        elif outcome.compiled:
            result.normalized_sha256 = hashlib.sha256(outcome.compiled).hexdigest()
            latency = sum(s.latency_us for s in facts.subgraphs)
            traffic = sum(s.ddr_bytes for s in facts.subgraphs)
            result.figures.extend(
                [
                    convert.figure("estimated_latency_us", round(latency, 1), "us", convert.ESTIMATED, source),
                    convert.figure("ddr_bytes", traffic, "bytes", convert.ESTIMATED, source),
                    convert.figure(
                        "compiled_model_bytes", len(outcome.compiled), "bytes", convert.MEASURED, "boardlift-compiler"
                    ),
                ]
            )
        self._describe(result.execution, outcome.run, facts.step_seconds)
        result.execution.tools[0].parts.update({k: v for k, v in facts.versions.items() if k != "hb_mapper"})
        return result

    async def _store_products(self, outcome: CompileOutcome, result: compiler_pb2.CompileResult) -> None:
        if outcome.console is not None:
            result.log.CopyFrom(await self.store.put_file(outcome.console, TEXT))
            if outcome.failure is not None:
                result.failure.log.CopyFrom(result.log)
        names = list(outcome.files)
        refs = await asyncio.gather(
            *(self.store.put_file(outcome.files[n], MEDIA_TYPES.get(Path(n).suffix, BIN)) for n in names)
        )
        for name, ref in zip(names, refs, strict=True):
            result.files.append(toolchain_pb2.NamedArtifact(name=name, artifact=ref))
        if outcome.failure is not None or not outcome.compiled or outcome.quantized_model is None:
            return
        compiled, quantized = await asyncio.gather(
            self.store.put_bytes(outcome.compiled, BIN), self.store.put_file(outcome.quantized_model, ONNX)
        )
        result.compiled_model.CopyFrom(compiled)
        result.quantized_model.CopyFrom(quantized)

    async def _simulate(
        self, request: compiler_pb2.SimulateModelRequest, emitter: Emitter
    ) -> compiler_pb2.SimulateResult:
        if not 0 <= request.bit_check_samples <= MAX_BIT_SAMPLES:
            raise InvalidInputError(
                f"bit_check_samples must lie between 0 and {MAX_BIT_SAMPLES}.", metadata={"field": "bit_check_samples"}
            )

        async def optional(ref: artifact_pb2.ArtifactRef) -> Path | None:
            return await self.store.fetch(ref) if ref.sha256 else None

        spec = CompileSpec(inputs=tuple(convert.input_from_wire(i) for i in request.inputs))
        inputs = SimulateInputs(
            await self.store.fetch(request.quantized_model),
            await self.store.fetch(request.compiled_model),
            await self.store.fetch(request.heldout),
            await optional(request.reference_outputs),
            spec,
            request.bit_check_samples or DEFAULT_BIT_SAMPLES,
            self.lanes,
            self.launcher,
        )
        with run_folder(self.work_root) as folder:
            outcome = await simulate_model(self.toolchain, inputs, folder, emitter.progress)
            result = compiler_pb2.SimulateResult(
                outputs=[convert.comparison_to_wire(c, self._source) for c in outcome.outputs],
                bit_checks=[convert.bit_to_wire(b) for b in outcome.bits],
                bit_exact=outcome.bit_exact,
                findings=convert.findings_to_wire([*outcome.findings, *self.toolchain.findings]),
                batched=outcome.batched,
            )
            if outcome.failure is not None:
                result.failure.CopyFrom(convert.failure_to_wire(outcome.failure))
            elif outcome.quantized_outputs is not None:
                result.quantized_outputs.CopyFrom(await self.store.put_file(outcome.quantized_outputs, NPZ))
        self._describe(result.execution, None, {})
        return result

    @property
    def _source(self) -> str:
        return f"hb_mapper {self.toolchain.version}"

    def _hooks(self, emitter: Emitter) -> Hooks:
        return Hooks(emitter.log, progress_to(emitter), self.launcher)

    def _describe(
        self, info: toolchain_pb2.ExecutionInfo, run: MapperRun | None, step_seconds: dict[str, float]
    ) -> None:
        info.tools.append(convert.tool_to_wire(self.toolchain))
        info.step_seconds.update(step_seconds)
        if run is not None:
            info.step_seconds["tool_wall"] = run.wall_s
            info.step_seconds["tool_cpu"] = run.cpu_s
            info.peak_memory_bytes = run.peak_memory_bytes


def progress_to(emitter: Emitter) -> Callable[[ProgressTracker, float], None]:
    """Return a hook that passes progress on."""

    def report(tracker: ProgressTracker, now: float) -> None:
        emitter.progress(tracker.step, tracker.fraction(now), tracker.done, tracker.total, tracker.remaining_s(now))

    return report


def require_target(target: str) -> None:
    """Refuse targets that are not served here.

    Raises:
        InvalidInputError: TARGET_UNKNOWN.
    """
    if target not in ("", TARGET):
        raise InvalidInputError(
            f"Target {target[:40]!r} is not served here.",
            reason="TARGET_UNKNOWN",
            remedy=f"Use {TARGET}.",
            metadata={"field": "target"},
        )
