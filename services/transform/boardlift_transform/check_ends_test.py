import onnx
import pytest
from onnx import TensorProto, helper

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.transform_model import transform


def _classifier() -> onnx.ModelProto:
    b = GraphBuilder(13)
    b.node("Gemm", [b.input("x", [1, 8]), b.weight(3, 8), b.weight(3)], "scores", transB=1)
    b.output("scores", [1, 3])
    return b.model()


def _reason(model: onnx.ModelProto) -> tuple[str, str]:
    with pytest.raises(Refusal) as caught:
        transform(model)
    return caught.value.reason, str(caught.value.metadata["value"])


def test_dictionaries_are_refused_with_the_converter_option() -> None:
    model = _classifier()
    zipped = helper.make_node(
        "ZipMap", ["scores"], ["p"], name="zip", domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]
    )
    model.graph.node.append(zipped)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    entry = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, entry))
    model.graph.output.append(helper.make_value_info("p", maps))
    with pytest.raises(Refusal) as caught:
        transform(model)
    assert (caught.value.reason, caught.value.metadata["node"]) == ("VALUE_TYPE", "zip")
    assert "'zipmap': False" in caught.value.remedy


def test_a_list_of_tensors_is_refused_but_other_outputs_are_taken() -> None:
    model = _classifier()
    model.graph.node.append(helper.make_node("SequenceConstruct", ["scores"], ["list"]))
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    model.graph.output.append(helper.make_value_info("list", kind))
    assert _reason(model) == ("VALUE_TYPE", "list")
    assert transform(model, outputs=["scores"]).proof.passed


def test_text_is_refused() -> None:
    model = _classifier()
    model.graph.node.append(helper.make_node("Constant", [], ["label"], value_string="left"))
    model.graph.output.append(helper.make_tensor_value_info("label", TensorProto.STRING, []))
    assert _reason(model) == ("VALUE_TYPE", "label")


def test_an_input_that_is_an_output_is_refused() -> None:
    model = _classifier()
    model.graph.output.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8]))
    assert _reason(model) == ("OUTPUT_IS_INPUT", "x")


def test_one_value_under_two_names_is_refused_and_either_is_taken() -> None:
    model = _classifier()
    model.graph.node.append(helper.make_node("Identity", ["scores"], ["again"]))
    model.graph.output.append(helper.make_tensor_value_info("again", TensorProto.FLOAT, [1, 3]))
    assert _reason(model) == ("OUTPUT_TWICE", "again")
    assert all(transform(model, outputs=[name]).proof.passed for name in ("scores", "again"))
