"""Gates: which defaults hold beside a job's own, and that no figure without a number ever passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from boardlift.v1 import job_pb2

from boardlift_orchestrator.build_test_facts import MEASURED, make_facts, make_results, make_spec
from boardlift_orchestrator.facts import VariantFacts
from boardlift_orchestrator.gates import FAIL, PASS, UNDECIDED, default_gates, judge_gate
from boardlift_orchestrator.verdict import judge_job

Gate = job_pb2.Gate
DEFAULTS = ["no_silent_fallback", "bit_exact", "board_matches_simulation"]


def facts(change: Callable[[dict[str, Any]], Any] | None = None) -> VariantFacts:
    results = make_results("v")
    if change:
        change(results)
    found: VariantFacts = make_facts(make_spec("v"), results)[1][0]
    return found


def add_output(results: dict[str, Any]) -> None:
    """A second output, which the board answers wrongly."""
    for name, stage in (("outputs", "simulate/v"), ("board_vs_quantized", "board/v"), ("board_vs_float", "board/v")):
        comparisons = getattr(results[stage], name)
        comparisons.add().CopyFrom(comparisons[0])
        comparisons[-1].output = "value"
    for figure in results["board/v"].board_vs_quantized[-1].figures:
        if figure.name == "max_abs":
            figure.value = 3.0


def test_a_limit_is_told_as_it_was_set() -> None:
    result = judge_gate(Gate(metric="cosine", minimum=0.9999999), facts())[0]
    assert result.outcome == FAIL and "is below 0.9999999 " in f"{result.reason} "


def named(*own: Gate, change: Callable[[dict[str, Any]], Any] | None = None) -> list[str]:
    gates = default_gates(facts(change), own)
    return [gate.metric + (f"@{gate.output}" if gate.output else "") for gate in gates]


def test_a_gate_of_the_job_on_one_output_leaves_the_default_for_the_others() -> None:
    own = Gate(metric="board_matches_simulation", maximum=0.5, output="actions")
    assert named() == DEFAULTS
    assert named(own) == DEFAULTS[:2]
    assert named(own, change=add_output) == [*DEFAULTS[:2], "board_matches_simulation@value"]
    assert named(Gate(metric="board_matches_simulation", maximum=0.5), change=add_output) == DEFAULTS[:2]
    assert named(Gate(metric="cosine", minimum=0.9, output="actions")) == DEFAULTS


def test_gates_that_know_no_outputs_replace_the_default_whole() -> None:
    assert named(Gate(metric="bit_exact", minimum=1, output="actions")) == [DEFAULTS[0], DEFAULTS[2]]


def test_an_own_gate_on_one_output_no_longer_hides_a_wrong_other_one() -> None:
    results = make_results("v")
    add_output(results)
    spec = make_spec("v", gates=[Gate(metric="board_matches_simulation", maximum=0.5, output="actions")])
    verdict = judge_job(spec, make_facts(spec, results)[1])
    assert verdict.outcome == FAIL
    assert [r.gate.output for r in verdict.variants[0].gates if r.outcome == FAIL] == ["value"]


def set_everywhere(value: float) -> Callable[[dict[str, Any]], None]:
    def change(results: dict[str, Any]) -> None:
        board = results["board/v"]
        board.board.simulated = False
        board.latency[0].stable = True
        comparisons = [*results["simulate/v"].outputs, *board.board_vs_float, *board.board_vs_quantized]
        for holder in (*comparisons, results["compile/v"], board.latency[0]):
            for figure in holder.figures:
                figure.value, figure.kind = value, MEASURED

    return change


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "gate",
    [
        Gate(metric="cosine", minimum=-1e300),
        Gate(metric="max_abs", maximum=1e300),
        Gate(metric="mean_abs", maximum=1e300),
        Gate(metric="estimated_latency_us", maximum=1e300),
        Gate(metric="board_p99_ms", maximum=1e300),
        Gate(metric="board_matches_simulation", maximum=1e300),
    ],
    ids=lambda gate: str(gate.metric) if isinstance(gate, Gate) else str(gate),
)
def test_a_figure_that_is_no_finite_number_fails_its_gate(gate: Gate, value: float) -> None:
    results = judge_gate(gate, facts(set_everywhere(value)))
    assert {result.outcome for result in results} == {FAIL}


def test_a_p99_without_a_number_fails_even_on_a_simulated_board() -> None:
    def change(results: dict[str, Any]) -> None:
        for figure in results["board/v"].latency[0].figures:
            figure.value = math.nan

    assert [r.outcome for r in judge_gate(Gate(metric="board_p99_ms", maximum=5), facts(change))] == [FAIL]


def test_a_missing_figure_stays_undecided() -> None:
    def change(results: dict[str, Any]) -> None:
        del results["simulate/v"].outputs[0].figures[:]

    outcomes = {r.outcome for r in judge_gate(Gate(metric="cosine", minimum=0.5), facts(change))}
    assert outcomes == {UNDECIDED, PASS}  # undecided for the simulation, pass for the board


def test_what_a_simulated_board_said_is_called_so() -> None:
    gate = Gate(metric="cosine", minimum=0.5)
    assert any("simulated board against float" in r.subject for r in judge_gate(gate, facts()))

    def real(results: dict[str, Any]) -> None:
        results["board/v"].board.simulated = False

    subjects = [r.subject for r in judge_gate(gate, facts(real))]
    assert any(": board against float" in text for text in subjects)
    assert not any("simulated board" in text for text in subjects)
