from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_constant_on_either_side_becomes_a_convolution() -> None:
    b = GraphBuilder(11)
    t = b.node("MatMul", [b.input("x", [1, 3, 5, 7]), b.weight(7, 9)])
    t = b.node("MatMul", [b.weight(1, 1, 4, 5), t])
    b.node("Relu", [t], "y")
    b.output("y", [1, 3, 4, 9])
    run = run_one_pass(b.model(), "matmul-to-conv")
    assert run.operators == ["Transpose", "Conv", "Transpose", "Transpose", "Conv", "Transpose", "Relu"]
    assert run.max_rel < 1e-5


def test_a_constant_vector_on_the_right() -> None:
    b = GraphBuilder(11)
    t = b.node("MatMul", [b.input("x", [1, 6, 4, 8]), b.weight(8)])
    b.node("Relu", [t], "y")
    b.output("y", [1, 6, 4])
    run = run_one_pass(b.model(), "matmul-to-conv")
    assert run.operators == ["Transpose", "Conv", "Transpose", "Reshape", "Relu"]
    assert run.max_rel < 1e-5


def test_a_product_of_two_computed_values_stays() -> None:
    b = GraphBuilder(11)
    b.node("MatMul", [b.input("x", [1, 3, 5, 7]), b.input("z", [1, 3, 7, 2])], "y")
    b.output("y", [1, 3, 5, 2])
    assert run_one_pass(b.model(), "matmul-to-conv").operators == ["MatMul"]
