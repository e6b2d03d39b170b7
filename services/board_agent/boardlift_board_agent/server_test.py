"""The agent as a process on a simulated board: the whole run, every sickness, cancel, restart."""

import asyncio
import copy
import json
import os
import signal
import subprocess
import sys

import grpc
import numpy as np
import pytest
from boardlift.errors import from_rpc_error
from boardlift.v1 import artifact_pb2, board_agent_pb2, toolchain_pb2, toolchain_pb2_grpc

pytestmark = pytest.mark.toolchain
SIMULATED = toolchain_pb2.FIGURE_KIND_SIMULATED


def codes(result) -> set[str]:
    return {f.code for f in result.findings}


async def test_the_whole_run_on_a_healthy_simulated_board(start_agent, call, materials, figure_values) -> None:
    agent = start_agent()
    caller = call(agent)
    item = materials["policy16"]
    request = await caller.request(item, float_model=await caller.upload(item.float_model), estimated_latency_us=90.0)
    responses = await caller.run(request)
    result = responses[-1].result
    assert not result.HasField("failure")
    assert [r.sequence for r in responses] == list(range(1, len(responses) + 1))
    assert result.board.simulated and result.board.id == "sim-1"
    assert [t.name for t in result.tensors] == ["obs_4d", "actions"]
    close = figure_values(result.board_vs_float[0])
    assert 0.999 < close["cosine"] < 1
    equal = result.board_vs_quantized[0]
    assert figure_values(equal)["equal_share"] == 1.0
    assert equal.samples == 3
    one, two = result.latency
    assert (one.threads, two.threads) == (1, 2)
    values = figure_values(one)
    assert values["min_ms"] < values["p50_ms"] < values["p90_ms"] < values["p99_ms"] <= values["max_ms"]
    assert one.stable
    tested = [f.message for f in result.findings if f.code == "ESTIMATE_NOT_TESTED"]
    assert len(tested) == 2 and all(text.startswith("Simulated: ") for text in tested)
    assert "AS_ESTIMATED" not in codes(result)
    every = [*one.figures, *two.figures, *equal.figures, *result.figures, *result.cpu_baseline.figures]
    assert {f.kind for f in every} == {SIMULATED}
    assert figure_values(result.cpu_baseline)["p50_ms"] > 0
    assert figure_values(result)["tool_peak_memory_bytes"] > 1e6
    assert len(result.states) == 3
    assert all(s.in_rotation for s in result.states)
    with np.load(await caller.store.fetch(one.raw_samples)) as raw:
        assert np.percentile(raw["latency_ms"], 99) == pytest.approx(values["p99_ms"])
    with np.load(await caller.store.fetch(result.board_outputs)) as outputs:
        assert outputs["actions"].shape == (3, 1, 12, 1, 1)
    log = (await caller.store.fetch(result.log)).read_text()
    assert "SIMULATED" in log
    again = await caller.result(request)
    assert again.execution.cached and not result.execution.cached


async def test_integer_outputs_with_padding_are_read_right(start_agent, call, materials, figure_values) -> None:
    caller = call(start_agent())
    result = await caller.result(await caller.request(materials["padded"]))
    against = {c.output: figure_values(c) for c in result.board_vs_quantized}
    assert set(against) == {"y0", "y1"}
    assert all(c["cosine_min"] > 1 - 1e-6 for c in against.values())
    assert "OUTPUT_PLAIN_COPY" not in codes(result)
    padded = next(t for t in result.tensors if t.name == "y1")
    assert list(padded.stride_bytes) == [1344, 448, 64, 4]


async def test_the_plain_copy_mistake_is_seen_and_named(start_agent, call, materials, figure_values) -> None:
    caller = call(start_agent(simulator_sick="misread"))
    result = await caller.result(await caller.request(materials["padded"]))
    assert "OUTPUT_PLAIN_COPY" in codes(result)
    cosines = {c.output: figure_values(c)["cosine"] for c in result.board_vs_float}
    assert min(cosines.values()) < 0.5


async def test_wrong_outputs_point_to_the_board(start_agent, call, materials) -> None:
    caller = call(start_agent(simulator_sick="wrong"))
    result = await caller.result(await caller.request(materials["policy16"]))
    assert "BOARD_DIFFERS_FROM_QUANTIZED" in codes(result)


