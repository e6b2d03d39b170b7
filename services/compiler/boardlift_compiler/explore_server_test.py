"""Explore two policies like those of a walking robot with the real toolchain, over gRPC."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import grpc
import numpy as np
import pytest
import pytest_asyncio
from boardlift.errors import from_rpc_error
from boardlift.v1 import (
    compiler_pb2,
    compiler_pb2_grpc,
    explore_pb2,
    explore_pb2_grpc,
    toolchain_pb2,
    toolchain_pb2_grpc,
)
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.server import ServerSettings
from support.policy_models import float_outputs, gated_policy, moe_policy, observations

from boardlift_compiler.run_compile import CompileInputs, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.server import start_host
from boardlift_compiler.settings import AllSettings, Settings
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec

DENSE = "dense-grouped-conv"


class Served:
    """A running compiler with policies and samples in its store."""

    def __init__(self, host, channel, state: Path) -> None:
        self.host, self.state = host, state
        self.compiler = compiler_pb2_grpc.CompilerServiceStub(channel)
        self.explore = explore_pb2_grpc.ExploreServiceStub(channel)
        self.server = toolchain_pb2_grpc.ServerServiceStub(channel)
        self.store = LocalStore(state / "artifacts")

    async def put(self, data: bytes):
        return await self.store.put_bytes(data, "application/octet-stream")

    async def put_npz(self, **arrays):
        out = io.BytesIO()
        np.savez(out, **arrays)
        return await self.put(out.getvalue())

    async def forms(self, *models) -> list[explore_pb2.ModelForm]:
        return [
            explore_pb2.ModelForm(name=name, model=await self.put(model.SerializeToString()), transform_pass=done_by)
            for name, model, done_by in models
        ]

    async def samples(self, model, width: int, calibration: int = 64, heldout: int = 32):
        held = observations(width, heldout, 2)
        return {
            "calibration": await self.put_npz(obs=observations(width, calibration, 1)),
            "heldout": await self.put_npz(obs=held),
            "reference_outputs": await self.put_npz(actions=float_outputs(model, held)),
        }


async def result_of(stream):
    found = None
    async for message in stream:
        if message.WhichOneof("event") == "result":
            found = message.result
    return found


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served(tmp_path_factory, toolchain):
    state = tmp_path_factory.mktemp("explore")
    settings = Settings(state_dir=state, toolchain=toolchain.root, work_root=state / "runs")
    host = await start_host(AllSettings(settings, ServerSettings(), ChannelSettings()))
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{host.port}")
    yield Served(host, channel, state)
    await channel.close()
    await host.stop()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def policy(served):
    """The gated policy, whose Softmax splits it in int8, with its samples."""
    model = gated_policy()
    return (await served.forms(("gated", model, "")))[0], await served.samples(model, 225)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def experts(served):
    """The mixture of experts as exported and with its grouped Conv made dense."""
    grouped, dense = moe_policy(True), moe_policy(False)
    forms = await served.forms(("grouped", grouped, ""), ("dense", dense, DENSE))
    return forms, await served.samples(grouped, 450)


def value(figures, name: str) -> float:
    return next(f.value for f in figures if f.name == name)


pytestmark = [pytest.mark.toolchain, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]


async def test_search_finds_that_int16_and_the_dense_form_win(served, experts):
    forms, samples = experts
    request = explore_pb2.SearchVariantsRequest(forms=forms, plans=["int8", "int16"], methods=["max"], **samples)
    result = await result_of(served.explore.SearchVariants(request))
    assert result.best == "dense/int16/max"
    assert {f.code for f in result.findings} == {"INT16_BEATS_SPLIT_INT8", "FORM_BEATS_BASELINE"}
    rows = {c.name: c for c in result.candidates}
    best, grouped = rows["dense/int16/max"], rows["grouped/int16/max"]
    assert best.pareto and best.latency.bpu_subgraphs == 1 and grouped.latency.bpu_subgraphs == 2
    assert value(best.latency.figures, "bpu_us") > value(grouped.latency.figures, "bpu_us")
    assert value(best.latency.figures, "board_ms") < value(grouped.latency.figures, "board_ms")
    assert [f.code for f in grouped.findings] == ["INT16_FELL_BACK"]
    assert all(f.kind == toolchain_pb2.FIGURE_KIND_ESTIMATED for c in result.candidates for f in c.latency.figures)
    assert best.metric.kind == toolchain_pb2.FIGURE_KIND_SIMULATED


async def test_remedies_find_that_only_rewrite_and_int16_together_help(served, experts):
    forms, samples = experts
    request = explore_pb2.TryRemediesRequest(
        form=forms[0],
        alternatives=forms[1:],
        try_remedies=True,
        optimize_level="O2",
        calibration=samples["calibration"],
    )
    request.variant.calibration.method = "max"
    result = await result_of(served.explore.TryRemedies(request))
    reasons = {n.node: n for n in result.cpu_nodes}
    assert DENSE in reasons["experts.2"].remedies or "int16" in reasons["experts.2"].remedies
    assert any(i.splits and i.elements > 2048 for i in result.islands)
    tried = [r for r in result.remedies if r.HasField("gain_us")]
    assert [r.gain_us for r in tried] == sorted(r.gain_us for r in tried)
    assert tried[0].name.startswith("dense+") and tried[0].gain_us < -200
    assert tried[0].latency.bpu_subgraphs == 1
    alone = {r.name: r.latency.bpu_subgraphs for r in tried}
    assert alone["int16"] == alone["dense"] == 2


async def test_naming_remedies_takes_the_check_that_was_made(served, policy):
    form, _ = policy
    check = compiler_pb2.CheckModelRequest(model=form.model, target="rdk-x5")
    checked = await result_of(served.compiler.CheckModel(check))
    stored = sorted((served.state / "results").iterdir())
    result = await result_of(served.explore.TryRemedies(explore_pb2.TryRemediesRequest(form=form, target="rdk-x5")))
    assert sorted((served.state / "results").iterdir()) == stored
    assert "mode_softmax" in [n.node for n in result.cpu_nodes] and checked.bpu_subgraphs == 2
    (island,) = (i for i in result.islands if "mode_softmax (Softmax)" in i.nodes)
    assert island.splits
    assert 200 < value(island.figures, "handover_low_us") < value(island.figures, "handover_us") < 700
    assert not any(r.tried for r in result.remedies) and {"int16", "softmax-int16"} < {r.name for r in result.remedies}


async def test_a_dry_run_says_what_would_be_done_and_does_nothing(served, policy):
    form, samples = policy
    request = explore_pb2.SearchVariantsRequest(forms=[form], methods=["max", "kl"], dry_run=True, **samples)
    result = await result_of(served.explore.SearchVariants(request))
    assert [c.name for c in result.candidates][:2] == ["gated/int8/max", "gated/int8/kl"]
    assert result.dry_run and result.predicted_seconds > 0 and len(result.candidates) == 6
    assert [r.optimize_level for r in result.rounds] == ["O2"]
    assert not any(c.HasField("latency") for c in result.candidates)


async def test_a_search_that_was_stopped_goes_on_where_it_stopped(served, policy):
    form, samples = policy
    plans = ["int8", "softmax-int16", "int16"]
    request = explore_pb2.SearchVariantsRequest(
        forms=[form], plans=plans, methods=["max"], finalists=2, first_samples=32, **samples
    )
    stream = served.explore.SearchVariants(request, metadata=[("x-execution-id", "stop-me")])
    async for message in stream:
        if message.log.text.startswith("gated/int16"):
            break
    answer = await served.server.CancelExecution(toolchain_pb2.CancelExecutionRequest(execution_id="stop-me"))
    assert answer.stopped
    info = await served.server.GetServerInfo(toolchain_pb2.GetServerInfoRequest())
    assert info.busy_slots == 0
    result = await result_of(served.explore.SearchVariants(request))
    assert result.rounds[0].reused == 3
    assert result.rounds[0].seconds < 5
    assert result.findings[0].code == "INT16_BEATS_SPLIT_INT8"
    outcomes = {c.name: c.outcome for c in result.candidates}
    assert outcomes["gated/int8/max"] == "dominated" and outcomes["gated/int16/max"] == "finalist"


async def test_sensitivity_suggests_the_fastest_plan_that_reaches_the_target(served, policy):
    form, samples = policy
    request = explore_pb2.MeasureSensitivityRequest(model=form.model, no_proof=True, samples=32, **samples)
    first = await result_of(served.explore.MeasureSensitivity(request))
    assert not any(p.HasField("proven") for p in first.plans)
    losses = [1 - p.emulated.value for p in first.plans[:2]]
    request.no_proof, request.goal.target = False, 1 - (losses[0] * losses[1]) ** 0.5
    result = await result_of(served.explore.MeasureSensitivity(request))
    assert not result.HasField("failure"), result.failure
    errors = [value(layer.single_int8, "rmse") for layer in result.layers]
    assert errors == sorted(errors, reverse=True) and len(errors) == 11
    int8, int16, mixed = result.plans
    assert not int8.reaches_target and int16.reaches_target and mixed.reaches_target
    assert int8.latency.bpu_subgraphs == 2 and mixed.latency.bpu_subgraphs == 1
    assert 1 < len(mixed.int16_nodes) < 12
    assert mixed.proven.value == pytest.approx(mixed.emulated.value, abs=0.003)
    fastest = min(value(int16.latency.figures, "board_ms"), value(mixed.latency.figures, "board_ms"))
    assert result.suggested.reaches_target and value(result.suggested.latency.figures, "board_ms") == fastest
    assert any(layer.suggested_int16 for layer in result.layers)


async def test_camera_models_are_measured_in_the_form_the_board_feeds(served, models):
    model = models.camera()
    small = np.random.default_rng(5).integers(0, 256, (12, 3, 16, 24)).astype(np.uint8)
    pixels = small.repeat(2, axis=2).repeat(2, axis=3)  # blocks of 2x2: nv12 loses nothing but rounding
    mean, scale = np.array([120.0, 115.0, 100.0]), np.array([0.017, 0.018, 0.019])
    normalised = ((pixels - mean.reshape(1, 3, 1, 1)) * scale.reshape(1, 3, 1, 1)).astype(np.float32)
    request = explore_pb2.MeasureSensitivityRequest(
        model=(await served.forms(("camera", model, "")))[0].model,
        calibration=await served.put_npz(image=pixels[:8]),
        heldout=await served.put_npz(image=pixels[8:]),
        reference_outputs=await served.put_npz(**{model.graph.output[0].name: float_outputs(model, normalised[8:])}),
    )
    request.variant.inputs.add(
        name="image",
        type_train="rgb",
        type_rt="nv12",
        norm_type="data_mean_and_scale",
        mean_value=mean,
        scale_value=scale,
    )
    result = await result_of(served.explore.MeasureSensitivity(request))
    int8 = result.plans[0]
    assert int8.proven.value > 0.995 and int8.proven.value == pytest.approx(int8.emulated.value, abs=0.003)


async def test_single_layer_errors_are_those_of_the_vendors_debugger(toolchain, tmp_path):
    model, samples = tmp_path / "m.onnx", tmp_path / "m.npz"
    model.write_bytes(gated_policy(trunk=(225, 256, 128, 64)).SerializeToString())
    np.savez(samples, obs=observations(225, 16, 1))
    knobs, calibration = CompilerKnobs(optimize_level="O1"), CalibrationSpec(method="max")
    spec = CompileSpec(dump_calibration_data=True, calibration=calibration, compiler=knobs)
    with run_folder(tmp_path / "runs") as folder:
        built = await compile_model(toolchain, CompileInputs(model, spec, samples), folder, Limits(), Hooks())
        assert built.failure is None
        shutil.copytree(folder.path / "out", tmp_path / "out")
    theirs = await asyncio.to_thread(ask_debugger, toolchain.root, tmp_path / "out")
    ours = await asyncio.to_thread(ask_ours, toolchain.root, tmp_path, samples)
    directly_fed = ["trunk_fc0", "trunk_elu0", "trunk_fc1", "trunk_elu1", "trunk_fc2", "trunk_elu2", "mix_elu"]
    for name in directly_fed:
        assert ours[name] == pytest.approx(theirs[name], abs=6e-6), name


def ask_debugger(root: Path, out: Path) -> dict[str, float]:
    command = ["hmct-debugger", "get-sensitivity-of-nodes", "model_calibrated_model.onnx", "calibration_data"]
    command += ["-m", "mse", "-n", "node", "-v", "True", "-d", "16"]
    environment = {"PATH": f"{root / 'bin'}:/usr/bin:/bin", "HOME": str(out)}
    command[0] = str(root / "bin" / command[0])
    done = subprocess.run(command, cwd=out, env=environment, capture_output=True, text=True, check=True)
    rows = re.findall(r"^(\S+) +([\d.]+(?:e-\d+)?) *$", done.stdout + done.stderr, re.M)
    return {name: float(number) for name, number in rows}


def ask_ours(root: Path, folder: Path, samples: Path) -> dict[str, float]:
    side = Path(__file__).resolve().parents[1] / "toolchain_side/measure_layers.py"
    request = {
        "model": str(folder / "out/model_calibrated_model.onnx"),
        "inputs": str(samples),
        "layers": True,
        "answer": str(folder / "answer.json"),
    }
    (folder / "request.json").write_text(json.dumps(request))
    environment = {"PATH": f"{root / 'bin'}:/usr/bin:/bin", "HOME": str(folder)}
    command = [str(root / "bin/python"), str(side), str(folder / "request.json")]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    layers = json.loads((folder / "answer.json").read_text())["layers"]
    return {layer["node"]: layer["single_int8"]["actions"]["rmse"] ** 2 for layer in layers}


async def test_estimate_says_what_the_compilers_log_said_and_where_it_ends(served, policy):
    form, samples = policy
    request = explore_pb2.SearchVariantsRequest(forms=[form], plans=["int8"], methods=["max"], **samples)
    candidate = (await result_of(served.explore.SearchVariants(request))).candidates[0]
    answer = await served.explore.EstimateLatency(
        explore_pb2.EstimateLatencyRequest(compiled_model=candidate.compiled_model)
    )
    assert [s.name for s in answer.subgraphs] == ["main_graph_subgraph_0", "main_graph_subgraph_1"]
    for name in ("bpu_us", "board_ms", "board_low_ms", "board_high_ms"):
        assert value(answer.figures, name) == value(candidate.latency.figures, name)
    assert {"ESTIMATE_SEVERAL_SUBGRAPHS", "ESTIMATE_CPU_NODES", "ESTIMATE_INPUT_KIND", "ESTIMATE_RANGE"} == {
        f.code for f in answer.findings
    }


async def test_held_out_samples_that_were_calibrated_on_are_refused(served, policy):
    form, samples = policy
    request = explore_pb2.SearchVariantsRequest(forms=[form], **{**samples, "heldout": samples["calibration"]})
    result = await result_of(served.explore.SearchVariants(request))
    assert result.failure.code == "HELDOUT_OVERLAPS_CALIBRATION" and result.failure.user_fault


async def test_a_measurement_that_is_refused_is_not_a_plan_without_nodes(served, policy):
    _, samples = policy
    model = gated_policy()
    next(n for n in model.graph.node if n.op_type == "Elu").op_type = "Shrink"  # no kernel anywhere on the board
    (broken,) = await served.forms(("broken", model, ""))
    request = explore_pb2.SearchVariantsRequest(forms=[broken], plans=["suggested"], methods=["max"], **samples)
    alone = await result_of(served.explore.SearchVariants(request))
    assert (alone.failure.code, alone.candidates) == ("CPU_OPERATOR_UNSUPPORTED", [])
    request.plans.append("int8")
    beside = await result_of(served.explore.SearchVariants(request))
    told = beside.findings[0]
    assert (told.code, told.subject) == ("CPU_OPERATOR_UNSUPPORTED", "broken") and "no suggested plan" in told.message
    assert beside.candidates[0].outcome == "refused"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"goal": explore_pb2.Goal(metric="psnr")}, "GOAL_INVALID"),
        ({"goal": explore_pb2.Goal(output="nothing")}, "GOAL_INVALID"),
        ({"plans": ["int4"]}, "CANDIDATE_INVALID"),
        ({"factor": 1}, "KNOB_RANGE"),
        ({"target": "rdk-s100"}, "TARGET_UNKNOWN"),
        ({"variants": [compiler_pb2.VariantSpec(name="../x")]}, "CANDIDATE_INVALID"),
    ],
)
async def test_requests_that_mean_nothing_are_refused(served, policy, change, reason):
    form, samples = policy
    words = {"plans": ["int8"], "methods": ["max"], **change}
    request = explore_pb2.SearchVariantsRequest(forms=[form], **words, **samples)
    built = sorted((served.state / "results").iterdir())
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await result_of(served.explore.SearchVariants(request))
    assert from_rpc_error(caught.value).reason == reason
    assert sorted((served.state / "results").iterdir()) == built  # nothing was built to find that out
