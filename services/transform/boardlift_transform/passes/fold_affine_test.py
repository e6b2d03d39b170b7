from typing import Any

import numpy as np
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def _model(
    *operators: str,
    kernel: int = 1,
    biases: tuple[bool, ...] = (True, False),
    constant: Any = (1, 6, 1, 1),
    **conv: Any,
) -> GraphBuilder:
    """Products or sums per channel, then a Conv per entry of `biases`."""
    b = GraphBuilder(11, seed=3)
    x = b.node("Relu", [b.input("x", [1, 6, 5, 4])])
    for number, operator in enumerate(operators):
        pair = [x, b.weight(*constant, scale=1)]
        x = b.node(operator, pair[:: (-1) ** number], f"a{number}")
    for number, bias in enumerate(biases):
        weights = [b.weight(6, 6 // conv.get("group", 1), kernel, kernel), *([b.weight(6, scale=1)] if bias else [])]
        b.output(b.node("Conv", [x, *weights], f"y{number}", **conv))
    return b


@pytest.mark.parametrize("operators", [("Mul", "Add"), ("Add", "Mul"), ("Mul",), ("Add",), ("Mul", "Add", "Mul")])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("constant", [(1, 6, 1, 1), (6, 1, 1), (1,)])
def test_factors_and_shifts_become_part_of_every_conv(operators: tuple[str, ...], kernel: int, constant: Any) -> None:
    run = run_one_pass(_model(*operators, kernel=kernel, constant=constant).model(), "fold-affine")
    assert run.operators == ["Relu", "Conv", "Conv"] and run.max_rel < 1e-5


@pytest.mark.parametrize(
    "given",
    [
        {"biases": (True,)},  # the tool folds it itself
        {"kernel": 3, "pads": [1, 1, 1, 1]},  # zeros around the map are not shifted
        {"kernel": 3, "auto_pad": "SAME_UPPER"},
        {"group": 2},
        {"constant": (1, 6, 1, 4)},  # per place
        {"constant": (5, 1)},
    ],
)
def test_other_readers_and_other_constants_are_left_alone(given: dict[str, Any]) -> None:
    model = _model("Mul", "Add", **given).model()
    assert run_one_pass(model, "fold-affine").operators == [n.op_type for n in model.graph.node]


def test_what_somebody_else_reads_stays() -> None:
    for extra in ("output", "reader"):
        b = _model("Mul", "Add")
        if extra == "reader":
            b.node("Sigmoid", ["a1"], "z")
        b.output("a1" if extra == "output" else "z", [1, 6, 5, 4])
        run = run_one_pass(b.model(), "fold-affine")
        assert not run.result.applied, extra
    b = GraphBuilder(11)
    x = b.node("Mul", [b.input("x", [1, 2, 1, 1]), b.constant(np.array([[[[np.inf]], [[1]]]], np.float32))])
    for name in ("y", "z"):
        b.output(b.node("Conv", [x, b.weight(2, 2, 1, 1)], name))
    assert not run_one_pass(b.model(), "fold-affine").result.applied


@pytest.mark.parametrize("precision", ["int8", "int16"])
def test_plans_fold_the_normalisation_in_front_of_queries_keys_and_values(precision: str) -> None:
    b = GraphBuilder(17)
    x = b.node("MatMul", [b.input("x", ["n", 5, 8]), b.weight(8, 8)])
    norm = b.node("LayerNormalization", [x, b.weight(8, scale=1), b.weight(8, scale=1)], axis=-1)
    q, k, v = (b.node("MatMul", [norm, b.weight(8, 8)]) for _ in range(3))
    p = b.node("Softmax", [b.node("MatMul", [q, b.node("Transpose", [k], perm=[0, 2, 1])])], axis=-1)
    b.node("MatMul", [p, v], "y")
    b.output("y", ["n", 5, 8])
    result = transform(b.model(), precision=precision, skip_passes=["matmul-to-products"])
    before = transform(b.model(), precision=precision, skip_passes=["matmul-to-products", "fold-affine"])
    counts = [[n.op_type for n in r.model.graph.node].count("Mul") for r in (before, result)]
    assert counts == [2, 1] and result.proof.batch == "proven"  # what is left is the square of the deviation
