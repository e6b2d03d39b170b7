from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_float_neg_becomes_mul_and_integer_neg_stays() -> None:
    b = GraphBuilder(11)
    b.node("Neg", [b.input("x", [1, 4])], "y")
    b.node("Neg", [b.input("i", [1, 4], TensorProto.INT64)], "z")
    b.output("y", [1, 4])
    b.output("z", [1, 4], TensorProto.INT64)
    run = run_one_pass(b.model(), "replace-neg")
    assert run.operators == ["Mul", "Neg"]
    assert run.max_rel == 0
