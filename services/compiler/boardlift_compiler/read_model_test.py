import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from boardlift_compiler.name_graph import neutral_graph_name, sort_constants
from boardlift_compiler.read_model import ModelUnreadableError, read_model


def test_a_policy_is_described_as_onnx_itself_sees_it(models):
    model = models.policy()
    summary = read_model(model.SerializeToString())
    assert [(t.name, t.dtype, t.shape) for t in summary.inputs] == [("obs_4d", "float32", (1, 1, 1, 225))]
    assert [(t.name, t.shape) for t in summary.outputs] == [("actions", (1, 12, 1, 1))]
    assert [(n.name, n.op_type) for n in summary.nodes] == [(n.name, n.op_type) for n in model.graph.node]
    assert summary.nodes[0].attributes["perm"] == (0, 3, 1, 2)
    assert (summary.opset, summary.ir_version, summary.graph_name) == (11, 7, "policy")
    assert summary.weights["w0"].shape == (512, 225, 1, 1)


def test_dynamic_dimensions_keep_their_names(models):
    summary = read_model(models.small(dims=("N", 3, "H", 32)).SerializeToString())
    assert summary.inputs[0].shape == ("N", 3, "H", 32)


@pytest.mark.parametrize("raw", [True, False])
def test_nan_is_found_in_both_encodings(models, raw):
    model = models.small()
    values = numpy_helper.to_array(model.graph.initializer[0]).copy()
    values.flat[3] = np.nan
    made = helper.make_tensor("w1", TensorProto.FLOAT, values.shape, values.ravel().tolist())
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w1") if raw else made)
    assert read_model(model.SerializeToString()).weights["w1"].has_nan


def test_external_weights_and_constant_nodes_are_seen(models):
    model = models.small()
    constant = numpy_helper.from_array(np.array([1, -1], np.int64), "")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["shape"], value=constant))
    model.graph.initializer[1].data_location = TensorProto.EXTERNAL
    summary = read_model(model.SerializeToString())
    assert summary.weights["shape"].integers == (1, -1)
    assert summary.weights["w2"].external


@pytest.mark.parametrize("data", [b"", b"\x08\x07hello world this is not onnx", b"\x08\x07"])
def test_what_is_not_a_model_is_refused(data):
    with pytest.raises(ModelUnreadableError):
        read_model(data)


def test_numbers_that_are_no_numbers_are_refused(models):
    model = models.policy((8, 4))
    model.graph.node[0].attribute.add(name="alpha", type=1, f=0.5)
    raw = model.SerializeToString()
    alpha = helper.make_attribute("alpha", 0.5).SerializeToString()
    assert raw.count(alpha) == 1
    for damaged in (alpha.replace(b"\x15", b"\x10"), alpha.replace(b"\x15", b"\x12")):
        with pytest.raises(ModelUnreadableError):
            read_model(raw.replace(alpha, damaged))
    model.graph.initializer[0].raw_data += b"\0"
    with pytest.raises(ModelUnreadableError):
        read_model(model.SerializeToString())


@given(st.data())
def test_damaged_models_never_crash_the_reader(models, data):
    model = models.policy((8, 4))
    model.graph.node[0].attribute.add(name="alpha", type=1, f=0.5)
    raw = bytearray(model.SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_model(bytes(raw[: data.draw(st.integers(1, len(raw)))]))
    except ModelUnreadableError:
        return


def test_the_graph_gets_our_name_and_nothing_else_changes(models):
    import onnx

    model = models.policy(graph="$(touch INJECTED)/../x")
    renamed = onnx.load_from_string(neutral_graph_name(model.SerializeToString()))
    assert renamed.graph.name == "main_graph"
    renamed.graph.name = model.graph.name
    assert renamed == model


def test_sorted_constants_do_not_depend_on_their_order(models):
    one, two = models.policy(), models.policy()
    reversed_weights = list(two.graph.initializer)[::-1]
    del two.graph.initializer[:]
    two.graph.initializer.extend(reversed_weights)
    assert sort_constants(one.SerializeToString()) == sort_constants(two.SerializeToString())
