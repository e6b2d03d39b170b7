import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.passes.wrap_outputs import four_dimensions
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize(
    ("shape", "wide"),
    [
        ([], [1, 1, 1, 1]),
        ([3], [1, 3, 1, 1]),
        ([1, 12], [1, 12, 1, 1]),
        ([1, 10, 33], [1, 1, 10, 33]),
        ([1, 3, 8, 9], [1, 3, 8, 9]),
        ([1, 2, 3, 4, 5], [1, 6, 4, 5]),
    ],
)
def test_rank_rules_keep_the_name(shape: list[int], wide: list[int]) -> None:
    assert four_dimensions(shape) == wide
    b = GraphBuilder(11)
    b.node("Relu", [b.input("x", shape)], "actions")
    b.output("actions", shape)
    run = run_one_pass(b.model(), "wrap-outputs")
    made = run.model.graph.output[0]
    assert made.name == "actions"
    assert [d.dim_value for d in made.type.tensor_type.shape.dim] == wide
    assert run.max_rel == 0
