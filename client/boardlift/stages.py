"""Single stages without a job: transform a model, check it, look at a dataset. Direct calls to the stage services.

Results are the protobuf messages themselves (`boardlift.v1`), since a stage's result is wide and meant for tools.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import grpc

from boardlift import _convert
from boardlift._external_data import find_external_files
from boardlift._requests import Model, model_source, to_ref
from boardlift._store import Store, convert_error
from boardlift._threaded import close_after, in_thread
from boardlift.connection import DEFAULT_AGENT, Connection
from boardlift.errors import BoardliftError, InternalError, UnsupportedError
from boardlift.models import Artifact, LogLine, Progress, ServerInfo
from boardlift.v1 import (
    artifact_pb2,
    board_agent_pb2,
    board_agent_pb2_grpc,
    compiler_pb2,
    compiler_pb2_grpc,
    toolchain_pb2,
    toolchain_pb2_grpc,
    transform_pb2,
    transform_pb2_grpc,
)

INLINE_BYTES = 3 << 20
STAGE_TIMEOUT_S = 4 * 3600.0
T = TypeVar("T")
OnEvent = Callable[[Progress | LogLine], None]


class StageClient:
    """Connections to the transform and compiler services, and to the orchestrator for the bytes."""

    def __init__(
        self,
        connection: Connection | None = None,
        *,
        transform: str = "",
        compiler: str = "",
        board: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Connect lazily.

        Args:
            connection: How to reach the orchestrator; token and TLS are used for the others too.
            transform: Address of the transform service; default BOARDLIFT_TRANSFORM, else the port after the
                orchestrator's on its machine: 127.0.0.1:7401 beside 127.0.0.1:7400.
            compiler: Address of the compiler service; default BOARDLIFT_COMPILER, else the port after that one.
            board: Address of a board agent; default BOARDLIFT_AGENT, else 127.0.0.1:7403.
            environ: Environment to read; default the process's.
        """
        env = os.environ if environ is None else environ
        self._connection = connection or Connection.from_environment(environ=env)
        addresses = {
            "transform": transform or env.get("BOARDLIFT_TRANSFORM") or self._connection.beside(1),
            "compiler": compiler or env.get("BOARDLIFT_COMPILER") or self._connection.beside(2),
            "board": board or env.get("BOARDLIFT_AGENT") or DEFAULT_AGENT,
        }
        self._ways = {name: self._connection.to(address) for name, address in addresses.items()}
        self._channels = {name: way.open(grpc) for name, way in self._ways.items()}
        self._transform = transform_pb2_grpc.TransformServiceStub(self._channels["transform"])
        self._compiler = compiler_pb2_grpc.CompilerServiceStub(self._channels["compiler"])
        self._board = board_agent_pb2_grpc.BoardAgentServiceStub(self._channels["board"])
        # Bytes travel through the stage's own store where it has one, else through the orchestrator's.
        self._stores = [Store(self._ways["transform"], patience_s=2), Store(self._connection, patience_s=2)]

    def close(self) -> None:
        """Close the connections."""
        for store in self._stores:
            store.close()
        for channel in self._channels.values():
            channel.close()

    def __enter__(self) -> StageClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close_after(kind, self.close)

    def list_passes(self) -> transform_pb2.ListPassesResponse:
        """Return the passes there are."""
        return self._unary(
            transform_pb2.ListPassesResponse, self._transform.ListPasses, transform_pb2.ListPassesRequest(), "transform"
        )

    def inspect(self, model: Path) -> transform_pb2.InspectModelResponse:
        """Return what a model is."""
        request = transform_pb2.InspectModelRequest(model=self.source(model))
        return self._unary(transform_pb2.InspectModelResponse, self._transform.InspectModel, request, "transform")

    def plan(self, model: Path, spec: transform_pb2.TransformSpec) -> transform_pb2.PlanTransformResponse:
        """Return what a transform would do, and what it refuses; nothing is done."""
        request = transform_pb2.PlanTransformRequest(model=self.source(model), spec=spec)
        return self._unary(transform_pb2.PlanTransformResponse, self._transform.PlanTransform, request, "transform")

    def prepare_dataset(
        self, model: Path, data: Path, split: transform_pb2.SplitSpec | None = None, frozen: Iterable[str] = ()
    ) -> transform_pb2.PrepareDatasetResponse:
        """Check a dataset against a model and split it; inputs that are to be frozen need no samples."""
        dataset = to_ref(self._with_store(lambda store: store.push(data)))
        request = transform_pb2.PrepareDatasetRequest(
            model=self.source(model), dataset=dataset, split=split, frozen_inputs=sorted(frozen)
        )
        return self._unary(transform_pb2.PrepareDatasetResponse, self._transform.PrepareDataset, request, "transform")

    def transform(
        self, model: Path, spec: transform_pb2.TransformSpec, data: Path | None = None, on_event: OnEvent | None = None
    ) -> transform_pb2.TransformResult:
        """Transform a model and prove it equivalent, on the dataset where there is one.

        Raises:
            BoardliftError: The call failed. A model that is refused is a result whose `failure` says why.
        """
        request = transform_pb2.TransformModelRequest(model=self.source(model), spec=spec)
        if data is not None:
            prepared = self.prepare_dataset(model, data, frozen=spec.frozen_inputs)
            if prepared.HasField("failure"):
                return transform_pb2.TransformResult(failure=prepared.failure, findings=prepared.findings)
            request.calibration.CopyFrom(prepared.calibration)
            request.heldout.CopyFrom(prepared.heldout)
        result: transform_pb2.TransformResult = self._stream(
            self._transform.TransformModel, request, "transform", on_event
        )
        return result

    def check(
        self, model: artifact_pb2.ArtifactRef, target: str, on_event: OnEvent | None = None
    ) -> compiler_pb2.CheckResult:
        """Run the vendor's checker on a transformed model."""
        request = compiler_pb2.CheckModelRequest(model=model, target=target)
        result: compiler_pb2.CheckResult = self._stream(self._compiler.CheckModel, request, "compiler", on_event)
        return result

    def diagnose(
        self, request: board_agent_pb2.DiagnoseModelRequest, on_event: OnEvent | None = None
    ) -> board_agent_pb2.DiagnoseResult:
        """Have a board find out why outputs are wrong."""
        result: board_agent_pb2.DiagnoseResult = self._stream(self._board.DiagnoseModel, request, "board", on_event)
        return result

    def source(self, model: Path) -> transform_pb2.ModelSource:
        """Return a model as a request carries it: inside when it is small and whole, else pushed."""
        external = find_external_files(model)
        if not external and model.stat().st_size <= INLINE_BYTES:
            return transform_pb2.ModelSource(inline_model=model.read_bytes())
        pushed: Model = self._with_store(lambda store: store.push_model(model))
        return model_source(pushed)

    def fetch(self, ref: artifact_pb2.ArtifactRef, target: Path) -> Path:
        """Download a result's bytes."""
        artifact: Artifact = _convert.to_artifact(ref)
        path: Path = self._with_store(lambda store: store.fetch(artifact, target))
        return path

    def server_info(self, name: str) -> ServerInfo:
        """Return what "transform" or "compiler" says about itself."""
        stub = toolchain_pb2_grpc.ServerServiceStub(self._channels[name])
        return _convert.to_server_info(
            self._unary(
                toolchain_pb2.GetServerInfoResponse, stub.GetServerInfo, toolchain_pb2.GetServerInfoRequest(), name
            )
        )

    def address(self, name: str) -> str:
        """Return the address of "transform" or "compiler"."""
        return self._ways[name].address

    def _with_store(self, use: Callable[[Store], Any]) -> Any:
        try:
            return use(self._stores[0])
        except UnsupportedError:
            return use(self._stores[1])

    def _failure(self, error: grpc.RpcError, service: str) -> BoardliftError:
        return convert_error(error, self._ways[service].address)

    def _unary(self, kind: type[T], method: Callable[..., T], request: Any, service: str) -> T:
        """Make one call that answers with a `kind`."""
        try:
            return method(request, timeout=300, metadata=self._ways[service].metadata())
        except grpc.RpcError as error:
            raise self._failure(error, service) from error

    def _stream(self, method: Any, request: Any, service: str, on_event: OnEvent | None) -> Any:
        """Follow a stage to its result; leaving early (Ctrl-C) has the service stop its tool."""
        execution = f"cli-{uuid.uuid4().hex}"
        metadata = (*self._ways[service].metadata(), ("x-execution-id", execution))
        calls: list[Any] = []

        def messages() -> Iterator[Any]:
            calls.append(method(request, timeout=STAGE_TIMEOUT_S, metadata=metadata))
            yield from calls[0]

        try:
            for message in in_thread(messages()):
                kind = message.WhichOneof("event")
                if kind == "result":
                    return message.result
                if on_event and kind == "progress":
                    on_event(_convert.to_progress(message.progress))
                elif on_event and kind == "log":
                    on_event(LogLine(message.log.text, message.log.source))
        except grpc.RpcError as error:
            raise self._failure(error, service) from error
        except KeyboardInterrupt:
            self._cancel_execution(service, execution)
            raise
        finally:
            for call in calls:
                call.cancel()
        raise InternalError("The service ended its answer without a result.", reason="NO_RESULT", remedy="Try again.")

    def _cancel_execution(self, service: str, execution: str) -> None:
        stub = toolchain_pb2_grpc.ServerServiceStub(self._channels[service])
        request = toolchain_pb2.CancelExecutionRequest(execution_id=execution)
        # Where this fails the service stops by itself, some seconds after its last caller has gone.
        with contextlib.suppress(BoardliftError):
            self._unary(toolchain_pb2.CancelExecutionResponse, stub.CancelExecution, request, service)


def pass_requests(texts: Sequence[str]) -> list[transform_pb2.PassRequest]:
    """Parse `id` or `id:name=value,name=value` texts."""
    requests = []
    for text in texts:
        name, _, rest = text.partition(":")
        parameters = dict(part.partition("=")[::2] for part in rest.split(",") if part)
        requests.append(transform_pb2.PassRequest(id=name, parameters=parameters))
    return requests
