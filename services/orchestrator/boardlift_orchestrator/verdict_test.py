"""Verdicts: tables of gates, fail-closed, and the choice of the best variant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from boardlift.v1 import job_pb2, toolchain_pb2

from boardlift_orchestrator.build_test_facts import MEASURED, make_facts, make_results, make_spec
from boardlift_orchestrator.gates import _JUDGES, FAIL, PASS, UNDECIDED
from boardlift_orchestrator.record import Failure
from boardlift_orchestrator.validate import METRICS
from boardlift_orchestrator.verdict import judge_job

Gate = job_pb2.Gate


def judge(*gates: Gate, change: Callable[[dict[str, Any]], Any] | None = None, **fields: Any) -> job_pb2.Verdict:
    spec = make_spec("v", gates=gates, **fields)
    results = make_results("v")
    if fields.get("skip_board"):
        del results["board/v"]
    if change:
        change(results)
    return judge_job(spec, make_facts(spec, results)[1])


def real_board(results: dict[str, Any], stable: bool = True, p99: float = 0.3) -> None:
    board = results["board/v"]
    board.board.simulated = False
    board.latency[0].stable = stable
    for figure in board.latency[0].figures:
        figure.kind = MEASURED
        if figure.name == "p99_ms":
            figure.value = p99


def test_a_healthy_variant_passes_without_gates() -> None:
    verdict = judge()
    assert verdict.outcome == PASS
    assert verdict.best_variant == "v"
    assert [item.gate.metric for item in verdict.variants[0].gates] == [
        "no_silent_fallback",
        "bit_exact",
        "board_matches_simulation",
    ]


@pytest.mark.parametrize(
    ("gate", "outcome"),
    [
        (Gate(metric="cosine", minimum=0.99), PASS),
        (Gate(metric="cosine", minimum=0.9999), FAIL),
        (Gate(metric="cosine", minimum=0.99, output="actions"), PASS),
        (Gate(metric="cosine", minimum=0.99, output="value"), UNDECIDED),
        (Gate(metric="max_abs", maximum=0.02), PASS),
        (Gate(metric="max_abs", maximum=0.001), FAIL),
        (Gate(metric="mean_abs", maximum=0.02), PASS),
        (Gate(metric="estimated_latency_us", maximum=100.0), PASS),
        (Gate(metric="estimated_latency_us", maximum=99.9), FAIL),
        (Gate(metric="cpu_nodes", maximum=1), PASS),
        (Gate(metric="cpu_nodes", maximum=0), FAIL),
        (Gate(metric="bit_exact", minimum=1), PASS),
        (Gate(metric="no_silent_fallback", maximum=0), PASS),
        (Gate(metric="board_matches_simulation", maximum=0), PASS),
        (Gate(metric="board_p99_ms", maximum=5), UNDECIDED),  # simulated latency decides nothing
        (Gate(metric="board_p99_ms", maximum=0.01), UNDECIDED),
    ],
)
def test_gates_on_a_simulated_board(gate: Gate, outcome: int) -> None:
    assert judge(gate).outcome == outcome


def test_every_metric_has_a_judge() -> None:
    assert set(_JUDGES) == set(METRICS)


@pytest.mark.parametrize(
    ("stable", "p99", "outcome"),
    [(True, 0.3, PASS), (True, 7.0, FAIL), (False, 0.3, UNDECIDED), (True, math.nan, FAIL)],
)
def test_p99_is_judged_on_a_real_board_only_when_it_settled(stable: bool, p99: float, outcome: int) -> None:
    gate = Gate(metric="board_p99_ms", maximum=5)
    assert judge(gate, change=lambda results: real_board(results, stable, p99)).outcome == outcome


def clear_outputs(results: dict[str, Any]) -> None:
    del results["simulate/v"].outputs[:]
    del results["board/v"].board_vs_float[:]


def not_a_number(results: dict[str, Any]) -> None:
    results["simulate/v"].outputs[0].figures[0].value = math.nan


def infinite(results: dict[str, Any]) -> None:
    figures = results["simulate/v"].outputs[0].figures
    next(figure for figure in figures if figure.name == "max_abs").value = math.inf


def bits_differ(results: dict[str, Any]) -> None:
    simulated = results["simulate/v"]
    simulated.bit_exact = False
    simulated.bit_checks[0].equal = False
    simulated.bit_checks[0].different_elements = 3


def bits_not_compared(results: dict[str, Any]) -> None:
    simulated = results["simulate/v"]
    simulated.bit_exact = False
    simulated.bit_checks.add(subgraph="g1", tensor="u", not_compared="the quantised model has no tensor u")


def board_leaves_an_output_out(results: dict[str, Any]) -> None:
    results["simulate/v"].outputs.add().CopyFrom(results["simulate/v"].outputs[0])
    results["simulate/v"].outputs[1].output = "value"


def silent_fallback(results: dict[str, Any]) -> None:
    results["compile/v"].findings.add(
        code="SILENT_INT8",
        severity=toolchain_pb2.Finding.SEVERITY_ERROR,
        message="int16 was dropped",
        remedy="Split it.",
    )


def warn_only(results: dict[str, Any]) -> None:
    results["compile/v"].findings.add(code="SLOW", severity=toolchain_pb2.Finding.SEVERITY_WARNING)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (clear_outputs, UNDECIDED),
        (not_a_number, FAIL),
        (bits_differ, FAIL),
        (bits_not_compared, UNDECIDED),
        (lambda results: results["simulate/v"].ClearField("bit_checks"), UNDECIDED),
        (lambda results: setattr(results["simulate/v"], "bit_exact", False), UNDECIDED),
        (silent_fallback, FAIL),
        (board_leaves_an_output_out, UNDECIDED),
        (warn_only, PASS),
        (lambda results: setattr(results["board/v"].board_vs_quantized[0].figures[0], "value", 0.5), FAIL),
        (lambda results: results["board/v"].ClearField("board_vs_quantized"), UNDECIDED),
        (lambda results: setattr(results["board/v"], "engine", "runtime"), UNDECIDED),
        (lambda results: setattr(results["board/v"], "engine", ""), UNDECIDED),
        (lambda results: setattr(results["board/v"].board_vs_float[0].figures[0], "value", 0.5), FAIL),
    ],
)
def test_missing_or_bad_evidence_never_passes(change: Callable[[dict[str, Any]], Any], outcome: int) -> None:
    assert judge(Gate(metric="cosine", minimum=0.99), change=change).outcome == outcome


def test_an_infinite_error_fails_its_gate() -> None:
    assert judge(Gate(metric="max_abs", maximum=1e6)).outcome == PASS
    assert judge(Gate(metric="max_abs", maximum=1e6), change=infinite).outcome == FAIL


def test_leaving_the_board_out_can_pass_but_says_so() -> None:
    verdict = judge(skip_board=True)
    assert verdict.outcome == PASS
    assert any("left out" in reason for reason in verdict.reasons)
    assert judge(Gate(metric="board_matches_simulation"), skip_board=True).outcome == UNDECIDED
    assert judge(Gate(metric="board_p99_ms", maximum=1), skip_board=True).outcome == UNDECIDED


def test_a_refused_stage_fails_the_variant_with_reason_and_remedy() -> None:
    spec = make_spec("v")
    results = {key: value for key, value in make_results("v").items() if key in ("ingest/", "transform/", "check/")}
    failure = Failure(
        "OPSET_TOO_HIGH", "Opset 18.", user_fault=True, remedy="Lower the opset.", transform_pass="convert-opset"
    )
    verdict = judge_job(spec, make_facts(spec, results, {"compile/v": failure})[1])
    assert verdict.outcome == FAIL
    assert verdict.variants[0].reasons == ["compile said no: OPSET_TOO_HIGH: Opset 18."]
    assert verdict.next_steps[:2] == ["Lower the opset.", "Let the transform run the pass convert-opset."]


def test_a_tool_that_broke_leaves_the_variant_undecided() -> None:
    spec = make_spec("v", "w")
    results = make_results("w")
    verdict = judge_job(spec, make_facts(spec, results, {"compile/v": Failure("TOOL_KILLED", "Killed.")})[1])
    assert [item.outcome for item in verdict.variants] == [UNDECIDED, PASS]
    assert verdict.variants[0].reasons == ["compile broke: TOOL_KILLED: Killed."]


def test_a_refused_dataset_fails_every_variant() -> None:
    spec = make_spec("v", "w")
    verdict = judge_job(
        spec, make_facts(spec, {}, {"ingest/": Failure("DATASET_EMPTY", "No samples.", user_fault=True)})[1]
    )
    assert verdict.outcome == FAIL
    assert [item.outcome for item in verdict.variants] == [FAIL, FAIL]


@pytest.mark.parametrize(("goal", "best"), [("", "fast"), ("latency", "fast"), ("accuracy", "exact")])
def test_the_best_variant_is_chosen_by_the_goal(goal: str, best: str) -> None:
    spec = make_spec("exact", "fast", "wrong", goal=goal, gates=[Gate(metric="cosine", minimum=0.99)])
    results = {
        **make_results("exact", cosine=0.9999, latency_us=200),
        **make_results("fast", cosine=0.995, latency_us=100),
        **make_results("wrong", cosine=0.5, latency_us=10),
    }
    verdict = judge_job(spec, make_facts(spec, results)[1])
    assert verdict.outcome == PASS
    assert verdict.best_variant == best
    assert any("wrong fails" in reason for reason in verdict.reasons)


def test_advice_points_to_int16_when_int8_is_not_accurate_enough() -> None:
    verdict = judge(Gate(metric="cosine", minimum=0.99999))
    assert any("int16" in step for step in verdict.next_steps)
    assert any("real board" in step for step in verdict.next_steps)


def test_findings_of_the_check_are_advised_when_nodes_stay_on_the_cpu() -> None:
    def remedy(results: dict[str, Any]) -> None:
        results["check/"].findings.add(code="CPU_NODE", remedy="Replace the Softmax.")

    assert "Replace the Softmax." in judge(Gate(metric="cpu_nodes", maximum=0), change=remedy).next_steps


def test_key_figures_carry_their_kinds() -> None:
    figures = {figure.name: figure.kind for figure in judge().variants[0].figures}
    assert figures["estimated_latency_us"] == toolchain_pb2.FIGURE_KIND_ESTIMATED
    assert figures["cosine"] == toolchain_pb2.FIGURE_KIND_SIMULATED
    assert 0 not in figures.values()


@pytest.mark.parametrize("position", [0, 1])
def test_the_worst_figure_over_outputs_is_the_one_that_is_no_number(position: int) -> None:
    def two_outputs(results: dict[str, Any]) -> None:
        outputs = results["simulate/v"].outputs
        outputs.add().CopyFrom(outputs[0])
        for figure in outputs[position].figures:
            figure.value = math.nan

    figures = {figure.name: figure.value for figure in judge(change=two_outputs).variants[0].figures}
    assert math.isnan(figures["cosine"]) and math.isnan(figures["max_abs"])


def test_no_compile_result_is_never_a_pass() -> None:
    verdict = judge(change=lambda results: [results.pop(key) for key in ("compile/v", "simulate/v", "board/v")])
    assert verdict.outcome != PASS


def fell_back(results: dict[str, Any]) -> None:
    error = toolchain_pb2.Finding.SEVERITY_ERROR
    results["compile/v"].findings.add(code="INT16_FELL_BACK", severity=error, message="pool in int8", subject="pool")


def fell_back_and_worse(results: dict[str, Any]) -> None:
    fell_back(results)
    silent_fallback(results)


@pytest.mark.parametrize(
    ("maximum", "change", "outcome"),
    [(0, fell_back, FAIL), (1, fell_back, PASS), (5, fell_back_and_worse, FAIL)],
)
def test_a_job_may_accept_fallbacks_but_no_other_error(
    maximum: int, change: Callable[[dict[str, Any]], Any], outcome: int
) -> None:
    assert judge(Gate(metric="no_silent_fallback", maximum=maximum), change=change).outcome == outcome


def test_a_reason_names_what_broke_once() -> None:
    (found,) = judge(Gate(metric="cosine", minimum=0.9999)).variants[0].reasons[:1]
    assert found.startswith("cosine 0.999 is below 0.9999 (")
    (found,) = judge(Gate(metric="estimated_latency_us", maximum=50)).variants[0].reasons
    assert found.startswith("estimated_latency_us 100 us is above 50")


def no_model(results: dict[str, Any]) -> None:
    results["compile/v"].failure.code = "OPERATOR_REFUSED"


def test_a_compile_that_made_nothing_has_no_passed_gate() -> None:
    (variant,) = judge(Gate(metric="cpu_nodes", maximum=3), change=no_model).variants
    found = {item.gate.metric: (item.outcome, item.reason) for item in variant.gates}
    assert found["cpu_nodes"] == found["no_silent_fallback"] == (UNDECIDED, "nothing was compiled")


def test_undecided_is_said_once_and_only_beside_failures() -> None:
    on_board = Gate(metric="board_p99_ms", maximum=1)
    verdict = judge(on_board)
    assert verdict.outcome == UNDECIDED
    assert verdict.reasons[0].startswith("v is undecided: board_p99_ms: only a real board")
    (variant,) = judge(on_board, Gate(metric="cosine", minimum=1.5)).variants
    assert variant.outcome == FAIL and variant.reasons[-1].startswith("undecided: board_p99_ms: ")
