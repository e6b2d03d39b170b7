import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.passes.wrap_inputs import four_dimensions
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize(
    ("shape", "wide"),
    [
        ([], [1, 1, 1, 1]),
        ([300], [1, 1, 1, 300]),
        ([1, 225], [1, 1, 1, 225]),
        ([1, 10, 33], [1, 1, 10, 33]),
        ([1, 3, 8, 9], [1, 3, 8, 9]),
        ([1, 2, 3, 4, 5], [1, 6, 4, 5]),
    ],
)
def test_rank_rules(shape: list[int], wide: list[int]) -> None:
    assert four_dimensions(shape) == wide
    b = GraphBuilder(11)
    b.node("Relu", [b.input("x", shape)], "y")
    b.output("y", shape)
    run = run_one_pass(b.model(), "wrap-inputs")
    made = run.model.graph.input[0]
    assert [d.dim_value for d in made.type.tensor_type.shape.dim] == wide
    assert made.name == ("x" if shape == wide else "x_4d")
    assert run.max_rel == 0


def test_integer_input_is_fed_as_float() -> None:
    b = GraphBuilder(11)
    b.node("Gather", [b.weight(10, 4), b.input("ids", [1, 3], TensorProto.INT64)], "y")
    b.output("y", [1, 3, 4])
    run = run_one_pass(b.model(), "wrap-inputs")
    assert run.operators == ["Reshape", "Cast", "Gather"]
    assert run.max_rel == 0


def test_an_integer_that_the_model_casts_to_float_needs_no_cast() -> None:
    b = GraphBuilder(11)
    x = b.input("mode", [1, 6], TensorProto.INT64)
    b.node("Cast", [x], "direct", to=TensorProto.FLOAT)
    moved = b.node("Transpose", [x], perm=[1, 0])
    for name, t in (("y", moved), ("z", b.node("Reshape", [moved, b.constant([2, 3])]))):
        b.node("Relu", [b.node("Cast", [t], to=TensorProto.FLOAT)], name)
    b.node("Gather", [b.weight(10, 4), x], "rows")
    for name, shape in (("direct", [1, 6]), ("y", [6, 1]), ("z", [2, 3]), ("rows", [1, 6, 4])):
        b.output(name, shape)
    run = run_one_pass(b.model(), "wrap-inputs")
    assert run.max_rel == 0
    whole = [n for n in run.model.graph.node if n.op_type == "Cast" and n.attribute[0].i == TensorProto.INT64]
    readers = [n.op_type for n in run.model.graph.node if set(n.input) & {o for w in whole for o in w.output}]
    assert readers == ["Gather"]
