from dataclasses import replace

import numpy as np
import pytest

from boardlift_transform import plan
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.lift.cells import GATES
from boardlift_transform.run_one_pass import run_one_pass
from boardlift_transform.transform_model import transform


def _recurrent(operator: str, steps: int, direction: str, states: bool = True, **attributes: int) -> GraphBuilder:
    """X [T,1,5], hidden 4, all outputs read."""
    b, gates, ways = GraphBuilder(11), GATES[operator], 2 if direction == "bidirectional" else 1
    inputs = [b.input("x", [steps, 1, 5]), b.weight(ways, gates * 4, 5), b.weight(ways, gates * 4, 4)]
    inputs += [b.weight(ways, gates * 8), ""]
    count = 2 if operator == "LSTM" else 1
    if states:
        inputs += [b.input(f"h{i}", [ways, 1, 4]) for i in range(count)]
    b.node(operator, inputs, "y", outputs=count + 1, hidden_size=4, direction=direction, **attributes)
    for i in range(count + 1):
        b.output(f"y_{i}", [steps, ways, 1, 4] if i == 0 else [ways, 1, 4])
    return b


@pytest.mark.parametrize("operator", list(GATES))
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("states", [True, False])
def test_unrolled_equals_the_operator(operator: str, direction: str, steps: int, states: bool) -> None:
    for more in ({}, {"linear_before_reset": 1}) if operator == "GRU" else ({},):
        run = run_one_pass(_recurrent(operator, steps, direction, states, **more).model(), "unroll-recurrent")
        assert operator not in run.operators and "Gemm" in run.operators + ["Gemm"] * (not states and steps == 1)
        assert run.max_rel < 1e-6


def test_long_sequences_and_other_activations_stay() -> None:
    run = run_one_pass(_recurrent("GRU", 65, "forward").model(), "unroll-recurrent")
    assert "GRU" in run.operators
    b = _recurrent("RNN", 2, "forward", activations=["Affine"])  # type: ignore[arg-type]
    assert "RNN" in run_one_pass(b.model(), "unroll-recurrent").operators


@pytest.mark.parametrize("operator", ["GRU", "LSTM"])
@pytest.mark.parametrize("steps", [1, 6])
def test_a_recurrent_policy_keeps_the_batch_where_it_is_asked_for(
    operator: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    b, gates = GraphBuilder(17), GATES[operator]
    x, h = b.input("obs", ["batch", steps, 7]), b.input("h", [1, "batch", 8])
    t = b.node("Transpose", [x], perm=[1, 0, 2])
    more = [b.input("c", [1, "batch", 8])] if operator == "LSTM" else []
    weights = [b.weight(1, gates * 8, n) for n in (7, 8)]
    t = b.node(operator, [t, *weights, b.weight(1, gates * 16), "", h, *more], "r", outputs=2, hidden_size=8)
    t = b.node("Transpose", [b.node("Squeeze", [t, b.constant([1])])], perm=[1, 0, 2])
    t = b.node("Gather", [t, b.constant(np.asarray(-1))], axis=1)
    t = b.node("Add", [t, b.node("Gather", ["r_1", b.constant(np.asarray(-1))], axis=0)])
    b.node("Gemm", [t, b.weight(3, 8), b.weight(3)], "action", transB=1)
    b.output("action", ["batch", 3])
    b.output("r_1", [1, "batch", 8])
    assert transform(b.model()).proof.batch == "literal"
    all_of_them = {"when": lambda _: True, "parameters": lambda _: {"operators": sorted(GATES)}}
    steps = [replace(step, **all_of_them) if step.id == "unroll-recurrent" else step for step in plan.STEPS]
    monkeypatch.setattr(plan, "STEPS", tuple(steps))
    result = transform(b.model())
    assert result.proof.batch == "proven"
    assert not {n.op_type for n in result.model.graph.node} & set(GATES)


def test_a_plan_unrolls_rnn_only() -> None:
    for operator, gone in (("RNN", True), ("GRU", False), ("LSTM", False)):
        left = [n.op_type for n in transform(_recurrent(operator, 3, "forward").model()).model.graph.node]
        assert (operator not in left) is gone
