from collections.abc import Callable

import numpy as np
import onnx
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass

LARGE = np.float32(-1e9)


def masked(mask: Callable[[GraphBuilder, str], str], opset: int = 12) -> onnx.ModelProto:
    """Attention over 5 tokens of 3 heads, with the mask that `mask` makes of `[1,5]` bools."""
    b = GraphBuilder(opset)
    scores, given = b.input("scores", [1, 3, 5, 5]), b.input("tokens", [1, 5])
    keep = mask(b, b.node("Greater", [given, b.constant(np.float32(0))]))
    bias = b.node("Where", [keep, b.constant(np.float32(0)), b.constant(LARGE)])
    b.node("Softmax", [b.node("Add", [scores, bias])], "y", axis=-1)
    b.output("y", [1, 3, 5, 5])
    return b.model()


def by_index(b: GraphBuilder, bools: str) -> str:
    """The TorchScript exporter's `mask[batch, position]`."""
    flat = b.node("Reshape", [bools, b.constant([5, 1])])
    taken = b.node("Gather", [flat, b.constant(np.arange(5).reshape(1, 1, 1, 5))], axis=0)
    row = b.node("Reshape", [taken, b.constant([1, 1, 1, 5])])
    square = b.node("And", [b.constant(np.ones((1, 1, 5, 1), bool)), row])
    return b.node("Expand", [square, b.constant([1, 1, 5, 5])])


def by_position(b: GraphBuilder, bools: str) -> str:
    """The dynamo exporter's."""
    places = np.stack([np.zeros(5, np.int64), np.arange(5)], -1).reshape(1, 1, 1, 5, 2)
    return b.node("And", [b.node("GatherND", [bools, b.constant(places)]), b.constant(np.ones((1, 1, 5, 1), bool))])


def by_element(b: GraphBuilder, bools: str) -> str:
    row = b.node("Reshape", [bools, b.constant([1, 1, 1, 5])])
    taken = b.node("GatherElements", [row, b.constant(np.arange(5).reshape(1, 1, 1, 5))], axis=-1)
    return b.node("Or", [taken, b.constant(np.zeros((1, 1, 5, 1), bool))])


@pytest.mark.parametrize("mask", [by_index, by_position, by_element])
def test_a_mask_of_all_tokens_stays_a_row(mask: Callable[[GraphBuilder, str], str]) -> None:
    run = run_one_pass(masked(mask), "simplify-masks")
    assert run.max_rel == 0
    assert set(run.operators) == {"Greater", "Reshape", "Where", "Add", "Softmax"}
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in run.model.graph.value_info}
    where = next(n for n in run.model.graph.node if n.op_type == "Where")
    assert shapes[where.output[0]] == [1, 1, 1, 5]


def causal(b: GraphBuilder, bools: str) -> str:
    row = b.node("Reshape", [bools, b.constant([1, 1, 1, 5])])
    return b.node("And", [row, b.constant(np.tril(np.ones((5, 5), bool)))])


def backwards(b: GraphBuilder, bools: str) -> str:
    taken = b.node("Gather", [bools, b.constant(np.arange(5)[::-1].copy())], axis=1)
    return b.node("Reshape", [taken, b.constant([1, 1, 1, 5])])


def shorter(b: GraphBuilder, bools: str) -> str:
    return b.node("Gather", [bools, b.constant([[[[0]]]])], axis=1)


@pytest.mark.parametrize("mask", [causal, backwards, shorter])
def test_a_mask_that_says_something_stays(mask: Callable[[GraphBuilder, str], str]) -> None:
    run = run_one_pass(masked(mask), "simplify-masks")
    assert not run.result.applied and run.max_rel == 0


def expanded(reader: str) -> onnx.ModelProto:
    b = GraphBuilder(12)
    wide = b.node("Expand", [b.input("x", [1, 4, 1, 1]), b.constant([1, 4, 6, 6])])
    other = b.input("z", [1, 4, 6, 6])
    if reader == "Softmax":
        b.node("Add", [b.node("Softmax", [wide], axis=-1), other], "y")
    elif reader == "output":
        b.node("Tanh", [wide], "y")
    elif reader == "branches":  # one of them grows again, the other ends in the smaller shape
        b.node("Add", [b.node("Relu", [wide]), other], "y")
        b.node("Conv", [b.node("Sigmoid", [wide]), b.weight(2, 4, 3, 3)], "w")
        b.output("w", [1, 2, 4, 4])
    else:
        b.node("Add", [b.node(reader, [wide, b.weight(4, 1, 1)]), other], "y")
    b.output("y", [1, 4, 6, 6])
    return b.model()


@pytest.mark.parametrize(
    "reader, gone", [("Mul", True), ("Max", True), ("Softmax", False), ("output", False), ("branches", False)]
)
def test_an_expand_goes_where_every_reader_broadcasts(reader: str, gone: bool) -> None:
    run = run_one_pass(expanded(reader), "simplify-masks")
    assert ("Expand" not in run.operators) == gone and run.max_rel == 0


def test_an_and_with_true_that_nothing_broadcasts_after_becomes_an_expand() -> None:
    b = GraphBuilder(12)
    keep = b.node("Greater", [b.input("x", [1, 1, 1, 5]), b.constant(np.float32(0))])
    square = b.node("And", [keep, b.constant(np.ones((1, 1, 5, 1), bool))])
    b.node("Softmax", [b.node("Cast", [square], to=onnx.TensorProto.FLOAT)], "y", axis=2)
    b.output("y", [1, 1, 5, 5])
    run = run_one_pass(b.model(), "simplify-masks")
    assert run.operators == ["Greater", "Expand", "Cast", "Softmax"] and run.max_rel == 0
