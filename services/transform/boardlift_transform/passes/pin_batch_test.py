from onnx import numpy_helper

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_minus_one_becomes_the_static_size() -> None:
    b = GraphBuilder(11)
    b.node("Reshape", [b.input("x", [1, 6]), b.constant([-1, 2, 3])], "y")
    b.output("y", [1, 2, 3])
    run = run_one_pass(b.model(), "pin-batch")
    assert [numpy_helper.to_array(w).tolist() for w in run.model.graph.initializer] == [[1, 2, 3]]
    assert run.max_rel == 0


def test_a_guard_holds_every_input_at_batch_one() -> None:
    b = GraphBuilder(11)
    b.node("Add", [b.input("x", [1, 3, 4, 5]), b.input("z", [1, 3, 4, 5])], "y")
    b.output("y", [1, 3, 4, 5])
    run = run_one_pass(b.model(), "pin-batch", {"guard": True})
    assert run.operators == ["Reshape", "Mul", "Reshape"] * 2 + ["Add"] and run.max_rel == 0
