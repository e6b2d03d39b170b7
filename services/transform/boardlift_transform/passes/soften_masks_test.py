from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass

Mask = Callable[[GraphBuilder, str, float], str]


def keep_of(b: GraphBuilder, tokens: str) -> str:
    """bool `[1,1,1,5]`, and never all false."""
    first = b.constant(np.asarray([1, 0, 0, 0, 0], bool).reshape(1, 1, 1, 5))
    positive = b.node("Greater", [tokens, b.constant(np.float32(0))])
    return b.node("Or", [b.node("Reshape", [positive, b.constant([1, 1, 1, 5])]), first])


def chosen(b: GraphBuilder, tokens: str, depth: float) -> str:
    """The mask of newer encoders."""
    return b.node("Where", [keep_of(b, tokens), b.constant(np.float32(0)), b.constant(np.float32(-depth))])


def multiplied(b: GraphBuilder, tokens: str, depth: float) -> str:
    """The mask of older ones: (1 - mask) * -10000."""
    keep = b.node("Cast", [b.node("Cast", [keep_of(b, tokens)], to=7)], to=1)
    return b.node("Mul", [b.node("Sub", [b.constant(np.float32(1)), keep]), b.constant(np.float32(-depth))])


def scaled(b: GraphBuilder, tokens: str, depth: float) -> str:
    """No mask: any float times a large number."""
    return b.node("Mul", [b.node("Reshape", [tokens, b.constant([1, 1, 1, 5])]), b.constant(np.float32(-depth))])


def masked(mask: Mask, depth: float, end: str = "Softmax", filled: bool = False) -> PassRun:
    b = GraphBuilder(12)
    scores, tokens = b.input("scores", [1, 3, 5, 5]), b.input("tokens", [1, 5])
    if filled:
        t = b.node("Where", [keep_of(b, tokens), scores, b.constant(np.float32(-depth))])
    else:
        t = b.node("Add", [scores, mask(b, tokens, depth)])
    b.node(end, [t], "y", axis=-1)
    b.output("y", [1, 3, 5, 5])
    return run_one_pass(b.model(), "soften-masks")


def deepest(model: onnx.ModelProto) -> float:
    return min(float(np.min(numpy_helper.to_array(w).astype(np.float64))) for w in model.graph.initializer)


@pytest.mark.parametrize("depth", [1e4, 1e9])
@pytest.mark.parametrize("mask, filled", [(chosen, False), (multiplied, False), (chosen, True)])
def test_a_computed_mask_leaves_the_scores_their_steps(mask: Mask, filled: bool, depth: float) -> None:
    run = masked(mask, depth, filled=filled)
    assert len(run.result.applied) == 1 and deepest(run.model) == -500
    assert run.max_rel < 1e-6


@pytest.mark.parametrize(
    "mask, depth, end", [(scaled, 1e4, "Softmax"), (chosen, 400, "Softmax"), (chosen, 1e4, "LogSoftmax")]
)
def test_what_is_no_mask_or_shows_stays(mask: Mask, depth: float, end: str) -> None:
    run = masked(mask, depth, end)
    assert not run.result.applied and deepest(run.model) == -depth


def test_a_mask_that_something_else_reads_stays() -> None:
    b = GraphBuilder(12)
    mask = chosen(b, b.input("tokens", [1, 5]), 1e4)
    b.node("Softmax", [b.node("Add", [b.input("scores", [1, 3, 5, 5]), mask])], "y", axis=-1)
    b.node("Tanh", [mask], "z")
    b.output("y", [1, 3, 5, 5])
    b.output("z", [1, 1, 1, 5])
    assert not run_one_pass(b.model(), "soften-masks").result.applied
