"""Judge one gate for one variant. Pure, and fail-closed.

A figure that is missing, not finite or not of the needed kind never passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from boardlift.v1 import job_pb2, toolchain_pb2

from boardlift_orchestrator.facts import VariantFacts, find_figure, make_figure, single_thread_latency

PASS: Final = job_pb2.Verdict.OUTCOME_PASS
FAIL: Final = job_pb2.Verdict.OUTCOME_FAIL
UNDECIDED: Final = job_pb2.Verdict.OUTCOME_UNDECIDED
MEASURED: Final = toolchain_pb2.FIGURE_KIND_MEASURED
SIMULATED: Final = toolchain_pb2.FIGURE_KIND_SIMULATED
BOARD_TOLERANCE: Final = 1e-4
"""Largest difference between board and quantised model that counts as equal: rounding of the last dequantisation."""
_BY_OUTPUT: Final = ("cosine", "max_abs", "mean_abs", "board_matches_simulation")
Gate = job_pb2.Gate
GateResult = job_pb2.GateResult


def default_gates(facts: VariantFacts, own: Sequence[Gate] = ()) -> list[Gate]:
    """Return the gates that hold for every variant where the job sets none of its own.

    A gate of the job's on one output takes the default's place for that output only.
    """
    whole = {gate.metric for gate in own if not gate.output or gate.metric not in _BY_OUTPUT}
    gates = [Gate(metric=name) for name in ("no_silent_fallback", "bit_exact") if name not in whole]
    if facts.board_skipped or "board_matches_simulation" in whole:
        return gates
    named = {gate.output for gate in own if gate.metric == "board_matches_simulation"}
    if not named:
        return [*gates, Gate(metric="board_matches_simulation")]
    left = sorted(_outputs(facts) - named)
    return [*gates, *(Gate(metric="board_matches_simulation", output=name) for name in left)]


def _outputs(facts: VariantFacts) -> set[str]:
    """Return the names of all outputs that anything was compared for."""
    simulated = facts.simulated.outputs if facts.simulated is not None else ()
    board = facts.board.board_vs_quantized if facts.board is not None else ()
    return {item.output for item in (*simulated, *board)}


def judge_gate(gate: Gate, facts: VariantFacts) -> list[GateResult]:
    """Judge a gate; it gives one result per output and comparison it is about, and at least one."""
    return _JUDGES[gate.metric](gate, facts)


def worst_outcome(outcomes: list[job_pb2.Verdict.Outcome]) -> job_pb2.Verdict.Outcome:
    """Return fail if any failed, else undecided if any is undecided or there is none, else pass."""
    if FAIL in outcomes:
        return FAIL
    return UNDECIDED if UNDECIDED in outcomes or not outcomes else PASS


def _accuracy(gate: Gate, facts: VariantFacts) -> list[GateResult]:
    """Quantised model against float on held-out samples, and the board against float where it ran."""
    if facts.simulated is None:
        return [_undecided(gate, "there is no simulation to judge by")]
    compared = [("quantised model against float", item) for item in facts.simulated.outputs]
    if facts.board is not None:
        where = "simulated board" if facts.board.board.simulated else "board"
        compared += [(f"{where} against float", item) for item in facts.board.board_vs_float]
    chosen = [(what, item) for what, item in compared if gate.output in ("", item.output)]
    if not chosen:
        return [_undecided(gate, f"there is no output {gate.output}" if gate.output else "no output was compared")]
    return [
        _limit(gate, find_figure(item.figures, gate.metric), f"{item.output}: {what}, {item.samples} samples")
        for what, item in chosen
    ]


def _estimated_latency(gate: Gate, facts: VariantFacts) -> list[GateResult]:
    figure = find_figure(facts.compiled.figures, "estimated_latency_us") if facts.compiled is not None else None
    return [_limit(gate, figure, "compiler's static estimate")]


def _board_p99(gate: Gate, facts: VariantFacts) -> list[GateResult]:
    latency = single_thread_latency(facts.board)
    figure = find_figure(latency.figures, "p99_ms") if latency is not None else None
    if figure is None:
        why = "the board stage was left out" if facts.board_skipped else "the board gave no p99"
        return [_undecided(gate, why)]
    where = "simulated board" if facts.board.board.simulated else "board"
    subject = f"{where} {facts.board.board.id}, {latency.threads} thread(s)"
    if not math.isfinite(figure.value):
        return [_limit(gate, figure, subject)]
    if figure.kind != MEASURED or facts.board.board.simulated:
        return [_undecided(gate, "only a real board can decide this; the figure was not measured", figure, subject)]
    if not latency.stable:
        return [_undecided(gate, "the measurement did not settle", figure, subject)]
    return [_limit(gate, figure, subject)]


def _cpu_nodes(gate: Gate, facts: VariantFacts) -> list[GateResult]:
    if not facts.built:
        return [_undecided(gate, "nothing was compiled")]
    figure = make_figure("cpu_nodes", facts.compiled.cpu_nodes, "1", MEASURED, "compiler's node table")
    return [_limit(gate, figure, "nodes on the CPU")]


def _bit_exact(gate: Gate, facts: VariantFacts) -> list[GateResult]:
    subject = "compiled code against quantised model"
    if facts.simulated is None or not facts.simulated.bit_checks:
        return [_undecided(gate, "no BPU subgraph was compared bit by bit", subject=subject)]
    unequal = [check for check in facts.simulated.bit_checks if not check.equal]
    bad = [check for check in unequal if not check.not_compared]
    figure = make_figure("bit_exact", 0.0 if bad else 1.0, "1", SIMULATED, "vendor's simulator")
    if not bad and facts.simulated.bit_exact:
        return [_result(gate, PASS, "every integer is equal", figure, subject)]
    if not bad and unequal:
        why = f"{unequal[0].tensor} of {unequal[0].subgraph} was not compared: {unequal[0].not_compared}"
        return [_undecided(gate, why, subject=subject)]
    if not bad:
        return [_undecided(gate, "the simulation says neither yes nor no", figure, subject)]
    first = bad[0]
    reason = f"{first.tensor} of {first.subgraph} differs in {first.different_elements} elements"
    return [_result(gate, FAIL, f"{reason}, first {first.first_difference or 'not named'}", figure, subject)]


def _no_silent_fallback(gate: Gate, facts: VariantFacts) -> list[GateResult]:
    if not facts.built:
        return [_undecided(gate, "nothing was compiled")]
    errors = facts.errors()
    figure = make_figure("error_findings", float(len(errors)), "1", MEASURED, "boardlift")
    if not errors:
        return [_result(gate, PASS, "no finding of severity error", figure)]
    # A limit accepts that many fallbacks by name; any other finding of severity error is never accepted.
    fallbacks = [item for item in errors if item[1].code.endswith("_FELL_BACK")]
    if gate.HasField("maximum") and len(fallbacks) == len(errors) <= gate.maximum:
        nodes = ", ".join(finding.subject for _, finding in fallbacks)
        return [_result(gate, PASS, f"the job accepts {len(fallbacks)} fallback(s): {nodes}", figure)]
    return [
        _result(gate, FAIL, f"{finding.code}: {finding.message}", figure, f"{stage}: {finding.subject}")
        for stage, finding in errors
    ]


def _board_matches(gate: Gate, facts: VariantFacts) -> list[GateResult]:
    if facts.board is None or not facts.board.board_vs_quantized:
        why = "the board stage was left out" if facts.board_skipped else "the board's outputs were not compared"
        return [_undecided(gate, why)]
    if facts.board.board.simulated and facts.board.engine != "compiled":
        why = "the simulated board ran the quantised model in place of the compiled code: only a real board can decide"
        return [_undecided(gate, why)]
    limited = Gate(metric=gate.metric, output=gate.output)
    limited.maximum = gate.maximum if gate.HasField("maximum") else BOARD_TOLERANCE
    results = []
    where = "simulated board" if facts.board.board.simulated else "board"
    for item in facts.board.board_vs_quantized:
        if gate.output in ("", item.output):
            subject = f"{item.output}: {where} against quantised model, {item.samples} samples"
            results.append(_limit(limited, find_figure(item.figures, "max_abs"), subject))
    compared = {item.output for item in facts.board.board_vs_quantized}
    simulated = facts.simulated.outputs if facts.simulated is not None else ()
    for name in sorted({item.output for item in simulated} - compared):
        if gate.output in ("", name):
            results.append(_undecided(gate, f"the output {name} was not compared", subject=f"{name}: {where}"))
    return results or [_undecided(gate, f"there is no output {gate.output}")]


_JUDGES: Final[Mapping[str, Callable[[Gate, VariantFacts], list[GateResult]]]] = {
    "cosine": _accuracy,
    "max_abs": _accuracy,
    "mean_abs": _accuracy,
    "estimated_latency_us": _estimated_latency,
    "board_p99_ms": _board_p99,
    "cpu_nodes": _cpu_nodes,
    "bit_exact": _bit_exact,
    "no_silent_fallback": _no_silent_fallback,
    "board_matches_simulation": _board_matches,
}


def _limit(gate: Gate, figure: toolchain_pb2.Figure | None, subject: str) -> GateResult:
    if figure is None:
        return _undecided(gate, "the figure is missing", subject=subject)
    value = figure.value
    if not math.isfinite(value):
        return _result(gate, FAIL, f"{figure.name} is {value}", figure, subject)
    shown = f"{figure.name} {value:.6g}{'' if figure.unit in ('', '1') else ' ' + figure.unit}"
    if gate.HasField("minimum") and value < gate.minimum:
        return _result(gate, FAIL, f"{shown} is below {gate.minimum:.15g}", figure, subject)
    if gate.HasField("maximum") and value > gate.maximum:
        return _result(gate, FAIL, f"{shown} is above {gate.maximum:.15g}", figure, subject)
    return _result(gate, PASS, f"{shown} holds", figure, subject)


def _undecided(gate: Gate, reason: str, figure: toolchain_pb2.Figure | None = None, subject: str = "") -> GateResult:
    return _result(gate, UNDECIDED, reason, figure, subject)


def _result(
    gate: Gate,
    outcome: job_pb2.Verdict.Outcome,
    reason: str,
    figure: toolchain_pb2.Figure | None = None,
    subject: str = "",
) -> GateResult:
    return GateResult(gate=gate, outcome=outcome, reason=reason, figure=figure, subject=subject)
