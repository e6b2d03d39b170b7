"""An output with a value that is no number fails every gate on it: from the board's arrays to the gate's outcome."""

import math

import numpy as np
import pytest
from boardlift.v1 import board_agent_pb2, compiler_pb2, job_pb2
from boardlift_board_agent.compare_outputs import compare_all, compare_output
from boardlift_board_agent.convert import comparison_message
from boardlift_board_agent.three_way import locate_divergence
from boardlift_orchestrator.facts import VariantFacts
from boardlift_orchestrator.gates import FAIL, PASS, judge_gate

Gate = job_pb2.Gate
RIGHT = np.random.default_rng(3).normal(size=(4, 6)).astype(np.float32)
GATES = [
    Gate(metric="cosine", minimum=-2.0),
    Gate(metric="max_abs", maximum=1e30),
    Gate(metric="mean_abs", maximum=1e30),
    Gate(metric="board_matches_simulation", maximum=1e30),
]


def facts_of(outputs: np.ndarray) -> VariantFacts:
    """What the orchestrator knows after a board gave these outputs and the simulation gave the right ones."""
    differences, complaints = compare_all({"y": outputs}, {"y": RIGHT}, len(RIGHT))
    assert not complaints
    messages = [comparison_message(item, False, "board") for item in differences]
    board = board_agent_pb2.RunResult(board_vs_float=messages, board_vs_quantized=messages)
    equal = comparison_message(compare_output("y", RIGHT, RIGHT), True, "simulation")
    simulated = compiler_pb2.SimulateResult(outputs=[equal])
    return VariantFacts(spec=compiler_pb2.VariantSpec(name="v"), stages={}, simulated=simulated, board=board)


def outcomes(gate: Gate, facts: VariantFacts) -> list[int]:
    return [item.outcome for item in judge_gate(gate, facts)]


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.metric)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_bad_value_in_the_last_sample_fails_the_gate(gate: Gate, bad: float) -> None:
    outputs = RIGHT.copy()
    assert set(outcomes(gate, facts_of(outputs))) == {PASS}
    outputs[-1, 2] = bad
    assert FAIL in outcomes(gate, facts_of(outputs))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_three_way_check_blames_the_board_for_it(bad: float) -> None:
    outputs = RIGHT.copy()
    outputs[-1, 2] = bad
    difference = [compare_output("y", outputs, RIGHT)]
    assert [item.code for item in locate_divergence(difference, difference, ())] == ["BOARD_DIFFERS_FROM_QUANTIZED"]
