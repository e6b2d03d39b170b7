"""Write what a search found: candidates in order, the best, and conclusions in words; pure."""

from __future__ import annotations

import math

from boardlift.v1 import explore_pb2, toolchain_pb2

from boardlift_compiler import convert as compiler_convert
from boardlift_compiler.explore.conclude import conclude
from boardlift_compiler.explore.convert import metric_figure
from boardlift_compiler.explore.describe_build import otherwise_than_asked
from boardlift_compiler.explore.judge import Goal
from boardlift_compiler.explore.plan_search import choose_best, pareto_front
from boardlift_compiler.explore.run_search import SearchOutcome, Standing
from boardlift_compiler.findings import Finding


def write_outcome(
    result: explore_pb2.SearchResult, outcome: SearchOutcome, baseline: str, goal: Goal, source: str
) -> None:
    """Add candidates, best and conclusions: the Pareto front by latency first, then who came furthest.

    Args:
        result: Receives them.
        outcome: What the rounds showed.
        baseline: Form that the others are compared with.
        goal: What candidates were judged by.
        source: Tool that the estimates are of.
    """
    finals = [s.score for s in outcome.history[-1]]
    order = {score.name: position for position, score in enumerate(pareto_front(finals, goal))}
    standings = sorted(
        outcome.standings.values(),
        key=lambda s: (order.get(s.candidate.name, len(order)), -s.rounds, _time_of(s), s.candidate.name),
    )
    result.candidates.extend(candidate_to_wire(s, goal, source, s.candidate.name in order) for s in standings)
    result.best = choose_best(finals, goal)
    result.findings.extend(compiler_convert.findings_to_wire(conclude(outcome.history, baseline, goal)))


def left_out(form: str, why: toolchain_pb2.StageFailure) -> Finding:
    """Say that a form has no suggested plan, as its layers could not be measured."""
    text = f"Form {form} has no suggested plan, as its layers could not be measured: {why.message}"
    return Finding(why.code, "warning", text, form, why.remedy)


def _time_of(standing: Standing) -> float:
    return standing.shown.score.board_ms if standing.shown else math.inf


def candidate_to_wire(standing: Standing, goal: Goal, source: str, pareto: bool) -> explore_pb2.SearchCandidate:
    """Write one candidate with what its last round showed."""
    candidate = standing.candidate
    message = explore_pb2.SearchCandidate(
        name=candidate.name,
        form=candidate.form,
        variant=compiler_convert.spec_to_wire(candidate.spec),
        rounds=standing.rounds,
        outcome=standing.outcome,
        samples=standing.samples,
        pareto=pareto,
        int16_nodes=candidate.nodes,
    )
    if standing.shown is not None:
        message.metric.CopyFrom(metric_figure(goal, standing.shown.score.value, "vendor quantised model"))
    if standing.description is not None:
        message.latency.CopyFrom(standing.description.to_wire(source))
    if standing.build is not None:
        message.findings.extend(otherwise_than_asked(standing.build))
        if standing.build.HasField("failure"):
            message.failure.CopyFrom(standing.build.failure)
        elif standing.outcome == "finalist":
            message.compiled_model.CopyFrom(standing.build.compiled_model)
    if standing.failure is not None:
        message.failure.CopyFrom(compiler_convert.failure_to_wire(standing.failure))
    return message
