from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass

TO_CHANNELS, BACK = [0, 3, 1, 2], [0, 2, 3, 1]


class Tokens(GraphBuilder):
    """Values `[1,1,T,C]` between 1x1 convolutions, as `lift-to-4d` leaves them."""

    def linear(self, x: str, c_in: int, c_out: int) -> str:
        t = self.node("Transpose", [x], perm=TO_CHANNELS)
        t = self.node("Conv", [t, self.weight(c_out, c_in, 1, 1), self.weight(c_out)])
        return self.node("Transpose", [t], perm=BACK)

    def norm(self, x: str, c: int) -> str:
        d = self.node("Sub", [x, self.node("ReduceMean", [x], axes=[3])])
        v = self.node("ReduceMean", [self.node("Mul", [d, d])], axes=[-1])
        v = self.node("Sqrt", [self.node("Add", [v, self.constant(np.float32(1e-5))])])
        t = self.node("Mul", [self.node("Div", [d, v]), self.weight(c)])
        return self.node("Add", [t, self.weight(1, 1, 1, c)])


def between(op: str, *more: Any, width: int = 6, outputs: int = 1, **attributes: Any) -> onnx.ModelProto:
    """An operator on `[1,1,5,6]` between two linear layers; `width` features behind it."""
    b = Tokens(11)
    t = b.linear(b.input("x", [1, 1, 5, 6]), 6, 6)
    t = b.node(op, [t, *(b.constant(np.asarray(m)) for m in more)], outputs=outputs, **attributes)
    b.node("Relu", [b.linear(t, width, 4)], "y")
    b.output("y")
    return b.model()


def test_a_normalisation_between_linear_layers_needs_no_transpose() -> None:
    b = Tokens(11)
    x = b.input("x", [1, 1, 5, 6])
    t = b.linear(x, 6, 6)
    t = b.node("Add", [t, b.linear(b.norm(t, 6), 6, 6)])
    b.node("Reshape", [b.linear(b.norm(t, 6), 6, 4), b.constant([1, 5, 4, 1])], "y")
    b.output("y", [1, 5, 4, 1])
    run = run_one_pass(b.model(), "features-to-channels")
    assert len(run.result.applied) == 1
    assert run.operators.count("Conv") == 3, "no input is normalised, so none is anchored"
    merged = run_one_pass(run.model, "merge-moves")
    assert sum(n.op_type == "Transpose" for n in merged.model.graph.node) == 2  # of the input, and of the output
    assert {tuple(a.ints) for n in run.model.graph.node for a in n.attribute if a.name == "axes"} == {(1,)}
    assert run.max_rel < 1e-6


@pytest.mark.parametrize(
    "model",
    [
        between("Relu"),
        between("Add", np.arange(6, dtype=np.float32)),
        between("Mul", np.arange(5, dtype=np.float32).reshape(5, 1)),
        between("Clip", np.float32(-0.5), np.float32(0.5)),
        between("Slice", [1], [6], [3], [2], width=3),
        between("Gather", [0, 3], axis=3, width=2),
        between("Gather", [0, 3], axis=-2),
        between("Split", axis=3, outputs=2, split=[2, 4], width=2),
        between("ReduceMax", axes=[2]),
    ],
    ids=lambda m: m.graph.node[3].op_type,
)
def test_each_operator_moves_with_its_parameters(model: onnx.ModelProto) -> None:
    run = run_one_pass(model, "features-to-channels")
    assert len(run.result.applied) == 1
    assert run.max_rel < 1e-6
    left = run_one_pass(run.model, "merge-moves").operators
    assert left.count("Transpose") == 2


def test_a_joined_constant_moves_too() -> None:
    b = Tokens(11)
    t = b.linear(b.input("x", [1, 1, 5, 6]), 6, 6)
    t = b.node("Concat", [b.weight(1, 1, 1, 6), t], axis=2)
    b.node("Relu", [b.linear(t, 6, 4)], "y")
    b.output("y")
    run = run_one_pass(b.model(), "features-to-channels")
    assert len(run.result.applied) == 1 and run.max_rel == 0


def test_tokens_on_axis_one_go_to_axis_three() -> None:
    b = Tokens(11)
    t = b.node("Transpose", [b.input("x", [1, 6, 1, 5])], perm=[0, 3, 2, 1])
    t = b.node("Transpose", [b.norm(t, 6)], perm=[0, 3, 2, 1])
    b.node("Conv", [t, b.weight(4, 6, 1, 1)], "y")
    b.output("y")
    run = run_one_pass(b.model(), "features-to-channels")
    assert len(run.result.applied) == 1 and run.max_rel < 1e-6


@pytest.mark.parametrize("outside", ["input", "both", "window"])
def test_a_group_that_would_gain_nothing_stays(outside: str) -> None:
    b = Tokens(11)
    x = b.input("x", [1, 1, 5, 6])
    if outside == "input":
        b.node("Relu", [b.node("Softmax", [b.linear(b.node("Abs", [x]), 6, 4)], axis=3)], "y")
    elif outside == "both":
        b.node("Relu", [b.norm(x, 6)], "y")
    else:
        t = b.node("Relu", [b.linear(x, 6, 6)])
        b.node("Conv", [t, b.weight(2, 1, 3, 3)], "y")
    b.output("y")
    assert not run_one_pass(b.model(), "features-to-channels").result.applied


@pytest.mark.parametrize("first", [True, False])
def test_a_normalisation_at_one_end_moves_though_it_costs_a_transpose_there(first: bool) -> None:
    b = Tokens(11)
    x = b.input("x", [1, 1, 5, 6])
    t = b.linear(b.norm(x, 6), 6, 4) if first else b.norm(b.linear(x, 6, 6), 6)
    b.node("Softmax", [t], "y", axis=3)
    b.output("y")
    assert not run_one_pass(b.model(), "features-to-channels").result.applied  # too small to matter
    run = run_one_pass(b.model(), "features-to-channels", {"elements": 30})
    assert len(run.result.applied) == 1 and run.max_rel < 1e-6
    assert run.operators.count("Conv") == 1 + first  # times one: the tool would sink the input's Transpose else


def test_an_output_of_the_group_keeps_name_and_layout() -> None:
    b = Tokens(11)
    t = b.linear(b.input("x", [1, 1, 5, 6]), 6, 6)
    b.node("Relu", [t], "hidden")
    u = b.node("Add", [b.linear("hidden", 6, 6), b.linear("hidden", 6, 6)])
    b.node("Softmax", [b.linear(u, 6, 4)], "y", axis=3)
    b.output("hidden", [1, 1, 5, 6])
    b.output("y", [1, 1, 5, 4])
    run = run_one_pass(b.model(), "features-to-channels")
    assert run.result.applied and [o.name for o in run.model.graph.output] == ["hidden", "y"]
    assert run.max_rel < 1e-6


def test_an_output_that_the_group_reads_itself_stays_permuted_inside() -> None:
    b = Tokens(11)  # as an encoder's pooler reads the first token of the hidden states, which are an output as well
    t = b.linear(b.input("x", [1, 1, 5, 6]), 6, 6)
    b.node("Relu", [t], "hidden")
    first = b.node("Slice", ["hidden", b.constant([0]), b.constant([1]), b.constant([2])])
    b.node("Tanh", [b.linear(first, 6, 4)], "y")
    b.output("hidden", [1, 1, 5, 6])
    b.output("y", [1, 1, 1, 4])
    run = run_one_pass(b.model(), "features-to-channels", {"elements": 1})
    assert run.result.applied and [o.name for o in run.model.graph.output] == ["hidden", "y"]
    assert run.max_rel < 1e-6
