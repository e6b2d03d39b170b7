"""The service as its callers see it: a real server, real artifacts, the real tool."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import grpc
import numpy as np
import pytest
from boardlift.errors import from_rpc_error
from boardlift.v1 import compiler_pb2, compiler_pb2_grpc, toolchain_pb2, toolchain_pb2_grpc
from boardlift_servicekit.artifacts import LocalStore, RemoteStore
from boardlift_servicekit.channels import ChannelSettings, connect
from boardlift_servicekit.server import ServerSettings
from grpc_health.v1 import health_pb2, health_pb2_grpc

from boardlift_compiler.server import COMPILER_SERVICE, start_host
from boardlift_compiler.settings import AllSettings, Settings

pytestmark = pytest.mark.xdist_group("compiler-tool")
toolchain_test = pytest.mark.toolchain


class Client:
    """A caller of one service."""

    def __init__(self, address, tmp_path):
        self.channel = connect(address)
        self.stub = compiler_pb2_grpc.CompilerServiceStub(self.channel)
        self.server = toolchain_pb2_grpc.ServerServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)
        self.store = RemoteStore(self.channel, LocalStore(tmp_path / "client"))

    async def upload(self, model, samples, name="m"):
        return (
            await self.store.put_bytes(model.SerializeToString(), "application/onnx"),
            await self.store.put_file(save_npz(samples, self.store, name), "application/x-npz"),
        )

    async def last(self, call):
        events = [event async for event in call]
        assert [e.sequence for e in events] == list(range(1, len(events) + 1))
        assert events[-1].WhichOneof("event") == "result"
        return events[-1].result, events


def save_npz(arrays, store, name):
    path = store._cache.uploads / f"{name}.npz"
    np.savez(path, **arrays)
    return path


@contextlib.asynccontextmanager
async def serving(tmp_path, root, **changes):
    own = Settings(state_dir=tmp_path / "state", toolchain=root, work_root=tmp_path / "runs")
    settings = AllSettings(replace(own, **changes), ServerSettings(), ChannelSettings())
    host = await start_host(settings)
    client = Client(f"127.0.0.1:{host.port}", tmp_path)
    try:
        yield client
    finally:
        await client.channel.close()
        await host.stop()


@pytest.fixture
async def client(tmp_path, toolchain):
    async with serving(tmp_path, toolchain.root) as client:
        yield client


def compile_request(model, samples, **variant):
    variant.setdefault("preset", "int8")
    variant.setdefault("purpose", "preview")
    return compiler_pb2.CompileModelRequest(
        model=model, calibration=samples, target="rdk-x5", variant=compiler_pb2.VariantSpec(**variant)
    )


@toolchain_test
async def test_check_compile_simulate_and_the_cache(client, models):
    model = models.policy()
    ref, samples = await client.upload(model, models.samples(model))
    check, _ = await client.last(client.stub.CheckModel(compiler_pb2.CheckModelRequest(model=ref, target="rdk-x5")))
    assert (check.bpu_nodes, check.cpu_nodes, check.bpu_subgraphs) == (5, 0, 1)
    assert check.log.sha256
    request = compile_request(ref, samples, name="a")
    result, events = await client.last(client.stub.CompileModel(request))
    assert not result.HasField("failure")
    assert {"progress", "log", "result"} == {e.WhichOneof("event") for e in events}
    steps = [e.progress.step for e in events if e.WhichOneof("event") == "progress"]
    assert {"prepare", "optimise", "calibrate", "quantise", "compile"} <= set(steps)
    assert result.samples_read == 16
    assert result.optimize_level == "O1"
    assert result.normalized_sha256 == result.compiled_model.sha256
    kinds = {f.name: f.kind for f in result.figures}
    assert kinds["estimated_latency_us"] == kinds["ddr_bytes"] == toolchain_pb2.FIGURE_KIND_ESTIMATED
    assert kinds["compiled_model_bytes"] == toolchain_pb2.FIGURE_KIND_MEASURED
    assert result.subgraphs[0].layers
    assert result.execution.tools[0].version == "1.24.3"
    assert set(result.execution.tools[0].parts) == {"hbdk", "hbdk runtime", "horizon_nn"}
    assert result.execution.peak_memory_bytes > 50_000_000

    held = models.samples(model, 12, seed=5)
    reference = models.float_outputs(model, held)
    simulate = compiler_pb2.SimulateModelRequest(
        quantized_model=result.quantized_model,
        compiled_model=result.compiled_model,
        heldout=await client.store.put_file(save_npz(held, client.store, "held"), "application/x-npz"),
        reference_outputs=await client.store.put_file(save_npz(reference, client.store, "ref"), "application/x-npz"),
        bit_check_samples=2,
    )
    simulation, _ = await client.last(client.stub.SimulateModel(simulate))
    assert simulation.bit_exact
    figures = {f.name: f for f in simulation.outputs[0].figures}
    assert figures["cosine"].value > 0.999
    assert figures["cosine"].kind == toolchain_pb2.FIGURE_KIND_SIMULATED
    assert simulation.quantized_outputs.sha256

    started = time.monotonic()
    again, events = await client.last(client.stub.CompileModel(compile_request(ref, samples, name="another name")))
    assert time.monotonic() - started < 0.2
    assert again.execution.cached
    assert len(events) == 1
    assert again.compiled_model == result.compiled_model
    written_out = compile_request(ref, samples, name="a")
    written_out.variant.calibration.optimization[:] = []
    written_out.variant.compiler.compile_mode, written_out.variant.compiler.debug = "latency", True
    assert (await client.last(client.stub.CompileModel(written_out)))[0].execution.cached


@toolchain_test
async def test_equal_requests_share_one_run_and_a_late_one_attaches(client, models):
    model = models.policy()
    ref, samples = await client.upload(model, models.samples(model))
    request = compile_request(ref, samples)
    first = asyncio.create_task(client.last(client.stub.CompileModel(request)))
    await asyncio.sleep(0.3)
    second = asyncio.create_task(client.last(client.stub.CompileModel(request)))
    (one, _), (two, _) = await asyncio.gather(first, second)
    assert one.execution.digest == two.execution.digest
    assert one.execution.end_time == two.execution.end_time


@toolchain_test
async def test_a_refusal_is_a_result_with_a_remedy_and_is_remembered(client, models):
    model = models.small("Hardmax", opset=13)
    ref, samples = await client.upload(model, models.samples(model))
    result, _ = await client.last(client.stub.CompileModel(compile_request(ref, samples)))
    failure = result.failure
    assert (failure.code, failure.subject, failure.user_fault) == ("OPSET_TOO_HIGH", "13", True)
    assert failure.transform_pass == "downgrade-opset"
    assert not result.compiled_model.sha256
    again, _ = await client.last(client.stub.CompileModel(compile_request(ref, samples)))
    assert again.execution.cached


@toolchain_test
async def test_the_tools_own_refusal_keeps_its_log(client, models):
    model = models.small("NoSuchOp")
    ref, samples = await client.upload(model, models.samples(model))
    result, _ = await client.last(client.stub.CompileModel(compile_request(ref, samples)))
    assert result.failure.code == "INVALID_MODEL"
    assert result.failure.exit_code == 255
    log = (await client.store.fetch(result.failure.log)).read_text()
    assert "ERROR-OCCUR-DURING" in log
    assert "boardlift-run-" not in log


@toolchain_test
async def test_broken_calls_are_statuses(client, models):
    missing = compiler_pb2.CompileModelRequest(target="rdk-x5")
    missing.model.sha256 = "0" * 64
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.last(client.stub.CompileModel(missing))
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    model = models.policy()
    ref, _ = await client.upload(model, models.samples(model))
    wrong = compiler_pb2.CheckModelRequest(model=ref, target="rdk-s100")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.last(client.stub.CheckModel(wrong))
    assert from_rpc_error(caught.value).reason == "TARGET_UNKNOWN"
    evil = compiler_pb2.CheckModelRequest(target="rdk-x5")
    evil.model.sha256 = "../../../etc/passwd"
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.last(client.stub.CheckModel(evil))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


@toolchain_test
async def test_validate_only_writes_the_yaml_and_runs_nothing(client, models):
    model = models.policy()
    ref, samples = await client.upload(model, models.samples(model))
    request = compile_request(ref, samples, preset="int16", purpose="release")
    request.validate_only = True
    result, _ = await client.last(client.stub.CompileModel(request))
    assert "set_all_nodes_int16" in result.yaml
    assert result.optimize_level == "O3"
    assert not result.compiled_model.sha256
    converted = await client.stub.ConvertConfig(compiler_pb2.ConvertConfigRequest(yaml=result.yaml))
    assert converted.variant.compiler.optimize_level == "O3"


@toolchain_test
async def test_cancel_frees_the_slot_and_leaves_nothing(client, models, tmp_path):
    model = models.deep()
    ref, samples = await client.upload(model, models.samples(model))
    request = compile_request(ref, samples, purpose="release")
    call = client.stub.CompileModel(request, metadata=(("x-execution-id", "mine"),))
    async for event in call:
        if event.progress.step == "compile":
            break
    started = time.monotonic()
    answer = await client.server.CancelExecution(toolchain_pb2.CancelExecutionRequest(execution_id="mine"))
    assert answer.stopped
    assert time.monotonic() - started < 5
    info = await client.server.GetServerInfo(toolchain_pb2.GetServerInfoRequest())
    assert info.busy_slots == 0
    left = [p.name for p in (tmp_path / "runs").iterdir()]
    assert len(left) <= 1, "only the warm start's own folder may be there"
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.last(call)
    assert caught.value.code() == grpc.StatusCode.CANCELLED


@toolchain_test
async def test_it_describes_itself(client):
    info = await client.server.GetServerInfo(toolchain_pb2.GetServerInfoRequest())
    assert (info.name, info.tools[0].version, info.tools[0].known) == ("compiler", "1.24.3", True)
    assert info.slots >= 1
    description = await client.stub.DescribeToolchain(compiler_pb2.DescribeToolchainRequest())
    assert {k.key for k in description.knobs} >= {"optimize_level", "max_time_per_fc", "node_info", "input_batch"}
    assert "OPSET_TOO_HIGH" in {k.code for k in description.failure_kinds}
    answer = await client.health.Check(health_pb2.HealthCheckRequest(service=COMPILER_SERVICE))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_without_a_toolchain_it_starts_and_says_the_one_command(tmp_path, models):
    async with serving(tmp_path, tmp_path / "nothing") as client:
        health = await client.health.Check(health_pb2.HealthCheckRequest(service=COMPILER_SERVICE))
        assert health.status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert (
            await client.health.Check(health_pb2.HealthCheckRequest())
        ).status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.last(client.stub.CheckModel(compiler_pb2.CheckModelRequest(target="rdk-x5")))
        error = from_rpc_error(caught.value)
        assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "TOOLCHAIN_MISSING")
        assert "make toolchain" in error.remedy
        info = await client.server.GetServerInfo(toolchain_pb2.GetServerInfoRequest())
        assert (info.slots, info.findings[0].code) == (0, "TOOLCHAIN_MISSING")
        converted = await client.stub.ConvertConfig(compiler_pb2.ConvertConfigRequest(yaml="a: [1"))
        assert converted.findings[0].code == "CONFIG_SYNTAX"


def launch(tmp_path, root, grace_s=1):
    port_file = tmp_path / "port"
    port_file.unlink(missing_ok=True)
    environment = {
        "PATH": os.environ["PATH"], "BOARDLIFT_LISTEN": "127.0.0.1:0", "BOARDLIFT_PORT_FILE": str(port_file),
        "BOARDLIFT_STATE_DIR": str(tmp_path / "state"), "BOARDLIFT_TOOLCHAIN": str(root),
        "BOARDLIFT_WORK_ROOT": str(tmp_path / "runs"), "BOARDLIFT_STOP_GRACE": str(grace_s),
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "boardlift_compiler"], env=environment, cwd=tmp_path,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    deadline = time.monotonic() + 60
    while not port_file.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    return process, f"127.0.0.1:{port_file.read_text()}"


def tool_processes(folder):
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str((entry / "cwd").readlink()).startswith(str(folder)):
                found.append(int(entry.name))
    return found


@toolchain_test
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_the_end_of_the_service_is_the_end_of_its_tools(tmp_path, toolchain, models, number):
    process, address = launch(tmp_path, toolchain.root)
    try:
        client = Client(address, tmp_path)
        model = models.deep()
        ref, samples = await client.upload(model, models.samples(model))
        async for event in client.stub.CompileModel(compile_request(ref, samples, purpose="release")):
            if event.progress.step == "compile":
                break
        assert tool_processes(tmp_path / "runs")
        process.send_signal(number)
        process.wait(timeout=20)
        await client.channel.close()
        deadline = time.monotonic() + 5
        while tool_processes(tmp_path / "runs") and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        assert not tool_processes(tmp_path / "runs")
        if number == signal.SIGTERM:
            assert list((tmp_path / "runs").iterdir()) == []
            assert process.returncode == 0
            return
        assert list((tmp_path / "runs").iterdir())
        process, address = launch(tmp_path, toolchain.root)
        assert list((tmp_path / "runs").iterdir()) == []
        client = Client(address, tmp_path)
        result, _ = await client.last(client.stub.CompileModel(compile_request(ref, samples)))
        assert not result.HasField("failure")
        await client.channel.close()
    finally:
        process.kill()
        process.wait()


async def refuses(client: Client, within_s: float = 10.0) -> None:
    """Wait until a service takes no calls: a signal is heard a moment after it was sent."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            await client.stub.DescribeToolchain(compiler_pb2.DescribeToolchainRequest(), timeout=5)
        except grpc.aio.AioRpcError as error:
            assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the service still takes calls")


@toolchain_test
async def test_a_service_that_is_told_to_stop_ends_what_it_has_begun_and_takes_nothing_new(tmp_path, toolchain, models):
    process, address = launch(tmp_path, toolchain.root, grace_s=60)
    try:
        client = Client(address, tmp_path)
        ref, samples = await client.upload(models.policy(), models.samples(models.policy()))
        call = client.stub.CompileModel(compile_request(ref, samples))
        await call.read()
        process.send_signal(signal.SIGTERM)
        await refuses(client)
        while (event := await call.read()) and event.WhichOneof("event") != "result":
            late = client.stub.CompileModel(compile_request(ref, samples, preset="int16"))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.last(late)
            assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        assert event.result.compiled_model.sha256
        await client.channel.close()
        assert process.wait(timeout=20) == 0
        assert list((tmp_path / "runs").iterdir()) == []
    finally:
        process.kill()
        process.wait()
