"""Say what to try next after a verdict. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from boardlift.v1 import job_pb2, toolchain_pb2

from boardlift_orchestrator.facts import VariantFacts
from boardlift_orchestrator.gates import FAIL, PASS, UNDECIDED
from boardlift_orchestrator.plan_stages import precision_class

_ACCURACY = ("cosine", "max_abs", "mean_abs")
_MOST = 10


def advise(
    spec: job_pb2.JobSpec, variants: Sequence[VariantFacts], judged: Sequence[job_pb2.VariantVerdict]
) -> list[str]:
    """Return at most ten next steps, the most useful first, without repeats."""
    steps: list[str] = []
    for facts, verdict in zip(variants, judged, strict=True):
        steps += _after_failure(facts)
        if facts.failed is None and verdict.outcome != PASS:
            steps += _after_gates(spec, facts, verdict)
    steps += _towards_the_board(spec, variants)
    return list(dict.fromkeys(steps))[:_MOST]


def _after_failure(facts: VariantFacts) -> list[str]:
    if facts.failed is None:
        return []
    _, failure = facts.failed
    steps = [failure.remedy] if failure.remedy else []
    if failure.transform_pass:
        steps.append(f"Let the transform run the pass {failure.transform_pass}.")
    return steps


def _after_gates(spec: job_pb2.JobSpec, facts: VariantFacts, verdict: job_pb2.VariantVerdict) -> list[str]:
    steps = [finding.remedy for _, finding in facts.errors() if finding.remedy]
    failed = {result.gate.metric for result in verdict.gates if result.outcome == FAIL}
    precisions = {precision_class(variant) for variant in spec.variants}
    if failed & set(_ACCURACY):
        if "int16" not in precisions:
            steps.append("Add a variant with the preset int16; it costs latency and gains accuracy.")
        elif precision_class(facts.spec) == "int16":
            steps.append(
                "Look at the output and sample with the largest error, and at the dataset's range, in the report."
            )
    if "estimated_latency_us" in failed and precision_class(facts.spec) == "int16" and "int8" not in precisions:
        steps.append("Add a variant with the preset int8 or mixed; it is faster.")
    if "cpu_nodes" in failed and facts.check is not None:
        steps += [finding.remedy for finding in facts.check.findings if finding.remedy]
    if "bit_exact" in failed:
        steps.append(
            "Do not ship this build: the compiled code and the quantised model disagree. Try another optimise level."
        )
    if "board_matches_simulation" in failed:
        steps.append(
            "Compare the versions of the board's runtime and of the toolchain, then how the inputs are laid out."
        )
    if any(result.outcome == UNDECIDED and result.gate.metric in _ACCURACY for result in verdict.gates):
        steps.append("Check the outputs' names in the gates against those of the transformed model.")
    return steps


def _towards_the_board(spec: job_pb2.JobSpec, variants: Sequence[VariantFacts]) -> list[str]:
    if spec.skip_board:
        return ["Run the job again with a board."]
    boards = [facts.board for facts in variants if facts.board is not None]
    if any(board.board.simulated for board in boards):
        return ["Run the job on a real board: latencies of a simulated board are the compiler's estimate."]
    warnings = [
        finding.remedy
        for board in boards
        for finding in board.findings
        if finding.severity == toolchain_pb2.Finding.SEVERITY_WARNING and finding.remedy
    ]
    return warnings
