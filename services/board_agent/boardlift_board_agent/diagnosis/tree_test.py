"""Each leaf of the tree, broken for real: real compiles with bad data, real code mistakes on real compiled models."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from boardlift.v1 import board_agent_pb2

from boardlift_board_agent.diagnosis.evidence import Diagnosis, Evidence
from boardlift_board_agent.diagnosis.tree import diagnose
from boardlift_board_agent.parse_report import parse_model_info
from boardlift_board_agent.tensors import dequantize, read_plainly, unpack

pytestmark = pytest.mark.toolchain
TOOL = str(Path(sys.executable).parent / "boardlift-hrt-model-exec")
Request = board_agent_pb2.DiagnoseModelRequest


class UserCode:
    """What a user's program does: feeds bytes, reads bytes, maybe wrongly."""

    def __init__(self, toolchain: Path, folder: Path, model: Path) -> None:
        self.environment = {"PATH": "/usr/bin:/bin", "BOARDLIFT_TOOLCHAIN": str(toolchain)}
        self.folder, self.model = folder, model
        info = subprocess.run(
            [TOOL, "model_info", f"--model_file={model}"], env=self.environment, capture_output=True, text=True
        )
        self.specs = parse_model_info(info.stdout)

    def run(self, samples: dict[str, np.ndarray], read=None) -> dict[str, np.ndarray]:
        fed = {n: [np.ascontiguousarray(s, np.float32).tobytes() for s in a] for n, a in samples.items()}
        return self.run_bytes(fed, read)

    def run_bytes(self, fed: dict[str, list[bytes]], read=None) -> dict[str, np.ndarray]:
        read = read or (lambda memory, spec: dequantize(unpack(memory, spec), spec))
        inputs = [s for s in self.specs if s.input]
        outputs = [s for s in self.specs if not s.input]
        rows: dict[str, list[np.ndarray]] = {s.name: [] for s in outputs}
        for index in range(len(fed[inputs[0].name])):
            files = []
            for position, spec in enumerate(inputs):
                path = self.folder / f"in{position}.bin"
                path.write_bytes(fed[spec.name][index])
                files.append(str(path))
            flags = [f"--model_file={self.model}", f"--input_file={','.join(files)}", f"--dump_path={self.folder}"]
            command = [TOOL, "infer", *flags, "--enable_dump=true"]
            subprocess.run(command, env=self.environment, check=True, capture_output=True)
            for position, spec in enumerate(outputs):
                memory = next(self.folder.glob(f"model_infer_output_{position}_*.bin")).read_bytes()
                rows[spec.name].append(read(memory, spec))
        return {name: np.stack(values) for name, values in rows.items()}


@pytest.fixture(scope="module")
def agent(toolchain, tmp_path_factory):
    from services.board_agent.conftest import AgentProcess  # the conftest of this service

    process = AgentProcess(toolchain, tmp_path_factory.mktemp("agent")).start()
    yield process
    process.stop()


@pytest.fixture
def user(toolchain, tmp_path):
    return lambda item: UserCode(toolchain, tmp_path, item.model)


def nodes_of(path: Path) -> list[board_agent_pb2.DiagnosedNode]:
    """Nodes with the vendor's cosine from quant_info.json, as the compiler service reports them."""
    info = json.loads(path.read_text())
    return [
        board_agent_pb2.DiagnosedNode(name=name, precision="int8", cosine=float(node["cosine_similarity"]))
        for name, node in info.items()
        if "cosine_similarity" in node
    ]


async def ask(caller, item, **arrays):
    from services.board_agent.conftest import npz

    request = Request(
        run_id="d",
        compiled_model=await caller.upload(item.model),
        samples=await caller.store.put_bytes(npz(**item.samples), "application/x-npz"),
        reference_outputs=await caller.store.put_bytes(npz(**item.reference), "application/x-npz"),
        calibration=await caller.upload(item.calibration),
        sample_limit=1,
    )
    if item.quantized_outputs:
        quantized = await caller.store.put_bytes(npz(**item.quantized_outputs), "application/x-npz")
        request.quantized_outputs.CopyFrom(quantized)
    for name, value in arrays.items():
        if name == "others":
            for other, outputs in value.items():
                artifact = await caller.store.put_bytes(npz(**outputs), "application/x-npz")
                request.other_outputs.add(name=other, artifact=artifact)
        elif name == "nodes":
            request.nodes.extend(value)
        elif name in {"bit_check", "sample_limit"}:
            setattr(request, name, value)
        elif name == "quantized_model":
            request.quantized_model.CopyFrom(await caller.upload(value))
        else:
            getattr(request, name).CopyFrom(await caller.store.put_bytes(npz(**value), "application/x-npz"))
    responses = [r async for r in caller.stub.DiagnoseModel(request, timeout=120)]
    result = responses[-1].result
    for found in result.diagnoses:
        print(f"{found.cause} ({found.confidence:.2f}) {found.subject}: {found.message}")
    return result


