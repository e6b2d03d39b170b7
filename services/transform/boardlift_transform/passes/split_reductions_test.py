import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass

CASES = [
    ("ReduceMax", [2, 3], 2),
    ("ReduceMax", [1], 0),
    ("ReduceMean", [2, 3], 0),
    ("ReduceMean", [1, 2, 3], 3),
    ("ReduceSum", [-1, 1, 2], 3),
    ("ReduceSumSquare", [1], 1),
    ("ReduceSum", [2, 3], 2),
    ("ReduceL1", [2, 3], 2),
    ("ReduceL2", [1, 2], 2),
]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(("operator", "axes", "nodes"), CASES)
def test_one_axis_at_a_time(operator: str, axes: list[int], nodes: int, keepdims: int) -> None:
    b = GraphBuilder(11)
    t = b.node(operator, [b.input("x", [1, 4, 3, 5])], axes=axes, keepdims=keepdims)
    b.node("Relu", [t], "y")
    b.output("y", ["a"] * (4 if keepdims else 4 - len(axes)))
    run = run_one_pass(b.model(), "split-reductions")
    assert sum(len(a.ints) == 1 for n in run.model.graph.node for a in n.attribute if a.name == "axes") >= nodes
    assert bool(run.result.applied) == bool(nodes)
    assert run.max_rel < 1e-6


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(("axes", "changed"), [([-1, -2], True), ([3, 2], True), ([-2, -1], False), ([2, 3], False)])
def test_axes_ascend(axes: list[int], changed: bool, keepdims: int) -> None:
    b = GraphBuilder(11)
    t = b.node("ReduceMean", [b.input("x", [1, 4, 3, 5])], axes=axes, keepdims=keepdims)
    b.node("Relu", [t], "y")
    b.output("y", ["a"] * (4 if keepdims else 2))
    run = run_one_pass(b.model(), "split-reductions")
    kept = [list(a.ints) for n in run.model.graph.node for a in n.attribute if a.name == "axes"]
    assert kept == ([[2, 3]] if changed else [axes])
    assert run.max_rel < 1e-6


@pytest.mark.parametrize(("axes", "count"), [([1, 2], 2), ([1, 3], 2), ([2, 3], 1), ([1], 1)])
def test_a_mean_over_two_axes_stays_one_for_rows_and_columns_only(axes: list[int], count: int) -> None:
    b = GraphBuilder(11)
    b.node("ReduceMean", [b.input("x", [1, 4, 5, 6])], "y", axes=axes, keepdims=1)
    b.output("y", [1, "c", "h", "w"])
    run = run_one_pass(b.model(), "split-reductions")
    assert run.operators == ["ReduceMean"] * count and run.max_rel < 1e-6
