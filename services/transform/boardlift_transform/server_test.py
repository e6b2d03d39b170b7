import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import onnx
import onnx_ir as ir
import pytest
import pytest_asyncio
from boardlift.datasets.archive import Dataset, read_dataset, write_dataset
from boardlift.errors import from_rpc_error
from boardlift.v1 import artifact_pb2, toolchain_pb2, toolchain_pb2_grpc, transform_pb2, transform_pb2_grpc
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.channels import ChannelSettings, connect
from boardlift_servicekit.server import ServerSettings
from onnx import TensorProto, helper

from boardlift_transform import server
from boardlift_transform.build_test_models import elu_policy
from boardlift_transform.equivalence import Session
from boardlift_transform.pass_result import PassResult
from boardlift_transform.passes import PASSES_BY_ID
from boardlift_transform.prepare_dataset import prepare_dataset
from boardlift_transform.server import build_host
from boardlift_transform.settings import AllSettings, Settings


class Running:
    def __init__(self, channel: Any, store: LocalStore, folder: Path) -> None:
        self.stub = transform_pb2_grpc.TransformServiceStub(channel)
        self.info = toolchain_pb2_grpc.ServerServiceStub(channel)
        self.store, self.folder = store, folder

    async def dataset(self, count: int = 100) -> artifact_pb2.ArtifactRef:
        obs = np.random.default_rng(1).standard_normal((count, 225)).astype(np.float32)
        path = self.folder / "d.npz"
        write_dataset(Dataset({"obs": obs}, {"provenance": {"log": "walk"}}), path)
        return await self.store.put_file(path, "application/x-npz")

    async def transform(self, request: transform_pb2.TransformModelRequest) -> tuple[list[Any], Any]:
        events = [event async for event in self.stub.TransformModel(request)]
        return events, events[-1].result


@pytest_asyncio.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    host = build_host(AllSettings(Settings(state_dir=tmp_path / "state"), ServerSettings(), ChannelSettings()))
    await host.start()
    async with connect(f"127.0.0.1:{host.port}") as channel:
        yield Running(channel, LocalStore(tmp_path / "state/artifacts"), tmp_path)
    await host.stop()


def _inline(model: onnx.ModelProto) -> transform_pb2.ModelSource:
    return transform_pb2.ModelSource(inline_model=model.SerializeToString())


async def test_from_dataset_to_mapped_artifacts_that_the_new_model_reproduces(running: Running) -> None:
    source = _inline(elu_policy())
    prepared = await running.stub.PrepareDataset(
        transform_pb2.PrepareDatasetRequest(
            model=source, dataset=await running.dataset(), split=transform_pb2.SplitSpec(calibration_samples=64)
        )
    )
    assert (prepared.calibration_samples, prepared.heldout_samples) == (64, 36)
    assert prepared.provenance_json == '{"log": "walk"}'
    events, result = await running.transform(
        transform_pb2.TransformModelRequest(
            model=source,
            spec=transform_pb2.TransformSpec(target="rdk-x5", outputs=["actions"], diff=True),
            calibration=prepared.calibration,
            heldout=prepared.heldout,
        )
    )
    assert not result.HasField("failure")
    assert [e.sequence for e in events] == list(range(1, len(events) + 1))
    shown = [e.progress for e in events if e.WhichOneof("event") == "progress"]
    assert [p.fraction for p in shown] == sorted(p.fraction for p in shown)
    assert [p.done for p in shown if p.step == "prove-equivalence"][-1] == 36
    heldout = read_dataset(await running.store.fetch(result.heldout))
    assert heldout.arrays["obs_4d"].shape == (36, 1, 1, 225)
    calibration = read_dataset(await running.store.fetch(result.calibration))
    assert calibration.arrays["obs_4d"].shape == (64, 1, 1, 225)
    session = Session(str(await running.store.fetch(result.model)))
    with np.load(await running.store.fetch(result.reference_outputs)) as reference:
        want = reference["actions"]
    got = np.concatenate([session.run({"obs_4d": x[None]})["actions"] for x in heldout.arrays["obs_4d"]])
    assert got.shape == want.shape == (36, 12, 1, 1)
    assert np.abs(got - want).max() < 1e-5
    figures = {f.name: f for f in result.equivalence[0].figures}
    assert {figure.kind for figure in figures.values()} == {toolchain_pb2.FIGURE_KIND_MEASURED}
    assert "tolerance" not in figures and 0 < result.equivalence[0].allowed_max_abs < 1e-3
    lifted = next(r.diff for r in result.passes if r.id == "lift-to-4d")
    assert "Conv" in {v.operator for v in lifted.added} | {r.after.operator for r in lifted.rewritten}
    assert "run_policy" in result.io_snippet and result.assumptions and not result.random_inputs