def first(result) -> str:
    return result.diagnoses[0].cause


def right_inputs(item) -> dict[str, np.ndarray]:
    return {name: array[:1] for name, array in item.samples.items()}


async def test_nothing_wrong(agent, call, materials, user) -> None:
    item = materials["policy8"]
    result = await ask(call(agent), item, user_outputs=user(item).run(right_inputs(item)))
    assert [d.cause for d in result.diagnoses] == ["consistent"]
    assert len(result.user_vs_board) == 1


async def test_nhwc_fed_as_nchw(agent, call, materials, user) -> None:
    item = materials["padded"]
    wrong = {n: np.ascontiguousarray(np.transpose(a, (0, 1, 3, 4, 2))) for n, a in right_inputs(item).items()}
    result = await ask(call(agent), item, user_outputs=user(item).run(wrong))
    assert first(result) == "input-nhwc-as-nchw"
    assert result.diagnoses[0].confidence > 0.9


async def test_stride_ignored_when_reading(agent, call, materials, user) -> None:
    item = materials["padded"]
    outputs = user(item).run(right_inputs(item), lambda memory, spec: dequantize(read_plainly(memory, spec), spec))
    result = await ask(call(agent), item, user_outputs=outputs)
    assert first(result) == "output-stride-ignored"


async def test_output_not_dequantised(agent, call, materials, user) -> None:
    item = materials["padded"]
    outputs = user(item).run(right_inputs(item), lambda memory, spec: unpack(memory, spec).astype(np.float32))
    assert first(await ask(call(agent), item, user_outputs=outputs)) == "output-not-dequantised"


async def test_output_layout_misread(agent, call, materials, user) -> None:
    item = materials["twins"]
    outputs = user(item).run(right_inputs(item))
    misread = {n: np.ascontiguousarray(np.transpose(a, (0, 1, 3, 4, 2))).reshape(a.shape) for n, a in outputs.items()}
    assert first(await ask(call(agent), item, user_outputs=misread)) == "output-layout-misread"


async def test_wrong_dtype_float64_bytes(agent, call, materials, user) -> None:
    item = materials["policy8"]
    doubled = {
        n: np.nan_to_num(np.stack([np.frombuffer(s.astype(np.float64).tobytes()[: s.size * 4], np.float32) for s in a]))
        for n, a in right_inputs(item).items()
    }
    assert first(await ask(call(agent), item, user_outputs=user(item).run(doubled))) == "input-float64-bytes"


async def test_wrong_dtype_integers(agent, call, materials, user) -> None:
    item = materials["policy8"]
    cut = {n: a.astype(np.int8).astype(np.float32) for n, a in right_inputs(item).items()}
    assert first(await ask(call(agent), item, user_outputs=user(item).run(cut))) == "input-truncated-to-integers"


async def test_swapped_inputs(agent, call, materials, user) -> None:
    item = materials["twins"]
    samples = right_inputs(item)
    swapped = {"left": samples["right"], "right": samples["left"]}
    assert first(await ask(call(agent), item, user_outputs=user(item).run(swapped))) == "inputs-swapped"


async def test_input_not_normalised(agent, call, materials, user) -> None:
    item = materials["policy8"]
    wrong = {n: a * np.float32(255) for n, a in right_inputs(item).items()}
    assert first(await ask(call(agent), item, user_outputs=user(item).run(wrong))) == "input-not-divided-by-255"


async def test_another_normalisation_is_fitted_from_the_fed_inputs(agent, call, materials, user) -> None:
    item = materials["policy8"]
    fed = {n: a * np.float32(1.7) - np.float32(0.4) for n, a in right_inputs(item).items()}
    result = await ask(call(agent), item, user_outputs=user(item).run(fed), user_inputs=fed)
    assert first(result) == "input-normalised-differently"
    assert "1.7 times" in result.diagnoses[0].message


async def test_wrong_model_version(agent, call, materials, user) -> None:
    item, older = materials["policy8"], materials["older"]
    outputs = user(older).run(right_inputs(item))
    result = await ask(call(agent), item, user_outputs=outputs, others={"round-15k": outputs})
    assert first(result) == "wrong-model-version"
    assert result.diagnoses[0].subject == "round-15k"


async def test_calibration_not_normalised(agent, call, materials) -> None:
    result = await ask(call(agent), materials["unnormalised"])
    assert first(result) == "calibration-not-normalised"
    assert "not normalised" in result.diagnoses[0].message


async def test_too_few_calibration_samples(agent, call, materials) -> None:
    result = await ask(call(agent), materials["few"])
    assert [d.cause for d in result.diagnoses] == ["calibration-too-few"]


