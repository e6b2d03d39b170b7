from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from boardlift_transform.infer_node import copy_shape

SHAPES: tuple[list[int], ...] = ([], [1], [3], [1, 3], [2, 1, 3], [2, 4, 1], [0, 1, 3], [5, 2, 4, 3])


def _node(left: list[int], right: list[int], opset: int = 17, **attributes: Any) -> tuple[onnx.ModelProto, ir.Node]:
    inputs = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, s) for n, s in (("a", left), ("b", right))]
    node = helper.make_node("Add", ["a", "b"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return model, ir.from_proto(model).graph.node(0)


@pytest.mark.parametrize("left", SHAPES)
@pytest.mark.parametrize("right", SHAPES)
def test_broadcasting_is_that_of_onnx(left: list[int], right: list[int]) -> None:
    model, node = _node(left, right)
    try:
        want = np.broadcast_shapes(tuple(left), tuple(right))
    except ValueError:
        assert not copy_shape(node)
        return
    assert copy_shape(node)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output[0].type.tensor_type
    assert [d.dim_value for d in inferred.shape.dim] == list(want)
    assert node.outputs[0].shape == ir.Shape(want)
    assert node.outputs[0].dtype == ir.DataType(inferred.elem_type)


def test_broadcasting_by_attributes_is_left_to_onnx() -> None:
    assert not copy_shape(_node([2, 3], [2], opset=6, broadcast=1, axis=0)[1])