async def test_the_truth_of_raw_pixels_is_the_model_fed_with_what_mean_and_scale_make_of_them(running: Running) -> None:
    weight = np.random.default_rng(2).standard_normal((4, 3, 3, 3)).astype(np.float32)
    shapes = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, c, 6, 6]) for n, c in (("image", 3), ("y", 4))]
    conv = helper.make_node("Conv", ["image", "w"], ["y"], pads=[1, 1, 1, 1])
    graph = helper.make_graph([conv], "g", shapes[:1], shapes[1:], [onnx.numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)
    pixels = np.random.default_rng(1).integers(0, 256, (6, 3, 6, 6)).astype(np.float32)
    path = running.folder / "pixels.npz"
    write_dataset(Dataset({"image": pixels}, {}), path)
    mean, scale = [120.0, 115.0, 100.0], [0.017, 0.018, 0.019]
    norm = transform_pb2.InputNormalisation(name="image", mean=mean, scale=scale)
    request = transform_pb2.TransformModelRequest(
        model=_inline(model),
        spec=transform_pb2.TransformSpec(normalised_inputs=[norm]),
        heldout=await running.store.put_file(path, "application/x-npz"),
    )
    _, result = await running.transform(request)
    fed = ((pixels - np.reshape(mean, (3, 1, 1))) * np.reshape(scale, (3, 1, 1))).astype(np.float32)
    wanted = np.concatenate([Session(model.SerializeToString()).run({"image": one[None]})["y"] for one in fed])
    with np.load(await running.store.fetch(result.reference_outputs)) as reference:
        np.testing.assert_allclose(reference["y"].reshape(wanted.shape), wanted, rtol=1e-3, atol=1e-4)
    kept = read_dataset(await running.store.fetch(result.heldout))
    np.testing.assert_array_equal(kept.arrays["image"].reshape(pixels.shape), pixels)  # the compiler wants raw ones


async def test_every_held_out_sample_that_goes_on_has_its_reference(running: Running) -> None:
    request = transform_pb2.TransformModelRequest(model=_inline(elu_policy()), heldout=await running.dataset(530))
    _, result = await running.transform(request)
    heldout = read_dataset(await running.store.fetch(result.heldout))
    with np.load(await running.store.fetch(result.reference_outputs)) as reference:
        lengths = {len(reference[name]) for name in reference.files}
    assert lengths == {heldout.samples} == {512}
    assert "HELDOUT_SHORTENED" in {finding.code for finding in result.findings}


async def test_the_same_request_is_answered_from_the_store(running: Running) -> None:
    request = transform_pb2.TransformModelRequest(model=_inline(elu_policy()))
    _, first = await running.transform(request)
    _, second = await running.transform(request)
    assert not first.execution.cached and second.execution.cached
    assert first.model == second.model and first.random_inputs


async def test_a_refusal_is_a_result_not_a_status(running: Running) -> None:
    request = transform_pb2.TransformModelRequest(
        model=_inline(elu_policy()), spec=transform_pb2.TransformSpec(outputs=["torque"])
    )
    _, result = await running.transform(request)
    assert result.failure.code == "OUTPUT_NOT_FOUND"
    assert result.failure.user_fault and "actions" in result.failure.remedy
    broken = transform_pb2.ModelSource(inline_model=b"not a model")
    inspected = await running.stub.InspectModel(transform_pb2.InspectModelRequest(model=broken))
    assert inspected.failure.code == "MODEL_CORRUPT"


async def test_a_pass_that_spoils_the_model_is_not_the_callers_fault(running: Running, monkeypatch: Any) -> None:
    def spoil(model: Any, parameters: Any) -> PassResult:
        for name, value in model.graph.initializers.items():
            value.const_value = ir.tensor(value.const_value.numpy() * np.float32(1.01), name=name)
        return PassResult()

    monkeypatch.setitem(PASSES_BY_ID, "replace-neg", replace(PASSES_BY_ID["replace-neg"], apply=spoil))
    request = transform_pb2.TransformModelRequest(model=_inline(elu_policy((8, 8))))
    request.spec.passes.add(id="replace-neg")
    _, result = await running.transform(request)
    assert (result.failure.code, result.failure.user_fault) == ("NOT_EQUIVALENT", False)
    monkeypatch.undo()
    _, again = await running.transform(request)
    assert not again.HasField("failure")  # what was our fault is not answered from the store


async def test_inspect_plan_and_list(running: Running) -> None:
    source = _inline(elu_policy())
    summary = (await running.stub.InspectModel(transform_pb2.InspectModelRequest(model=source))).summary
    assert (summary.opset, summary.nodes) == (17, 9)
    assert summary.operators["Gemm"] == 5
    plan = await running.stub.PlanTransform(transform_pb2.PlanTransformRequest(model=source))
    assert [p.id for p in plan.passes][:2] == ["fix-dynamic-dims", "fold-constants"]
    assert all(p.reason and p.exactness for p in plan.passes)
    spec = transform_pb2.TransformSpec(outputs=["nothing"])
    refused = await running.stub.PlanTransform(transform_pb2.PlanTransformRequest(model=source, spec=spec))
    assert [failure.code for failure in refused.refusals] == ["OUTPUT_NOT_FOUND"]
    wrong = {
        "INPUT_NOT_FOUND": transform_pb2.TransformSpec(frozen_inputs={"UNKNOWN": "1"}),
        "INPUT_SHAPE_MISMATCH": transform_pb2.TransformSpec(input_shapes=[{"name": "obs", "shape": [1, 7]}]),
        "PASS_UNKNOWN": transform_pb2.TransformSpec(skip_passes=["fold-constant"]),
    }
    for code, spec in wrong.items():
        refused = await running.stub.PlanTransform(transform_pb2.PlanTransformRequest(model=source, spec=spec))
        assert [failure.code for failure in refused.refusals] == [code]
        assert refused.refusals[0].remedy
    assert "did you mean fold-constants" in refused.refusals[0].remedy
    listed = (await running.stub.ListPasses(transform_pb2.ListPassesRequest())).passes
    assert all(p.summary and p.reason and p.exactness for p in listed)


async def test_a_dataset_that_does_not_fit_is_refused_by_name(running: Running) -> None:
    answer = await running.stub.PrepareDataset(
        transform_pb2.PrepareDatasetRequest(model=_inline(elu_policy((7, 8))), dataset=await running.dataset())
    )
    assert answer.failure.code == "DATASET_SHAPE"
    missing = artifact_pb2.ArtifactRef(sha256="0" * 64)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await running.stub.PrepareDataset(
            transform_pb2.PrepareDatasetRequest(model=_inline(elu_policy()), dataset=missing)
        )
    assert from_rpc_error(caught.value).reason == "ARTIFACT_MISSING"


async def test_the_server_answers_while_a_dataset_is_looked_at(running: Running, monkeypatch: Any) -> None:
    def slowly(*arguments: Any, **more: Any) -> Any:
        time.sleep(1.0)
        return prepare_dataset(*arguments, **more)

    monkeypatch.setattr(server, "prepare_dataset", slowly)
    request = transform_pb2.PrepareDatasetRequest(model=_inline(elu_policy()), dataset=await running.dataset())
    preparing = asyncio.ensure_future(running.stub.PrepareDataset(request))
    await asyncio.sleep(0.3)
    await running.info.GetServerInfo(toolchain_pb2.GetServerInfoRequest())
    assert not preparing.done()
    assert not (await preparing).HasField("failure")


async def test_an_input_that_will_be_frozen_needs_no_samples(running: Running) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 225]) for name in ("obs", "actions")]
    gain = helper.make_tensor_value_info("gain", TensorProto.FLOAT, [1])
    nodes = [helper.make_node("Mul", ["obs", "gain"], ["scaled"]), helper.make_node("Tanh", ["scaled"], ["actions"])]
    graph = helper.make_graph(nodes, "g", [values[0], gain], [values[1]])
    source = _inline(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    request = transform_pb2.PrepareDatasetRequest(model=source, dataset=await running.dataset())
    assert (await running.stub.PrepareDataset(request)).failure.code == "DATASET_INPUT_MISSING"
    request.frozen_inputs.append("gain")
    prepared = await running.stub.PrepareDataset(request)
    assert not prepared.HasField("failure")
    spec = transform_pb2.TransformSpec(target="rdk-x5", frozen_inputs={"gain": "[0.5]"})
    _, result = await running.transform(
        transform_pb2.TransformModelRequest(
            model=source, spec=spec, calibration=prepared.calibration, heldout=prepared.heldout
        )
    )
    assert not result.HasField("failure"), result.failure
    assert not result.random_inputs
    reference = read_dataset(await running.store.fetch(result.reference_outputs)).arrays["actions"]
    fed = read_dataset(await running.store.fetch(prepared.heldout)).arrays["obs"][: len(reference)]
    np.testing.assert_allclose(reference.reshape(fed.shape), np.tanh(fed * 0.5), rtol=1e-5, atol=1e-6)


async def test_a_parameter_that_is_no_json_is_an_invalid_request(running: Running) -> None:
    spec = transform_pb2.TransformSpec(frozen_inputs={"obs": "[1"})
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await running.transform(transform_pb2.TransformModelRequest(model=_inline(elu_policy()), spec=spec))
    assert from_rpc_error(caught.value).reason == "PARAMETER_INVALID"


async def test_server_says_what_it_is(running: Running) -> None:
    info = await running.info.GetServerInfo(toolchain_pb2.GetServerInfoRequest())
    assert info.name == "transform" and info.slots == 2 and info.tools[0].version
