import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from boardlift_compiler.foresee import foresee
from boardlift_compiler.read_model import read_model
from boardlift_compiler.spec import CompileSpec, InputSpec, NodeOverride, norm_type_of

INT16 = CompileSpec(preset="int16").with_calibration(optimization=("set_all_nodes_int16",))


def after_conv(channels: int, *nodes: tuple[str, dict[str, object]]) -> bytes:
    """A Conv of so many channels and the nodes behind it."""
    made = [helper.make_node("Conv", ["x", "w"], ["t0"], name="conv")]
    for number, (op, attributes) in enumerate(nodes):
        made.append(helper.make_node(op, [f"t{number}"], [f"t{number + 1}"], name=op.lower(), **attributes))
    weight = numpy_helper.from_array(np.ones((channels, 4, 1, 1), np.float32), "w")
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6])],
        [helper.make_tensor_value_info(f"t{len(nodes)}", TensorProto.FLOAT, None)],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)]).SerializeToString()


@pytest.mark.parametrize(
    ("channels", "op", "axis", "spec", "expected"),
    [
        (129, "ArgMax", 1, CompileSpec(), ["ARGMAX_INT8_WRAPS"]),
        (129, "ArgMin", 1, CompileSpec(), ["ARGMAX_INT8_WRAPS"]),
        (128, "ArgMax", 1, CompileSpec(), []),
        (129, "ArgMax", 1, INT16, []),
        (129, "ArgMax", 1, CompileSpec(nodes=(NodeOverride("argmax", input_type="int16"),)), []),
        (129, "ArgMax", 1, CompileSpec(nodes=(NodeOverride("argmax", "CPU"),)), []),
        (129, "ArgMax", 3, CompileSpec(), ["NODE_WILL_RUN_ON_CPU"]),
    ],
)
def test_more_entries_than_an_int8_counts(
    channels: int, op: str, axis: int, spec: CompileSpec, expected: list[str]
) -> None:
    model = read_model(after_conv(channels, ("Relu", {}), (op, {"axis": axis})))
    found = foresee(spec, model)
    assert [f.code for f in found] == expected
    assert all(f.subject == op.lower() for f in found)


@pytest.mark.parametrize(
    ("block", "expected"), [(2, []), (3, ["DEPTH_TO_SPACE_COSTLY"]), (4, ["DEPTH_TO_SPACE_COSTLY"])]
)
def test_pixel_shuffles_of_another_block_than_two(block: int, expected: list[str]) -> None:
    model = read_model(after_conv(block * block, ("DepthToSpace", {"blocksize": block}), ("Relu", {})))
    assert [f.code for f in foresee(CompileSpec(), model)] == expected


def test_no_pass_is_named_that_changes_nothing() -> None:
    last, channels = (
        foresee(CompileSpec(), read_model(after_conv(8, ("Softmax", {"axis": axis}))))[0].remedy for axis in (3, 1)
    )
    assert "softmax-on-last-axis" not in last and "softmax-on-last-axis" in channels


@pytest.mark.parametrize(
    ("word", "found", "advice"),
    [
        ("set_Softmax_input_int8", [], ""),
        ("set_SoftMax_input_int8", ["OPTIMIZATION_WITHOUT_EFFECT"], "Write Softmax."),
        ("set_LayerNormalization_output_int16", ["OPTIMIZATION_WITHOUT_EFFECT"], "name an operator of the model"),
        ("set_all_nodes_int16", [], ""),
        ("set_model_output_int16", [], ""),
        ("asymmetric", [], ""),
    ],
)
def test_a_word_for_an_operator_that_is_not_there(word: str, found: list[str], advice: str) -> None:
    spec = CompileSpec().with_calibration(optimization=(word,))
    said = [f for f in foresee(spec, read_model(after_conv(8, ("Softmax", {"axis": 3})))) if f.subject == word]
    assert [f.code for f in said] == found
    assert all(advice in f.remedy for f in said)


@pytest.mark.parametrize(
    ("mean", "scale", "found"),
    [
        ((123.7, 116.3, 103.5), (0.0171, 0.0175, 0.0174), []),
        ((), (), []),
        ((0.485, 0.456, 0.406), (4.37, 4.46, 4.44), ["NORM_VALUE_SUSPICIOUS"]),
        ((), (255.0,), ["NORM_VALUE_SUSPICIOUS"]),
        ((127.5,), (1 / 127.5,), []),
    ],
)
def test_mean_and_scale_of_pixels_from_0_to_1(
    mean: tuple[float, ...], scale: tuple[float, ...], found: list[str]
) -> None:
    item = InputSpec("x", "rgb", "nv12", norm_type=norm_type_of(mean, scale), mean=mean, scale=scale)
    model = read_model(after_conv(8, ("Relu", {})))
    assert [f.code for f in foresee(CompileSpec(inputs=(item,)), model)] == found
