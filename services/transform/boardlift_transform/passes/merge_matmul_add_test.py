from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_pair_becomes_gemm() -> None:
    b = GraphBuilder()
    t = b.node("MatMul", [b.input("x", [1, 8]), b.weight(8, 5)])
    b.node("Add", [b.weight(5), t], "y")
    b.output("y", [1, 5])
    run = run_one_pass(b.model(), "merge-matmul-add")
    assert run.operators == ["Gemm"]
    assert run.max_rel < 1e-6


def test_an_add_of_something_computed_is_no_bias() -> None:
    b = GraphBuilder()
    x = b.input("x", [1, 8])
    b.node("Add", [b.node("MatMul", [x, b.weight(8, 8)]), x], "y")
    b.output("y", [1, 8])
    run = run_one_pass(b.model(), "merge-matmul-add")
    assert run.operators == ["MatMul", "Add"]
    assert run.result.skipped
