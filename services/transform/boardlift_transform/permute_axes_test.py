from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.edit_graph import Editor
from boardlift_transform.equivalence import Session
from boardlift_transform.permute_axes import can_permute, permute

PERM = [0, 3, 1, 2]


def single(op: str, *more: Any, outputs: int = 1, **attributes: Any) -> onnx.ModelProto:
    b = GraphBuilder(11)
    inputs = [b.input("x", [1, 2, 5, 6]), *(b.constant(np.asarray(m)) for m in more)]
    b.node(op, inputs, "y", outputs=outputs, **attributes)
    b.output("y" if outputs == 1 else "y_1")
    return onnx.shape_inference.infer_shapes(b.model())


CASES = {
    "Erf": single("Erf"),
    "Add": single("Add", np.arange(30, dtype=np.float32).reshape(5, 6)),
    "Mul": single("Mul", np.float32(2)),
    "ReduceSum": single("ReduceSum", axes=[1, -1]),
    "Concat": single("Concat", np.ones((1, 2, 1, 6), np.float32), axis=-2),
    "Split": single("Split", outputs=2, axis=1, split=[1, 1]),
    "Gather": single("Gather", [4, 0, 1], axis=2),
    "Slice": single("Slice", [1, 0], [5, 4], [-1, 2], [2, 1]),
}


@pytest.mark.parametrize("case", list(CASES))
def test_permuted_axes_give_the_permuted_result(case: str) -> None:
    x = np.random.default_rng(1).standard_normal((1, 2, 5, 6)).astype(np.float32)
    want = next(iter(Session(CASES[case].SerializeToString()).run({"x": x}).values()))
    model = ir.from_proto(CASES[case])
    node = next(iter(model.graph))
    assert can_permute(node)
    permute(node, PERM, Editor(model.graph, "test"))
    model.graph.inputs[0].shape = ir.Shape([[1, 2, 5, 6][p] for p in PERM])
    made = ir.to_proto(model)
    onnx.checker.check_model(made, full_check=True)
    got = next(iter(Session(made.SerializeToString()).run({"x": x.transpose(PERM)}).values()))
    assert np.abs(got - want.transpose(PERM)).max() < 1e-5


@pytest.mark.parametrize(
    "model",
    [
        single("Softmax", axis=3),
        single("ReduceSum", axes=[1], keepdims=0),
        single("Gather", np.asarray(1), axis=2),
        single("PRelu", np.ones((2, 1, 1), np.float32)),
        single("Transpose", perm=PERM),
    ],
    ids=lambda m: m.graph.node[0].op_type,
)
def test_what_it_cannot_express_is_left(model: onnx.ModelProto) -> None:
    assert not can_permute(next(iter(ir.from_proto(model).graph)))
