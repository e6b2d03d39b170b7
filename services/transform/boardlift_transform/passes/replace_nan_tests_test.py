import numpy as np
import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass
from boardlift_transform.transform_model import transform

EDGES = np.asarray([[0, -1, np.nan, np.inf, -np.inf, 3e38]], np.float32)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [("IsNaN", {}), ("IsInf", {}), ("IsInf", {"detect_negative": 0}), ("IsInf", {"detect_positive": 0})],
)
def test_tests_become_comparisons(operator: str, attributes: dict[str, int]) -> None:
    b = GraphBuilder(11)
    b.node(operator, [b.input("x", [1, 6])], "y", **attributes)
    b.output("y", [1, 6], TensorProto.BOOL)
    run = run_one_pass(b.model(), "replace-nan-tests", samples=[{"x": EDGES}])
    assert operator not in run.operators and run.max_rel == 0


def test_the_guard_of_masked_attention_goes() -> None:
    b = GraphBuilder(17)
    mask = b.constant(np.triu(np.full((4, 4), -np.inf, np.float32), 1))
    t = b.node("MatMul", [b.input("x", [1, 4, 8]), b.weight(8, 4)])
    s = b.node("Softmax", [b.node("Add", [t, mask])], axis=-1)
    t = b.node("Where", [b.node("IsNaN", [s]), b.constant(np.float32(0)), s])
    b.node("MatMul", [t, b.weight(4, 3)], "y")
    b.output("y", [1, 4, 3])
    result = transform(b.model())
    assert not {n.op_type for n in result.model.graph.node} & {"IsNaN", "Where", "Equal"}
    assert result.proof.passed
