import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from boardlift_compiler.explain_failure import make_failure
from boardlift_compiler.name_crash import name_crash, name_runtime_crash
from boardlift_compiler.read_model import read_model
from boardlift_compiler.run_check import check_placement
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.run_simulation import SimulateInputs, simulate_model
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec


def build(*, bias: bool = False, pads: int = 0, turned: bool = False) -> bytes:
    """`Add(constant) -> Conv`, the Add on tokens when turned."""
    weights = {"w": np.ones((4, 8, 1, 1)), "b": np.ones([1, 1, 1, 8] if turned else [1, 8, 1, 1]), "bias": np.ones(4)}
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="add")]
    if turned:
        nodes.append(helper.make_node("Transpose", ["a"], ["t"], perm=[0, 3, 1, 2], name="turn"))
    source = "t" if turned else "a"
    inputs = [source, "w", "bias"] if bias else [source, "w"]
    nodes.append(helper.make_node("Conv", inputs, ["y"], pads=[pads] * 4, name="head"))
    shape, edge = ([1, 5, 6, 8] if turned else [1, 8, 5, 6]), 2 * pads
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 5 + edge, 6 + edge])],
        [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items() if bias or n != "bias"],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)
    onnx.checker.check_model(model)
    return model.SerializeToString()


CRASH = make_failure("CRASH", "11 during optimise", ("Start to optimize the onnx model.",), 139)


@pytest.mark.parametrize("turned", [True, False])
def test_a_crash_with_its_known_cause_names_the_node(turned: bool) -> None:
    named = name_crash(CRASH, read_model(build(turned=turned)))
    assert named is not None
    assert (named.code, named.subject, named.transform_pass) == ("CONV_BIAS_CRASH", "head", "fold-channel-add")
    assert (named.exit_code, named.evidence) == (139, CRASH.evidence)


@pytest.mark.parametrize("change", [{"bias": True}, {"pads": 1}])
def test_a_crash_of_another_model_stays_one(change: dict[str, int]) -> None:
    assert name_crash(CRASH, read_model(build(**change))) is CRASH


def test_another_failure_stays_what_it_is() -> None:
    refused = make_failure("NAN_WEIGHT", "w")
    assert name_crash(refused, read_model(build())) is refused
    assert name_crash(None, read_model(build())) is None


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("change", "code"), [({}, "CONV_BIAS_CRASH"), ({"turned": True}, "CONV_BIAS_CRASH"), ({"bias": True}, "")]
)
async def test_the_tool_dies_of_it(toolchain, tmp_path, change, code) -> None:
    (tmp_path / "m.onnx").write_bytes(build(**change))
    with run_folder(tmp_path / "runs") as folder:
        outcome = await check_placement(toolchain, tmp_path / "m.onnx", CompileSpec(), folder, Limits(300), Hooks())
    assert (outcome.failure.code if outcome.failure else "") == code


def slopes(shape: tuple[int, ...]) -> bytes:
    """`Conv -> PRelu` with slopes of that shape."""
    weights = {"w": np.ones((4, 4, 1, 1)), "s": np.full(shape, 0.2)}
    nodes = [helper.make_node("Conv", ["x", "w"], ["t"], name="conv")]
    nodes.append(helper.make_node("PRelu", ["t", "s"], ["y"], name="slopes"))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, 5, 6]) for n in "xy"]
    tensors = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7).SerializeToString()


@pytest.mark.parametrize(("size", "code"), [(6, "PRELU_SLOPES"), (7, "CALIBRATION_SAMPLE_SIZE")])
def test_a_reshape_of_slopes_is_not_one_of_samples(size: int, code: str) -> None:
    text = f"cannot reshape array of size {size} into shape (1,1,1,4)"
    failure = make_failure("CALIBRATION_SAMPLE_SIZE", "", (text,), 255)
    named = name_crash(failure, read_model(slopes((6,))))
    assert named is not None and named.code == code
    assert named.subject == ("slopes" if code == "PRELU_SLOPES" else "")


@pytest.mark.toolchain
async def test_the_real_checker_on_slopes_off_the_channels(toolchain, tmp_path):
    model = tmp_path / "m.onnx"
    model.write_bytes(slopes((6,)))
    with run_folder(tmp_path / "runs") as folder:
        outcome = await check_placement(toolchain, model, CompileSpec(), folder, Limits(timeout_s=120), Hooks())
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.subject, outcome.failure.transform_pass) == (
        "PRELU_SLOPES",
        "slopes",
        "turn-prelu",
    )


def padded(pads: list[int], op_type: str = "HzPad") -> bytes:
    """The quantised model's Pad."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, "h", "w"]) for n in "xy"]
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"], name="pad", pads=pads)], "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7).SerializeToString()


@pytest.mark.parametrize(
    ("pads", "code"), [([0, -1, 0, 0, 0, 0, 2, 0], "PAD_CROPS"), ([0, 1, 0, 0, 0, 0, 2, 0], "CRASH")]
)
def test_a_runtime_that_died_on_a_pad_by_less_than_nothing_names_it(pads: list[int], code: str) -> None:
    named = name_runtime_crash(CRASH, read_model(padded(pads)))
    assert named.code == code
    assert code == "CRASH" or (named.subject, named.transform_pass, named.evidence) == (
        "pad",
        "crop-pad",
        CRASH.evidence,
    )


def test_a_runtime_that_ended_otherwise_keeps_its_reason() -> None:
    slow = make_failure("TIMEOUT", "3600")
    assert name_runtime_crash(slow, read_model(padded([0, -1, 0, 0, 0, 0, 0, 0]))) is slow


@pytest.mark.toolchain
async def test_the_runtime_dies_of_it(build, toolchain, tmp_path) -> None:
    weights = [numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), "w")]
    weights.append(numpy_helper.from_array(np.array([0, 0, -1, 0, 0, 0, 1, 0], np.int64), "p"))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["t"], name="first"),
        helper.make_node("Pad", ["t", "p"], ["u"], name="crop"),
        helper.make_node("Relu", ["u"], ["v"], name="relu"),
        helper.make_node("Conv", ["v", "w"], ["y"], name="last"),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, 5, 6]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)
    built = await build(model, CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O1")))
    assert built.failure is None and "INTEGERS_NOT_COMPARED" in [f.code for f in built.findings]
    (tmp_path / "q.onnx").write_bytes(built.kept["quantized_model.onnx"])
    (tmp_path / "m.bin").write_bytes(built.compiled)
    np.savez(tmp_path / "held.npz", x=np.ones((2, 1, 4, 5, 6), np.float32))
    inputs = SimulateInputs(tmp_path / "q.onnx", tmp_path / "m.bin", tmp_path / "held.npz", None, built.spec, 1)
    with run_folder(tmp_path / "runs") as folder:
        outcome = await simulate_model(toolchain, inputs, folder)
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.subject) == ("PAD_CROPS", "crop")