async def test_int8_overflow_layer(agent, call, materials) -> None:
    item, better = materials["overflow"], materials["overflow16"]
    nodes = nodes_of(item.quant_info)
    result = await ask(call(agent), item, nodes=nodes, others={"int16": better.quantized_outputs})
    assert [d.cause for d in result.diagnoses] == ["layer-range-overflow", "precision-too-low"]
    assert [d.subject for d in result.diagnoses] == ["fc1", "int16"]


async def test_unknown_mistake_is_admitted(agent, call, materials, user) -> None:
    item = materials["policy8"]
    rng = np.random.default_rng(5)
    noise = {n: rng.standard_normal(a.shape).astype(np.float32) for n, a in right_inputs(item).items()}
    result = await ask(call(agent), item, user_outputs=user(item).run(noise))
    assert first(result) == "user-code-unexplained"
    assert result.diagnoses[0].confidence <= 0.5


def evidence(**fields) -> Evidence:
    board = {"y": np.arange(12, dtype=np.float32).reshape(2, 6)}
    return Evidence(specs=(), samples={}, board=board, reference={}, **fields)


def causes(found: list[Diagnosis]) -> list[str]:
    return [d.cause for d in found]


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"skew": ("3.15.47.0", "3.15.55.0")}, "version-skew"),
        ({"plain_copies": ("y",)}, "runtime-stride-ignored"),
        ({"repeated": {"y": np.ones((1, 6), np.float32)}}, "board-not-repeatable"),
        ({"quantized": {"y": np.ones((2, 6), np.float32)}, "bit_equal_code": False}, "compiled-code-differs"),
        ({"quantized": {"y": np.ones((2, 6), np.float32)}, "bit_equal_code": True}, "board-differs"),
    ],
)
def test_leaves_that_need_no_model(fields, cause) -> None:
    assert causes(diagnose(evidence(**fields)))[0] == cause


def test_rounding_of_cpu_kernels_is_told_from_a_sick_board() -> None:
    from boardlift_board_agent.diagnosis.evidence import NodeFact

    board = {"y": np.arange(12, dtype=np.float32).reshape(2, 6)}
    near = {"y": board["y"] + np.float32(1e-6)}
    node = NodeFact("softmax", True, "float", 0.0)
    found = diagnose(Evidence(specs=(), samples={}, board=board, reference={}, quantized=near, nodes=(node,)))
    assert causes(found) == ["cpu-fallback-numerics"]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_one_value_that_is_no_number_is_never_agreement(bad: float) -> None:
    board = {"y": np.arange(12, dtype=np.float32).reshape(2, 6)}
    spoilt = {"y": board["y"].copy()}
    spoilt["y"][1, 3] = bad
    for fields, cause in (
        ({"board": spoilt, "quantized": board}, "board-differs"),
        ({"board": board, "user_outputs": spoilt}, "user-code-unexplained"),
        ({"board": board, "repeated": spoilt}, "board-not-repeatable"),
    ):
        assert causes(diagnose(Evidence(**{"specs": (), "samples": {}, "reference": {}, **fields}))) == [cause]
    same = {"board": spoilt, "quantized": spoilt, "repeated": {"y": spoilt["y"][:1]}}
    assert causes(diagnose(Evidence(specs=(), samples={}, reference={}, **same))) == ["consistent"]


def test_a_multiple_of_the_right_answer_is_not_the_right_answer() -> None:
    board = {"y": np.arange(12, dtype=np.float32).reshape(2, 6)}
    for factor, cause in ((1.0, "consistent"), (1.001, "consistent"), (3.0, "user-code-unexplained")):
        found = diagnose(evidence(user_outputs={"y": board["y"] * np.float32(factor)}))
        assert causes(found) == [cause]
    assert "another multiple" in found[0].evidence[0]


def test_no_evidence_is_no_verdict() -> None:
    found = diagnose(evidence())
    assert (found[0].cause, found[0].confidence) == ("consistent", 0.0)


def test_outputs_of_the_float_model_in_place_of_the_compiled_one_are_told() -> None:
    board = {"y": np.arange(12, dtype=np.float32).reshape(2, 6)}
    exact = {"y": board["y"] + np.float32(0.3)}
    given = Evidence(specs=(), samples={}, board=board, reference=exact, quantized=board, user_outputs=exact)
    assert causes(diagnose(given))[0] == "float-model-run"


def test_how_far_the_outputs_are_apart_is_said_by_angle_and_by_size() -> None:
    mine = {"y": np.arange(12, dtype=np.float32).reshape(2, 6) + np.float32([[0] * 6, [0, 0, -0.5, 0, 0, 0]])}
    (found,) = diagnose(evidence(user_outputs=mine))
    assert found.cause == "user-code-unexplained"
    assert "smallest cosine" in found.evidence[0].lower() and "max_abs 0.5 at y, sample 1" in found.evidence[0]
