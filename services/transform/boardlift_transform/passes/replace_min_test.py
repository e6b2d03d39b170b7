import numpy as np

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_min_and_reduce_min_through_max() -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4, 3, 3])
    t = b.node("Min", [x, b.node("Sigmoid", [x]), b.constant(np.float32(0.4))])
    b.node("ReduceMin", [t], "y", axes=[1], keepdims=0)
    b.output("y", [1, 3, 3])
    run = run_one_pass(b.model(), "replace-min")
    assert not {"Min", "ReduceMin"} & set(run.operators)
    assert run.max_rel == 0
