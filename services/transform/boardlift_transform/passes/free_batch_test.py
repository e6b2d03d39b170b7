import numpy as np

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def _targets(run: object) -> list[list[int]]:
    from onnx import numpy_helper

    model = run.model  # type: ignore[attr-defined]
    weights = {w.name: numpy_helper.to_array(w).tolist() for w in model.graph.initializer}
    return [weights[n.input[1]] for n in model.graph.node if n.op_type == "Reshape"]


def test_other_minus_ones_are_filled_before_the_batch_is_freed() -> None:
    b = GraphBuilder(11)
    t = b.node("Relu", [b.input("x", [1, 6, 4, 4])])
    t = b.node("Reshape", [t, b.constant([1, 2, -1, 4])])
    t = b.node("Reshape", [t, b.constant([0, 0, 48])])
    b.node("Unsqueeze", [t], "y", axes=[3])
    b.output("y", [1, 2, 48, 1])
    run = run_one_pass(b.model(), "free-batch")
    assert _targets(run) == [[-1, 2, 12, 4], [-1, 2, 48], [-1, 2, 48, 1]]
    assert run.max_rel == 0


def test_a_leading_one_that_is_not_the_batch_stays() -> None:
    b = GraphBuilder(11)
    t = b.node("Transpose", [b.input("x", [1, 6])], perm=[1, 0])
    b.node("Reshape", [t, b.constant([1, 2, 3])], "y")
    b.output("y", [1, 2, 3])
    run = run_one_pass(b.model(), "free-batch")
    assert _targets(run) == [[1, 2, 3]]
    assert run.result.skipped
    assert np.isfinite(run.max_rel)
