import numpy as np
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_what_cancels_goes_in_one_walk() -> None:
    b = GraphBuilder()
    x = b.input("x", [1, 2, 3, 4])
    t = b.node("Relu", [x])
    t = b.node("Identity", [t])
    t = b.node("Dropout", [t])
    t = b.node("Transpose", [b.node("Transpose", [t], perm=[0, 2, 3, 1])], perm=[0, 3, 1, 2])
    t = b.node("Cast", [b.node("Cast", [t], to=TensorProto.DOUBLE)], to=TensorProto.FLOAT)
    t = b.node("Reshape", [t, b.constant(np.asarray([1, 24]))])
    t = b.node("Reshape", [t, b.constant(np.asarray([1, 2, 3, 4]))])
    b.node("Sigmoid", [t], "y")
    b.output("y", [1, 2, 3, 4])
    run = run_one_pass(b.model(), "eliminate-dead")
    assert run.operators == ["Relu", "Sigmoid"]
    assert run.max_rel == 0


def test_a_narrowing_cast_pair_stays() -> None:
    b = GraphBuilder()
    t = b.node("Cast", [b.input("x", [1, 4])], to=TensorProto.INT32)
    b.node("Relu", [b.node("Cast", [t], to=TensorProto.FLOAT)], "y")
    b.output("y", [1, 4])
    run = run_one_pass(b.model(), "eliminate-dead")
    assert run.operators == ["Cast", "Cast", "Relu"]
    assert run.max_rel == 0


def test_output_names_stay_when_the_last_node_goes() -> None:
    b = GraphBuilder()
    t = b.node("Relu", [b.input("x", [1, 4])])
    b.node("Identity", [t], "y")
    b.output("y", [1, 4])
    run = run_one_pass(b.model(), "eliminate-dead")
    assert run.operators == ["Relu"]
    assert run.model.graph.output[0].name == "y"


def test_an_input_wired_to_an_output_keeps_its_identity() -> None:
    b = GraphBuilder()
    x = b.input("x", [1, 4])
    b.node("Identity", [x], "y")
    b.node("Relu", [x], "z")
    b.output("y", [1, 4])
    b.output("z", [1, 4])
    assert run_one_pass(b.model(), "eliminate-dead").max_rel == 0