async def test_the_result_names_the_engine_and_never_calls_the_quantised_model_a_check(
    start_agent, call, materials
) -> None:
    caller = call(start_agent())
    result = await caller.result(await caller.request(materials["policy8"]))
    assert result.engine == "compiled" and "COMPILED_CODE_NOT_RUN" not in codes(result)
    item = materials["threshold"]
    request = await caller.request(item, quantized_model=await caller.upload(item.quantized))
    result = await caller.result(request)
    assert result.engine == "runtime" and "COMPILED_CODE_NOT_RUN" in codes(result)


async def test_a_job_s_samples_are_turned_into_the_layout_the_compiled_model_takes(
    start_agent, call, materials, figure_values
) -> None:
    caller, item = call(start_agent()), copy.copy(materials["nhwc"])
    item.samples = {n: np.ascontiguousarray(np.moveaxis(a, -1, 2)) for n, a in item.samples.items()}
    request = await caller.request(item)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.result(request)
    assert from_rpc_error(caught.value).reason == "SAMPLE_SHAPE_WRONG"
    request.sample_layouts["x"] = "NCHW"
    result = await caller.result(request)
    assert [figure_values(c)["equal_share"] for c in result.board_vs_quantized] == [1.0, 1.0]
    question = board_agent_pb2.DiagnoseModelRequest(
        run_id="d",
        compiled_model=request.compiled_model,
        samples=request.heldout,
        reference_outputs=request.reference_outputs,
        quantized_outputs=request.quantized_outputs,
        sample_layouts={"x": "NCHW"},
    )
    found = [r async for r in caller.stub.DiagnoseModel(question, timeout=120)][-1].result
    assert [d.cause for d in found.diagnoses] == ["consistent"]


async def test_version_skew_is_reported_and_takes_the_board_out(start_agent, call, materials) -> None:
    agent = start_agent(simulator_sick="skew")
    caller = call(agent)
    result = await caller.result(await caller.request(materials["policy16"]))
    assert "VERSION_SKEW" in codes(result)
    described = await caller.stub.DescribeBoard(board_agent_pb2.DescribeBoardRequest())
    assert not described.state.in_rotation
    assert described.board.versions["hbrt"] == "3.15.47.0"


@pytest.mark.parametrize(
    "fields", [{"samples": 1025}, {"samples": -1}, {"perf": board_agent_pb2.PerfSpec(threads=[9])}]
)
async def test_a_request_out_of_range_is_refused_and_not_trimmed(start_agent, call, materials, fields) -> None:
    caller = call(start_agent())
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.result(await caller.request(materials["policy8"], **fields))
    assert (caught.value.code(), from_rpc_error(caught.value).reason) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "REQUEST_OUT_OF_RANGE",
    )


