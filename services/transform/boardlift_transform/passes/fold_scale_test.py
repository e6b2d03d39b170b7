from typing import Any

import numpy as np
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.edit_graph import Array
from boardlift_transform.run_one_pass import run_one_pass

HEADS, DEPTH, TOKENS = 2, 4, 5


class Attention(GraphBuilder):
    """Scores of two heads, with a factor where the test wants it."""

    def factor(self, where: str, wanted: str, x: str, op: str = "Mul", number: float = 0.5, shape: Any = ()) -> str:
        return self.node(op, [x, self.constant(np.full(shape, number, np.float32))]) if where == wanted else x

    def heads(self, x: str, bias: bool = True) -> str:
        width = HEADS * DEPTH
        more = [self.weight(width)] if bias else []
        return self.node(
            "Reshape",
            [self.node("Conv", [x, self.weight(width, 6, 1, 1), *more]), self.constant([-1, HEADS, DEPTH, TOKENS])],
        )


def _scores(where: str, bias: bool = True, **factor: Any) -> GraphBuilder:
    b = Attention(11, seed=4)
    x = b.input("x", [1, 6, 1, TOKENS])
    q = b.factor(where, "q", b.node("Transpose", [b.heads(x, bias)], perm=[0, 1, 3, 2]), **factor)
    k = b.factor(where, "k", b.heads(x, bias), **factor)
    scores = b.factor(where, "scores", b.node("MatMul", [q, k]), **factor)
    b.node("Softmax", [scores], "y", axis=3)
    b.output("y", [1, HEADS, TOKENS, TOKENS])
    return b


@pytest.mark.parametrize("where", ["q", "k", "scores"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("op", ["Mul", "Div"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1)])
def test_the_factor_of_an_attention_goes_into_a_projection(where: str, bias: bool, op: str, shape: Any) -> None:
    run = run_one_pass(_scores(where, bias, op=op, number=0.3, shape=shape).model(), "fold-scale")
    assert op not in run.operators and len(run.result.applied) == 1 and run.max_rel < 1e-5


def _conv(*after: tuple[str, Array], outputs: tuple[str, ...] = ("y",)) -> GraphBuilder:
    b = GraphBuilder(11)
    x = b.node("Conv", [b.input("x", [1, 3, 4, 4]), b.weight(5, 3, 1, 1)], "c")
    for number, (op, constant) in enumerate(after):
        x = b.node(op, [b.constant(constant), x] if op == "Mul" else [x, b.constant(constant)], f"s{number}")
    b.node("Relu", [x], "y")
    for output in outputs:
        b.output(output, [1, 5, 4, 4])
    return b


def test_factors_in_a_row_are_all_folded() -> None:
    run = run_one_pass(_conv(("Mul", np.float32(3)), ("Div", np.float32(7))).model(), "fold-scale")
    assert run.operators == ["Conv", "Relu"] and run.max_rel < 1e-5


@pytest.mark.parametrize(
    ("after", "outputs"),
    [
        (("Mul", np.ones((1, 5, 1, 1), np.float32)), ("y",)),  # a factor per channel
        (("Mul", np.float32(0)), ("y",)),
        (("Mul", np.float32(np.inf)), ("y",)),
        (("Div", np.float32(1e-45)), ("y",)),  # its reciprocal is no float32
        (("Mul", np.float32(2)), ("y", "c")),  # what is scaled is read elsewhere
        (("Mul", np.full((1, 1, 1, 1, 1), 2, np.float32)), ("y",)),  # one axis more
    ],
)
def test_other_products_are_left_alone(after: tuple[str, Array], outputs: tuple[str, ...]) -> None:
    b = _conv(after, outputs=outputs)
    if after[1].ndim == 5:
        b.outputs.clear()
        b.output("y")
    assert run_one_pass(b.model(), "fold-scale").operators == ["Conv", after[0], "Relu"]


def test_a_part_of_a_joint_projection_keeps_its_factor() -> None:
    b = GraphBuilder(11)
    joint = b.node("Conv", [b.input("x", [1, 3, 5, 4]), b.weight(6, 3, 1, 1)])
    b.node("Split", [joint], "p", outputs=2, axis=1, split=[2, 4])
    b.node("Concat", [b.node("Mul", ["p_0", b.constant(np.float32(0.25))]), "p_1"], "y", axis=1)
    b.output("y", [1, 6, 5, 4])
    assert run_one_pass(b.model(), "fold-scale").operators == ["Conv", "Split", "Mul", "Concat"]


def test_a_factor_on_the_other_side_of_an_activation_a_sum_or_two_readers_stays() -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 3, 4, 4])
    t = b.node("Conv", [x, b.weight(3, 3, 1, 1)])
    two = b.constant(np.float32(2))
    kept = [
        b.node("Mul", [b.node(op, [*args]), two]) for op, args in (("Relu", [t]), ("Add", [t, x]), ("MatMul", [t, t]))
    ]
    b.node("Concat", kept, "y", axis=1)
    b.output("y", [1, 9, 4, 4])
    assert run_one_pass(b.model(), "fold-scale").operators.count("Mul") == 3


def test_a_scaled_output_keeps_its_name_and_its_node() -> None:
    b = GraphBuilder(11)
    t = b.node("Conv", [b.input("x", [1, 3, 4, 4]), b.weight(3, 3, 1, 1)])
    b.node("Mul", [t, b.constant(np.float32(2))], "y")
    b.output("y", [1, 3, 4, 4])
    assert run_one_pass(b.model(), "fold-scale").operators == ["Conv", "Mul"]


@pytest.mark.parametrize("precision", ["int8", "int16"])
def test_every_plan_folds_the_scale_of_exported_attention(precision: str) -> None:
    b = GraphBuilder(17)
    x = b.input("x", ["n", TOKENS, 8])

    def heads(perm: list[int]) -> str:
        t = b.node("Add", [b.node("MatMul", [x, b.weight(8, 8)]), b.weight(8)])
        return b.node("Transpose", [b.node("Reshape", [t, b.constant([0, -1, HEADS, DEPTH])])], perm=perm)

    q = b.node("Mul", [heads([0, 2, 1, 3]), b.constant(np.float32(0.7))])  # as torch's dynamo exporter writes it
    k = b.node("Mul", [heads([0, 2, 3, 1]), b.constant(np.float32(0.7))])
    p = b.node("Softmax", [b.node("MatMul", [q, k])], axis=-1)
    b.node("MatMul", [p, heads([0, 2, 1, 3])], "y")
    b.output("y", ["n", HEADS, TOKENS, DEPTH])
    result = transform(b.model(), precision=precision, skip_passes=["matmul-to-products"])
    operators = [n.op_type for n in result.model.graph.node]
    assert not {"Mul", "Add"} & set(operators) and result.proof.batch == "proven"
