import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_softmax_over_channels_and_argmax_over_width() -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 8, 1, 1])
    b.node("Softmax", [x], "y", axis=1)
    b.node("ArgMax", [b.input("z", [1, 3, 4, 5])], "i", axis=3)
    b.output("y", [1, 8, 1, 1])
    b.output("i", [1, 3, 4, 1], TensorProto.INT64)
    run = run_one_pass(b.model(), "softmax-on-last-axis")
    axes = {n.op_type: a.i for n in run.model.graph.node for a in n.attribute if a.name == "axis"}
    assert axes == {"Softmax": 3, "ArgMax": 1}
    assert run.max_rel == 0


def test_a_softmax_that_flattens_axes_is_left_alone() -> None:
    b = GraphBuilder(11)
    b.node("Softmax", [b.input("x", [1, 8, 2, 2])], "y", axis=1)
    b.output("y", [1, 8, 2, 2])
    run = run_one_pass(b.model(), "softmax-on-last-axis")
    assert run.operators == ["Softmax"] and run.result.skipped


@pytest.mark.parametrize(
    ("entries", "axis", "keepdims", "precision", "wanted"),
    [
        (128, 1, 1, "int8", 1),
        (129, 1, 1, "int8", 3),  # an int8 result counts to 127
        (129, 1, 0, "int8", 3),
        (129, 1, 0, "", 3),
        (129, 1, 1, "int16", 1),
        (200, 3, 0, "int8", 3),
        (200, 3, 1, "int16", 1),
    ],
)
def test_argmax_over_many_entries_stays_off_the_bpu_in_int8(
    entries: int, axis: int, keepdims: int, precision: str, wanted: int
) -> None:
    shape = [1, 2, 3, 4]
    shape[axis] = entries
    b = GraphBuilder(11)
    b.node("ArgMax", [b.input("x", shape)], "i", axis=axis, keepdims=keepdims)
    shape[axis : axis + 1] = [1] * keepdims
    b.output("i", shape, TensorProto.INT64)
    run = run_one_pass(b.model(), "softmax-on-last-axis", {"precision": precision})
    assert [a.i for n in run.model.graph.node for a in n.attribute if a.name == "axis"] == [wanted]
    assert run.max_rel == 0
