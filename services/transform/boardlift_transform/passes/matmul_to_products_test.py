import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def _product(a: list[int], b: list[int]) -> GraphBuilder:
    g = GraphBuilder(11)
    g.node("MatMul", [g.input("a", a), g.input("b", b)], "y")
    g.output("y", [*a[:-1], b[-1]])
    return g


@pytest.mark.parametrize(
    ("a", "b"), [([1, 1, 5, 7], [1, 1, 7, 3]), ([1, 4, 6, 8], [1, 4, 8, 6]), ([1, 3, 1, 4], [1, 3, 4, 1])]
)
def test_a_product_of_feature_maps_becomes_products_and_a_sum(a: list[int], b: list[int]) -> None:
    run = run_one_pass(_product(a, b).model(), "matmul-to-products")
    assert run.operators == ["Transpose", "Reshape", "Reshape", "Mul", "Conv"] and run.max_rel < 1e-5


def test_large_products_stay_and_say_why() -> None:
    model = _product([1, 4, 6, 8], [1, 4, 8, 6]).model()
    run = run_one_pass(model, "matmul-to-products", {"elements": 1000})
    assert run.operators == ["MatMul"] and "1152 products" in run.result.skipped[0].reason


def test_other_products_are_left_alone() -> None:
    assert run_one_pass(_product([1, 2, 3, 4], [1, 1, 4, 5]).model(), "matmul-to-products").operators == ["MatMul"]
    g = GraphBuilder(11)
    g.node("MatMul", [g.input("a", [1, 2, 3, 4]), g.weight(4, 5)], "y")
    g.output("y", [1, 2, 3, 5])
    assert run_one_pass(g.model(), "matmul-to-products").operators == ["MatMul"]


def test_only_a_plan_for_int16_runs_it_and_batch_eight_still_runs() -> None:
    model = _product([1, 2, 3, 4], [1, 2, 4, 5]).model()
    results = {p: transform(model, precision=p) for p in ("int16", "int8", "")}
    assert [any(n.op_type == "MatMul" for n in r.model.graph.node) for r in results.values()] == [False, True, True]
    assert results["int16"].proof.batch == "proven"
