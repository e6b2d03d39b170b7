import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def _softmax(shape: list[int], axis: int = 3) -> GraphBuilder:
    b = GraphBuilder(11)
    b.node("Softmax", [b.input("x", shape)], "y", axis=axis)
    b.output("y", shape)
    return b


@pytest.mark.parametrize("shape", [[1, 3, 17, 17], [1, 1, 5, 9], [2, 3, 6, 2], [1, 2, 4, 1]])
def test_rows_become_channels_and_nothing_else_changes(shape: list[int]) -> None:
    run = run_one_pass(_softmax(shape, axis=-1).model(), "rows-to-channels")
    assert run.operators == ["Reshape", "Softmax", "Reshape"] and run.max_rel == 0
    inner = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in run.model.graph.value_info}
    made = next(n.output[0] for n in run.model.graph.node if n.op_type == "Softmax")
    assert inner[made] == [shape[0], shape[2], shape[1], shape[3]]
    assert [n.name for n in run.model.graph.node if n.op_type == "Softmax"] == ["/Softmax_0"]  # overrides name it


@pytest.mark.parametrize(
    ("shape", "axis"), [([1, 8, 8, 8], 3), ([1, 16, 24, 24], 3), ([1, 20, 1, 5], 3), ([1, 2, 9, 9], 2), ([1, 12], 1)]
)
def test_enough_channels_or_another_axis_are_left_alone(shape: list[int], axis: int) -> None:
    assert run_one_pass(_softmax(shape, axis).model(), "rows-to-channels").operators == ["Softmax"]


@pytest.mark.parametrize(("precision", "turned"), [("int8", False), ("int16", True), ("", True)])
def test_plans_but_int8_have_it_and_a_batch_of_eight_still_runs(precision: str, turned: bool) -> None:
    b = GraphBuilder(13)
    scores = b.node("MatMul", [b.input("q", ["n", 2, 9, 4]), b.input("k", ["n", 2, 4, 9])])
    b.node("MatMul", [b.node("Softmax", [scores], axis=-1), b.input("v", ["n", 2, 9, 4])], "y")
    b.output("y", ["n", 2, 9, 4])
    result = transform(b.model(), precision=precision, skip_passes=["matmul-to-products"])
    wanted = ["Reshape", "Softmax", "Reshape"] if turned else ["Softmax"]
    assert [n.op_type for n in result.model.graph.node] == ["MatMul", *wanted, "MatMul"]
    assert result.proof.batch == "proven"