@pytest.mark.parametrize(
    ("sick", "reason", "status"),
    [
        ("dying", "TOOL_KILLED", grpc.StatusCode.INTERNAL),
        ("diskfull", "BOARD_DISK_FULL", grpc.StatusCode.RESOURCE_EXHAUSTED),
        ("oom", "BOARD_MEMORY_FULL", grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
async def test_faults_of_the_board_are_errors_to_retry(start_agent, call, materials, sick, reason, status) -> None:
    caller = call(start_agent(simulator_sick=sick))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.result(await caller.request(materials["policy16"]))
    error = from_rpc_error(caught.value)
    assert (caught.value.code(), error.reason) == (status, reason)


async def test_a_hanging_tool_is_stopped_and_leaves_nothing(start_agent, call, materials) -> None:
    agent = start_agent(simulator_sick="hanging", infer_timeout="2")
    caller = call(agent)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.result(await caller.request(materials["policy16"]))
    assert from_rpc_error(caught.value).reason == "TOOL_HANGS"
    await asyncio.sleep(0.3)
    assert _children(agent.process.pid) == []
    assert list((agent.folder / "state" / "runs").iterdir()) == []


async def test_cancel_stops_the_tool_within_seconds(start_agent, call, materials) -> None:
    agent = start_agent(simulator_sick="hanging")
    caller = call(agent)
    request = await caller.request(materials["policy16"])
    running = asyncio.create_task(caller.run(request, metadata=(("x-execution-id", "me"),)))
    while not _children(agent.process.pid):
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    server = toolchain_pb2_grpc.ServerServiceStub(caller.channel)
    answer = await server.CancelExecution(toolchain_pb2.CancelExecutionRequest(execution_id="me"), timeout=5)
    assert answer.stopped
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await running
    assert caught.value.code() == grpc.StatusCode.CANCELLED
    assert _children(agent.process.pid) == []


async def test_three_faults_in_a_row_take_the_board_out_for_a_while(start_agent, call, materials, tmp_path) -> None:
    caller = call(start_agent(simulator_sick="flaky=3", simulator_state=str(tmp_path / "flaky"), failing_retry="4"))
    for attempt in range(3):
        with pytest.raises(grpc.aio.AioRpcError):
            await caller.result(await caller.request(materials["policy16"], run_id=f"r{attempt}"))
    described = await caller.stub.DescribeBoard(board_agent_pb2.DescribeBoardRequest())
    assert [f.code for f in described.state.findings] == ["BOARD_FAILING"]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.result(await caller.request(materials["policy16"], run_id="r3"))
    assert from_rpc_error(caught.value).reason == "BOARD_UNFIT"
    await asyncio.sleep(5)
    assert not (await caller.result(await caller.request(materials["policy16"], run_id="r4"))).HasField("failure")


async def test_hot_board_refuses_work_and_takes_it_again_when_cool(start_agent, call, materials) -> None:
    agent = start_agent()
    caller = call(agent)
    _sensors(agent, "hot")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.result(await caller.request(materials["policy16"]))
    error = from_rpc_error(caught.value)
    assert (error.reason, error.metadata["reasons"]) == ("BOARD_UNFIT", "TOO_HOT,THROTTLED")
    _sensors(agent, "")
    assert not (await caller.result(await caller.request(materials["policy16"]))).HasField("failure")


async def test_a_model_that_is_none_is_the_users_fault(start_agent, call, materials) -> None:
    caller = call(start_agent())
    junk = await caller.store.put_bytes(b"\xff" * 64, "application/octet-stream")
    result = await caller.result(await caller.request(materials["policy16"], compiled_model=junk))
    assert (result.failure.code, result.failure.user_fault, result.failure.exit_code) == ("MODEL_REFUSED", True, 1)


async def test_missing_artifact_and_wrong_shape_are_refused(start_agent, call, materials) -> None:
    caller = call(start_agent())
    lost = artifact_pb2.ArtifactRef(sha256="0" * 64, size_bytes=1)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.result(await caller.request(materials["policy16"], compiled_model=lost))
    assert from_rpc_error(caught.value).reason == "ARTIFACT_MISSING"
    other = await caller.request(materials["policy16"])
    wrong = await caller.request(materials["padded"])
    other.heldout.CopyFrom(wrong.heldout)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.result(other)
    assert from_rpc_error(caught.value).reason == "SAMPLES_INCOMPLETE"


async def test_killed_agent_comes_back_with_its_results_and_its_identity(start_agent, call, materials) -> None:
    agent = start_agent()
    caller = call(agent)
    request = await caller.request(materials["policy16"])
    first = await caller.result(request)
    agent.stop(signal.SIGKILL)
    agent.start()
    caller = call(agent)
    second = await caller.result(request)
    assert second.execution.cached
    assert second.board.boot_id == first.board.boot_id


def test_two_agents_never_share_a_state_folder(start_agent) -> None:
    agent = start_agent()
    command = [sys.executable, "-m", "boardlift_board_agent"]
    done = subprocess.run(command, env=agent.environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "AGENT_RUNNING" in done.stderr


def test_doctor_says_what_is_missing(start_agent) -> None:
    agent = start_agent()
    agent.stop()
    command = [sys.executable, "-m", "boardlift_board_agent", "doctor", "--json"]
    fine = subprocess.run(command, env=agent.environment, capture_output=True, text=True, timeout=30)
    assert fine.returncode == 0, fine.stdout + fine.stderr
    states = {c["name"]: c["state"] for c in json.loads(fine.stdout)}
    assert states["hrt_model_exec"] == "ok"
    bare = {
        **agent.environment,
        "BOARDLIFT_HRT_MODEL_EXEC": "no_such_program",
        "BOARDLIFT_BOARD_ROOT": str(agent.folder),
    }
    broken = subprocess.run(command, env=bare, capture_output=True, text=True, timeout=30)
    assert broken.returncode == 3
    found = {c["name"]: c for c in json.loads(broken.stdout)}
    assert found["hrt_model_exec"]["state"] == "fail"
    assert "absent: model, soc" in found["board"]["detail"]


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
        return [int(p) for p in file.read().split()]


def _sensors(agent, sick: str) -> None:
    command = [os.path.join(os.path.dirname(sys.executable), "boardlift-simulated-board"), str(agent.board_root)]  # noqa: PTH118, PTH120
    subprocess.run(command, env={**os.environ, "BOARDLIFT_SIMULATOR_SICK": sick}, check=True, capture_output=True)
