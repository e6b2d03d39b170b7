"""Judge a job: every variant by its gates, then the job by its best variant. Pure and fail-closed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from boardlift.v1 import job_pb2, toolchain_pb2

from boardlift_orchestrator.advise import advise
from boardlift_orchestrator.facts import VariantFacts, find_figure, single_thread_latency, worst_figure
from boardlift_orchestrator.gates import FAIL, PASS, UNDECIDED, default_gates, judge_gate, worst_outcome

_WORDS = {PASS: "passes", FAIL: "fails", UNDECIDED: "is undecided"}


def judge_job(spec: job_pb2.JobSpec, variants: Sequence[VariantFacts]) -> job_pb2.Verdict:
    """Return the verdict.

    A job passes when a variant passes: that one can be used. It fails when all fail, else it is undecided.
    """
    judged = [judge_variant(spec, facts) for facts in variants]
    passing = [item for item in judged if item.outcome == PASS]
    best = min(passing, key=lambda item: _rank(spec.goal, item), default=None)
    otherwise = UNDECIDED if any(item.outcome == UNDECIDED for item in judged) else FAIL
    return job_pb2.Verdict(
        outcome=PASS if best is not None else otherwise,
        reasons=_reasons(judged, best.variant if best is not None else "", spec),
        best_variant=best.variant if best is not None else "",
        variants=judged,
        next_steps=advise(spec, variants, judged),
    )


def judge_variant(spec: job_pb2.JobSpec, facts: VariantFacts) -> job_pb2.VariantVerdict:
    """Judge one variant by the job's gates and the default ones."""
    verdict = job_pb2.VariantVerdict(variant=facts.name, figures=key_figures(facts))
    for gate in (*spec.gates, *default_gates(facts, spec.gates)):
        verdict.gates.extend(judge_gate(gate, facts))
    failed = facts.failed
    if failed is not None:
        stage, failure = failed
        verdict.outcome = FAIL if failure.user_fault else UNDECIDED
        what = "said no" if failure.user_fault else "broke"
        verdict.reasons.append(f"{stage.stage} {what}: {failure.code}: {failure.message}")
        return verdict
    verdict.outcome = worst_outcome([result.outcome for result in verdict.gates])
    for outcome in (FAIL, UNDECIDED):
        for result in verdict.gates:
            if result.outcome == outcome:
                where = f" ({result.subject})" if result.subject else ""
                mark = "undecided: " if outcome != verdict.outcome else ""
                metric = "" if result.reason.startswith(f"{result.gate.metric} ") else f"{result.gate.metric}: "
                verdict.reasons.append(f"{mark}{metric}{result.reason}{where}")
    if verdict.outcome == PASS:
        verdict.reasons.append(f"all {len(verdict.gates)} gates held")
    return verdict


def key_figures(facts: VariantFacts) -> list[toolchain_pb2.Figure]:
    """Return the figures that a variant is compared by, each with its kind."""
    found: list[toolchain_pb2.Figure | None] = []
    if facts.compiled is not None:
        found += [
            find_figure(facts.compiled.figures, name)
            for name in ("estimated_latency_us", "ddr_bytes", "compiled_model_bytes")
        ]
    if facts.simulated is not None:
        found.append(worst_figure(facts.simulated.outputs, "cosine", lowest=True))
        found += [worst_figure(facts.simulated.outputs, name, lowest=False) for name in ("max_abs", "mean_abs")]
    latency = single_thread_latency(facts.board)
    if latency is not None:
        found += [find_figure(latency.figures, name) for name in ("p50_ms", "p99_ms", "fps")]
    return [figure for figure in found if figure is not None]


def _rank(goal: str, verdict: job_pb2.VariantVerdict) -> tuple[float, float]:
    """Sort key: the goal first, the other side decides between equals; a missing figure comes last."""
    latency = find_figure(verdict.figures, "estimated_latency_us")
    cosine = find_figure(verdict.figures, "cosine")
    slow = latency.value if latency is not None and math.isfinite(latency.value) else math.inf
    wrong = -cosine.value if cosine is not None and math.isfinite(cosine.value) else math.inf
    return (wrong, slow) if goal == "accuracy" else (slow, wrong)


def _reasons(judged: Sequence[job_pb2.VariantVerdict], best: str, spec: job_pb2.JobSpec) -> list[str]:
    goal = spec.goal or "latency"
    reasons = [f"{best} passes and is the best by {goal}"] if best else []
    order = {FAIL: 0, UNDECIDED: 1, PASS: 2}
    for item in sorted(judged, key=lambda item: order[item.outcome]):
        if item.variant == best:
            continue
        why = f": {item.reasons[0]}" if item.outcome != PASS and item.reasons else ""
        more = f" (and {len(item.reasons) - 1} more)" if why and len(item.reasons) > 1 else ""
        reasons.append(f"{item.variant} {_WORDS[item.outcome]}{why}{more}")
    if spec.skip_board:
        reasons.append("the board stage was left out as asked: nothing here was run on a board")
    return reasons
