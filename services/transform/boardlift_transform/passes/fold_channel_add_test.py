import numpy as np

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_add_after_conv_becomes_bias_also_behind_a_transpose() -> None:
    b = GraphBuilder(11)
    t = b.node("Conv", [b.input("x", [1, 4, 5, 5]), b.weight(6, 4, 1, 1), b.weight(6)])
    t = b.node("Add", [t, b.weight(6, 1, 1)])
    t = b.node("Transpose", [b.node("Conv", [t, b.weight(3, 6, 1, 1)])], perm=[0, 2, 3, 1])
    b.node("Add", [b.weight(3), t], "y")
    b.output("y", [1, 5, 5, 3])
    run = run_one_pass(b.model(), "fold-channel-add")
    assert run.operators == ["Conv", "Conv", "Transpose"]
    assert run.max_rel < 1e-5


def test_an_add_that_is_no_bias_stays() -> None:
    b = GraphBuilder(11)
    t = b.node("Conv", [b.input("x", [1, 4, 5, 5]), b.weight(6, 4, 1, 1)])
    b.node("Add", [t, b.constant(np.ones((1, 6, 5, 5), np.float32))], "y")
    b.output("y", [1, 6, 5, 5])
    assert run_one_pass(b.model(), "fold-channel-add").operators == ["Conv", "Add"]


def test_a_conv_behind_a_constant_add_gets_a_bias() -> None:
    b = GraphBuilder(11)
    t = b.node("Relu", [b.node("Add", [b.input("x", [1, 1, 5, 4]), b.weight(4)])])
    t = b.node("Conv", [b.node("Transpose", [t], perm=[0, 3, 1, 2]), b.weight(6, 4, 1, 1)])
    t = b.node("Transpose", [b.node("Add", [b.weight(5), t])], perm=[0, 3, 1, 2])
    b.node("Conv", [t, b.weight(3, 5, 1, 1)], "y")
    b.output("y", [1, 3, 6, 1])
    run = run_one_pass(b.model(), "fold-channel-add")
    assert [len(n.input) for n in run.model.graph.node if n.op_type == "Conv"] == [2, 3]
    assert run.max_rel == 0
