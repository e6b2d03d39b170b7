from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from boardlift._external_data import find_external_files
from boardlift.errors import InvalidInputError


def save(path, location="weights/w.data", nested=False):
    weight = numpy_helper.from_array(np.ones((300, 10), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    if nested:
        constant = helper.make_node("Constant", [], ["w"], value=weight)
        branch = helper.make_graph([constant, *nodes], "b", [], [helper.make_tensor_value_info("y", 1, None)])
        nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 300])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, [] if nested else [weight]))
    (path.parent / "weights").mkdir(exist_ok=True)
    if location:
        options = {"size_threshold": 0, "convert_attribute": True}
        onnx.save(model, path, save_as_external_data=True, location=location, **options)
    else:
        onnx.save(model, path)


@pytest.mark.parametrize("nested", [False, True])
def test_weight_files_are_found_wherever_the_tensor_is(tmp_path, nested):
    save(tmp_path / "m.onnx", nested=nested)
    assert find_external_files(tmp_path / "m.onnx") == {"weights/w.data": tmp_path / "weights" / "w.data"}


def test_a_whole_model_has_none(tmp_path, model):
    save(tmp_path / "m.onnx", location="")
    assert find_external_files(tmp_path / "m.onnx") == find_external_files(model) == {}


def test_missing_and_foreign_files_are_refused(tmp_path):
    save(tmp_path / "m.onnx")
    (tmp_path / "weights" / "w.data").unlink()
    with pytest.raises(InvalidInputError, match="EXTERNAL_DATA_MISSING"):
        find_external_files(tmp_path / "m.onnx")
    data = (tmp_path / "m.onnx").read_bytes()
    (tmp_path / "m.onnx").write_bytes(data.replace(b"weights/w.data", b"../../w/w.data"))
    with pytest.raises(InvalidInputError, match="EXTERNAL_DATA_OUTSIDE"):
        find_external_files(tmp_path / "m.onnx")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_an_answer_or_a_refusal(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("d") / "m.onnx"
    path.write_bytes(data)
    try:
        find_external_files(path)
    except InvalidInputError as error:
        assert error.remedy


def test_cut_off_models_are_refused(tmp_path):
    save(tmp_path / "m.onnx", location="")
    (tmp_path / "m.onnx").write_bytes((tmp_path / "m.onnx").read_bytes()[:5000])
    with pytest.raises(InvalidInputError, match="MODEL_UNREADABLE"):
        find_external_files(tmp_path / "m.onnx")
    with pytest.raises(InvalidInputError, match="MODEL_UNREADABLE"):
        find_external_files(tmp_path / "none.onnx")


def test_a_model_with_its_weights_is_pushed_whole(client, server, tmp_path):
    save(tmp_path / "m.onnx")
    pushed = client.push_model(tmp_path / "m.onnx")
    assert [artifact.name for artifact in pushed.external] == ["weights/w.data"]
    assert len(server.artifacts.stored) == 2
