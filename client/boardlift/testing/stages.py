"""Boards, server info, and the transform service of the fake server, with made-up answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc

from boardlift.errors import NotFoundError, PreconditionError
from boardlift.testing.abort import abort
from boardlift.testing.artifacts import ArtifactServicer
from boardlift.testing.scenario import SOURCE, Scenario
from boardlift.v1 import (
    board_agent_pb2,
    job_pb2,
    job_pb2_grpc,
    toolchain_pb2,
    toolchain_pb2_grpc,
    transform_pb2,
    transform_pb2_grpc,
)


class BoardServicer(job_pb2_grpc.BoardServiceServicer):
    """Lists one simulated board, and what tests add."""

    def __init__(self) -> None:
        """Start with one board."""
        info = board_agent_pb2.BoardInfo(
            id="fake-x5",
            target="rdk-x5",
            simulated=True,
            labels={"lab": "test"},
            versions={"hrt_model_exec": "0.0"},
            capabilities=["model_info", "infer", "perf"],
        )
        state = board_agent_pb2.BoardState(in_rotation=True)
        self.boards = [job_pb2.Board(info=info, state=state, online=True)]

    def ListBoards(self, request: job_pb2.ListBoardsRequest, context: grpc.ServicerContext) -> Any:
        """List the boards that have the labels."""
        wanted = dict(request.labels).items()
        return job_pb2.ListBoardsResponse(boards=[b for b in self.boards if wanted <= dict(b.info.labels).items()])

    def DeleteBoard(self, request: job_pb2.DeleteBoardRequest, context: grpc.ServicerContext) -> Any:
        """Forget a board that is not online."""
        found = next((board for board in self.boards if board.info.id == request.board_id), None)
        if found is None:
            abort(context, NotFoundError("No such board.", reason="BOARD_NOT_FOUND", remedy="List the boards."))
        elif found.online:
            abort(context, PreconditionError("It is online.", reason="BOARD_ONLINE", remedy="Stop its agent."))
        else:
            self.boards.remove(found)
        return job_pb2.DeleteBoardResponse()


class ServerServicer(toolchain_pb2_grpc.ServerServiceServicer):
    """Describes the fake server; `cancelled` holds the executions that callers asked to stop."""

    def __init__(self) -> None:
        """Start with nothing cancelled."""
        self.cancelled: list[str] = []
        self.clock_ahead_s = 0.0

    def GetServerInfo(self, request: toolchain_pb2.GetServerInfoRequest, context: grpc.ServicerContext) -> Any:
        """Describe it."""
        tool = toolchain_pb2.ToolchainInfo(name="made-up", version="0.0", simulated=True)
        info = toolchain_pb2.GetServerInfoResponse(name=SOURCE, version="0.1.0", tools=[tool], slots=1)
        info.server_time.FromNanoseconds(int((time.time() + self.clock_ahead_s) * 1e9))
        info.store.CopyFrom(
            toolchain_pb2.StoreInfo(objects=3, size_bytes=12_345_678, freed_objects=2, freed_bytes=2000, removed_jobs=1)
        )
        info.store.sweep_time.GetCurrentTime()
        return info

    def CancelExecution(self, request: toolchain_pb2.CancelExecutionRequest, context: grpc.ServicerContext) -> Any:
        """Note what is to be stopped."""
        self.cancelled.append(request.execution_id)
        return toolchain_pb2.CancelExecutionResponse(stopped=False)


class TransformServicer(transform_pb2_grpc.TransformServiceServicer):
    """Gives every model back as it came, with a made-up proof; `requests` holds what was to be transformed."""

    def __init__(self, scenario: Scenario, artifacts: ArtifactServicer) -> None:
        """Use the stages "transform" and "ingest" of `scenario`."""
        self.requests: list[transform_pb2.TransformModelRequest] = []
        self._scenario = scenario
        self._artifacts = artifacts

    def InspectModel(self, request: transform_pb2.InspectModelRequest, context: grpc.ServicerContext) -> Any:
        """Describe a model."""
        return transform_pb2.InspectModelResponse(summary=transform_pb2.ModelSummary(opset=17, nodes=3))

    def PrepareDataset(self, request: transform_pb2.PrepareDatasetRequest, context: grpc.ServicerContext) -> Any:
        """Accept a dataset."""
        script = self._scenario.script("ingest", "")
        finding = toolchain_pb2.Finding(
            code="DATASET_FEW_SAMPLES",
            severity=toolchain_pb2.Finding.SEVERITY_WARNING,
            message="Made up: there are few samples.",
            subject="obs",
            remedy="Add samples.",
        )
        response = transform_pb2.PrepareDatasetResponse(
            calibration=request.dataset,
            heldout=request.dataset,
            calibration_samples=64,
            heldout_samples=256,
            findings=[finding],
        )
        if script.failure_code:
            response.failure.CopyFrom(made_up_failure(script.failure_code, script.failure_message))
        return response

    def PlanTransform(self, request: transform_pb2.PlanTransformRequest, context: grpc.ServicerContext) -> Any:
        """Plan one pass; the output `nothing` is refused."""
        if "nothing" in request.spec.outputs:
            return transform_pb2.PlanTransformResponse(refusals=[made_up_failure("OUTPUT_NOT_FOUND", "no such output")])
        step = transform_pb2.PlannedPass(id="cut-outputs", reason="made up", exactness="bit-exact")
        return transform_pb2.PlanTransformResponse(passes=[step], assumptions=["dimension N of obs taken as 1"])

    def TransformModel(
        self, request: transform_pb2.TransformModelRequest, context: grpc.ServicerContext
    ) -> Iterator[Any]:
        """Give the model back."""
        self.requests.append(request)
        response = transform_pb2.TransformModelResponse
        yield response(sequence=1, progress=toolchain_pb2.Progress(step="cut-outputs", fraction=0.5))
        script = self._scenario.script("transform", "")
        if script.failure_code:
            failure = made_up_failure(script.failure_code, script.failure_message)
            yield response(sequence=2, result=transform_pb2.TransformResult(failure=failure))
            return
        source = request.model
        inline = source.WhichOneof("source") == "inline_model"
        data = source.inline_model if inline else self._artifacts.stored[source.artifact.sha256][0]
        yield response(sequence=2, result=_transform_result(self._artifacts.put(data, "application/onnx")))

    def ListPasses(self, request: transform_pb2.ListPassesRequest, context: grpc.ServicerContext) -> Any:
        """List one pass."""
        step = transform_pb2.PassDescription(
            id="cut-outputs", summary="Keeps the named outputs.", exactness="bit-exact"
        )
        return transform_pb2.ListPassesResponse(passes=[step])


def made_up_failure(code: str, message: str) -> toolchain_pb2.StageFailure:
    """Return a refusal that is the input's fault."""
    return toolchain_pb2.StageFailure(
        code=code, message=message, subject="node_1", remedy="Change the scenario.", user_fault=True
    )


def _transform_result(model: Any) -> transform_pb2.TransformResult:
    spec = toolchain_pb2.TensorSpec
    io_map = transform_pb2.IoMapping(
        direction=transform_pb2.IoMapping.DIRECTION_INPUT,
        before=spec(name="obs", dtype="float32", shape=[-1, 225]),
        after=spec(name="obs_4d", dtype="float32", shape=[1, 1, 1, 225]),
        rule="reshape to [1, 1, 1, 225]",
    )
    figure = toolchain_pb2.Figure(
        name="max_abs", value=7e-7, unit="1", kind=toolchain_pb2.FIGURE_KIND_SIMULATED, source=SOURCE
    )
    return transform_pb2.TransformResult(
        model=model,
        io_map=[io_map],
        passes=[transform_pb2.PassReport(id="cut-outputs", nodes_before=10, nodes_after=7)],
        equivalence=[
            toolchain_pb2.OutputComparison(output="actions", samples=256, figures=[figure], allowed_max_abs=5e-5)
        ],
        assumptions=["dimension N of obs taken as 1"],
    )
