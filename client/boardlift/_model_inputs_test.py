"""Inputs of ONNX files, read without the onnx library and checked against it."""

from __future__ import annotations

import pytest

from boardlift._model_inputs import read_input_shapes
from boardlift.errors import InvalidInputError


def test_inputs_in_order_open_dimensions_and_weights_that_look_like_inputs(tmp_path):
    helper = pytest.importorskip("onnx.helper")
    import onnx

    def value(name, shape):
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

    weight = helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [1.0, 2.0])
    inputs = [value("obs", [1, 225, 300]), value("w", [2]), value("image", ["N", 3, 1 << 33]), value("scalar", [])]
    inputs.append(value("anything", None))
    nodes = [helper.make_node("Identity", ["obs"], ["y"])]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", [1, 225, 300])], [weight])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    shapes = read_input_shapes(tmp_path / "m.onnx")
    assert list(shapes.items()) == [
        ("obs", (1, 225, 300)),
        ("image", (0, 3, 1 << 33)),
        ("scalar", ()),
        ("anything", ()),
    ]


@pytest.mark.parametrize("content", [b"", b"\x3a\xff", b"nonsense"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(InvalidInputError, match="can't be read as an ONNX model") as caught:
        read_input_shapes(tmp_path / "m.onnx")
    assert caught.value.reason == "MODEL_UNREADABLE"
