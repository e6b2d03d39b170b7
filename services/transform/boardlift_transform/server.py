"""TransformService: inspect, prepare data, plan, transform. Work runs in threads; the event loop moves messages."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from boardlift.datasets.archive import Dataset, read_dataset, write_dataset
from boardlift.errors import InvalidInputError, NotFoundError
from boardlift.v1 import artifact_pb2, toolchain_pb2, toolchain_pb2_grpc, transform_pb2, transform_pb2_grpc
from boardlift_servicekit import channels
from boardlift_servicekit.artifacts import ArtifactStore, LocalStore, RemoteStore
from boardlift_servicekit.clock import now
from boardlift_servicekit.executions import Emitter, Executions, as_responses, code_version, execution_id, request_key
from boardlift_servicekit.keeper import Keeper, store_info
from boardlift_servicekit.server import Host

from boardlift_transform import convert
from boardlift_transform.check_result import Finding
from boardlift_transform.inspect import summarise
from boardlift_transform.load_model import LoadedModel, load_model
from boardlift_transform.map_dataset import map_inputs, map_references, npz_bytes
from boardlift_transform.normalise_samples import normalise_samples
from boardlift_transform.passes import PASSES, PASSES_BY_ID
from boardlift_transform.plan import plan
from boardlift_transform.prepare_dataset import prepare_dataset
from boardlift_transform.refusal import Refusal
from boardlift_transform.settings import AllSettings, Settings
from boardlift_transform.targets import find_target
from boardlift_transform.transform_model import PROOF, TransformResult, transform_loaded
from boardlift_transform.try_names import try_names

SERVICE = "boardlift.v1.TransformService"
STAGE_VERSION = code_version(Path(__file__).parent)
ONNX_TYPE = "application/onnx"
NPZ_TYPE = "application/x-npz"
DEFAULT_TARGET = "rdk-x5"
PASSES_SHARE = 0.4
"""Share of a transform that its passes take; the rest is the proof."""


class TransformServicer(transform_pb2_grpc.TransformServiceServicer):
    """Answers the calls."""

    def __init__(self, store: ArtifactStore, executions: Executions[Any], settings: Settings) -> None:
        """Keep the store and the executions."""
        self._store, self._executions, self._settings = store, executions, settings

    async def InspectModel(self, request: transform_pb2.InspectModelRequest, context: Any) -> Any:
        """Summarise a model, or say why it cannot be used."""
        try:
            loaded = await self._load(request.model)
            found = await asyncio.to_thread(lambda: summarise(loaded.to_ir(), loaded.sha256))
        except Refusal as refusal:
            return transform_pb2.InspectModelResponse(failure=convert.failure(refusal))
        return transform_pb2.InspectModelResponse(summary=convert.summary(found))

    async def ListPasses(self, request: transform_pb2.ListPassesRequest, context: Any) -> Any:
        """List the passes."""
        return transform_pb2.ListPassesResponse(passes=[convert.described(p) for p in PASSES])

    async def PlanTransform(self, request: transform_pb2.PlanTransformRequest, context: Any) -> Any:
        """Say what would be done."""
        try:
            loaded = await self._load(request.model)
            wanted = convert.request_from(request.spec)
            profile = find_target(request.spec.target or DEFAULT_TARGET)
            found = await asyncio.to_thread(lambda: summarise(loaded.to_ir(), loaded.sha256))
            chosen = plan(profile, found, wanted)
            assumed = []
            if not chosen.refusals and not found.functions:  # names inside of functions are not known yet
                assumed = await asyncio.to_thread(lambda: try_names(loaded.to_ir(), chosen.passes))
        except Refusal as refusal:
            return transform_pb2.PlanTransformResponse(refusals=[convert.failure(refusal)])
        return transform_pb2.PlanTransformResponse(
            passes=[convert.planned(step, PASSES_BY_ID) for step in chosen.passes if step.id in PASSES_BY_ID],
            refusals=[convert.failure(r) for r in chosen.refusals],
            assumptions=assumed,
        )

    async def PrepareDataset(self, request: transform_pb2.PrepareDatasetRequest, context: Any) -> Any:
        """Check and split a dataset."""
        try:
            loaded = await self._load(request.model)
            path = await self._store.fetch(request.dataset)
            dataset = await asyncio.to_thread(read_dataset, path, "The dataset")
            return await self._prepare(loaded, dataset, request.split, set(request.frozen_inputs))
        except Refusal as refusal:
            return transform_pb2.PrepareDatasetResponse(failure=convert.failure(refusal))
        except InvalidInputError as error:
            broken = Refusal(error.reason, error.message, remedy=error.remedy, metadata=error.metadata)
            return transform_pb2.PrepareDatasetResponse(failure=convert.failure(broken))

    async def TransformModel(self, request: transform_pb2.TransformModelRequest, context: Any) -> AsyncIterator[Any]:
        """Transform and prove; equal requests share one run."""
        wanted = convert.request_from(request.spec)
        key = request_key("transform", STAGE_VERSION, request, onnx.__version__, onnxruntime.__version__)

        async def work(emitter: Emitter) -> transform_pb2.TransformResult:
            return await self._transform(request, wanted, emitter)

        events = self._executions.run(key, execution_id(context), transform_pb2.TransformResult, work)
        async for response in as_responses(transform_pb2.TransformModelResponse, events):
            yield response

    async def _load(self, source: transform_pb2.ModelSource) -> LoadedModel:
        files = {n.name: await self._store.fetch(n.artifact) for n in source.external_data}
        if source.WhichOneof("source") == "artifact":
            path = await self._store.fetch(source.artifact)
            data = await asyncio.to_thread(path.read_bytes)
        else:
            data = source.inline_model
            if len(data) > self._settings.max_inline_bytes:
                raise InvalidInputError(
                    f"An inline model may have {self._settings.max_inline_bytes} bytes.",
                    reason="INLINE_TOO_LARGE",
                    remedy="Upload it and name it by digest.",
                    metadata={"field": "model.inline_model"},
                )
        return await asyncio.to_thread(load_model, data, files)

    async def _prepare(
        self, loaded: LoadedModel, dataset: Dataset, spec: transform_pb2.SplitSpec, frozen: set[str]
    ) -> transform_pb2.PrepareDatasetResponse:
        counts = {"calibration": spec.calibration_samples, "heldout": spec.heldout_samples, "seed": spec.seed}
        made = await asyncio.to_thread(lambda: prepare_dataset(loaded, dataset, frozen, **counts))
        return transform_pb2.PrepareDatasetResponse(
            calibration=await self._put_dataset(made.calibration),
            heldout=await self._put_dataset(made.heldout),
            calibration_samples=made.calibration.samples,
            heldout_samples=made.heldout.samples,
            findings=convert.findings(made.findings),
            provenance_json=json.dumps(dataset.document.get("provenance", {}), sort_keys=True),
            model_summary=convert.summary(made.model),
        )

    async def _put_dataset(self, dataset: Dataset) -> artifact_pb2.ArtifactRef:
        with tempfile.TemporaryDirectory(prefix="dataset-", dir=self._settings.state_dir) as folder:
            path = Path(folder) / "dataset.npz"
            await asyncio.to_thread(write_dataset, dataset, path)
            return await self._store.put_file(path, NPZ_TYPE)

    async def _transform(
        self, request: transform_pb2.TransformModelRequest, wanted: Any, emitter: Emitter
    ) -> transform_pb2.TransformResult:
        started = time.monotonic()
        try:
            loaded = await self._load(request.model)
            heldout = await self._arrays(request.heldout) if request.HasField("heldout") else None
            target = request.spec.target or DEFAULT_TARGET
            normalised = convert.normalisations(request.spec)
            samples = normalise_samples(heldout.arrays, normalised) if heldout is not None else None
            result = await _in_thread(
                lambda listener: transform_loaded(loaded, target, wanted, samples, listener, diff=request.spec.diff),
                emitter,
            )
            answer = await self._answer(request, result, heldout)
        except Refusal as refusal:
            return transform_pb2.TransformResult(failure=convert.failure(refusal))
        answer.execution.tools.extend(convert.tools())
        answer.execution.step_seconds["total"] = time.monotonic() - started
        for report in result.passes:
            answer.execution.step_seconds[report.id] += report.seconds
        return answer

    async def _arrays(self, artifact: artifact_pb2.ArtifactRef) -> Dataset:
        return await asyncio.to_thread(read_dataset, await self._store.fetch(artifact))

    async def _answer(
        self, request: transform_pb2.TransformModelRequest, result: TransformResult, heldout: Dataset | None
    ) -> transform_pb2.TransformResult:
        data = await asyncio.to_thread(result.model.SerializeToString)
        answer = transform_pb2.TransformResult(
            model=await self._store.put_bytes(data, ONNX_TYPE),
            io_map=[convert.mapping(e) for e in result.io_map],
            io_snippet=result.snippet,
            passes=[convert.pass_report(r) for r in result.passes],
            equivalence=[convert.comparison(c) for c in result.proof.comparisons],
            assumptions=result.assumptions,
            before=convert.summary(result.before),
            after=convert.summary(result.after),
            findings=convert.findings(result.findings),
            random_inputs=result.proof.random_inputs,
        )
        if request.HasField("calibration"):
            calibration = await self._arrays(request.calibration)
            answer.calibration.CopyFrom(await self._put_mapped(result, calibration))
        if heldout is not None:
            kept = len(result.proof.reference)  # every held-out sample that goes on has its reference
            if kept < heldout.samples:
                text = f"{kept} of {heldout.samples} held-out samples are used: more prove nothing more"
                answer.findings.extend(convert.findings([Finding("HELDOUT_SHORTENED", text, "dataset")]))
            shorter = {name: array[:kept] for name, array in heldout.arrays.items()}
            document = {k: v for k, v in heldout.document.items() if k != "split"}
            answer.heldout.CopyFrom(await self._put_mapped(result, Dataset(shorter, document)))
            reference = await asyncio.to_thread(
                lambda: npz_bytes(map_references(result.io_map, result.proof.reference))
            )
            answer.reference_outputs.CopyFrom(await self._store.put_bytes(reference, NPZ_TYPE))
        return answer

    async def _put_mapped(self, result: TransformResult, dataset: Dataset) -> artifact_pb2.ArtifactRef:
        arrays = await asyncio.to_thread(map_inputs, result.io_map, dataset.arrays)
        return await self._put_dataset(Dataset(arrays, {k: v for k, v in dataset.document.items() if k != "inputs"}))


async def _in_thread(work: Callable[[Any], TransformResult], emitter: Emitter) -> TransformResult:
    """Run `work(listener)` in a thread; a cancelled call makes it stop before its next pass or sample."""
    loop, stopped, reached = asyncio.get_running_loop(), threading.Event(), 0.0

    def listener(step: str, index: int, count: int) -> None:
        nonlocal reached
        if stopped.is_set():
            raise Refusal("CANCELLED", "nobody waits any more")
        share = index / max(count, 1)
        fraction = PASSES_SHARE * share if step != PROOF else PASSES_SHARE + (0.95 - PASSES_SHARE) * share
        reached = max(reached, fraction)  # a pass that the proof asks for comes behind it
        loop.call_soon_threadsafe(emitter.progress, step, reached, index, count)

    try:
        return await asyncio.to_thread(work, listener)
    finally:
        stopped.set()


class ServerInfo(toolchain_pb2_grpc.ServerServiceServicer):
    """Says what this server is, and stops executions."""

    def __init__(self, executions: Executions[Any], cache: LocalStore) -> None:
        """Look after these executions, and describe the store."""
        self._executions = executions
        self._cache = cache

    async def GetServerInfo(self, request: Any, context: Any) -> Any:
        """Describe the server."""
        return toolchain_pb2.GetServerInfoResponse(
            name="transform",
            version=metadata.version("boardlift-transform"),
            tools=convert.tools(),
            slots=self._executions.slots,
            busy_slots=self._executions.busy,
            store=store_info(self._cache),
            server_time=now(),
        )

    async def CancelExecution(self, request: toolchain_pb2.CancelExecutionRequest, context: Any) -> Any:
        """Stop an execution by its caller's name."""
        if not request.execution_id:
            raise NotFoundError(
                "No execution was named.",
                reason="EXECUTION_UNKNOWN",
                remedy="Name the execution that the first event of a stream names.",
            )
        return toolchain_pb2.CancelExecutionResponse(stopped=await self._executions.cancel(request.execution_id))


def build_host(all_settings: AllSettings) -> Host:
    """Put the parts together; nothing runs yet."""
    settings = all_settings.own
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    cache = LocalStore(settings.state_dir / "artifacts", settings.max_artifact_bytes)
    host = Host("transform", all_settings.server)
    store: ArtifactStore = cache
    if settings.artifacts:
        remote = channels.connect(settings.artifacts, all_settings.channel)
        host.on_stop(remote.close)
        store = RemoteStore(remote, cache)
    executions: Executions[Any] = Executions(settings.state_dir / "results", store, slots=settings.slots)
    host.on_stop(executions.close)
    scratch = (settings.state_dir, "dataset-")
    results = [settings.state_dir / "results"]
    Keeper(cache, results, all_settings.keep, scratch=scratch, executions=[executions]).attach(host)
    servicer = TransformServicer(store, executions, settings)
    host.add(transform_pb2_grpc.add_TransformServiceServicer_to_server, servicer, SERVICE)
    info = ServerInfo(executions, cache)
    host.add(toolchain_pb2_grpc.add_ServerServiceServicer_to_server, info, "boardlift.v1.ServerService")
    return host


async def serve(settings: AllSettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    await build_host(settings).run()
