"""Print what a stage service answered, and its progress while it works."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from boardlift import _convert
from boardlift._render import figure_text
from boardlift.cli.output import Output, seconds_text
from boardlift.models import LogLine, Progress
from boardlift.v1 import compiler_pb2, toolchain_pb2, transform_pb2

PAUSE_S = 2.0
SAME_STEP_PAUSE_S = 15.0


class StageLines:
    """Prints a stage's current step on standard error: a new one at most every two seconds, else every fifteen."""

    def __init__(self, output: Output, stage: str) -> None:
        """Prefix lines with the stage."""
        self._output = output
        self._stage = stage
        self._step = ""
        self._next = 0.0

    def __call__(self, event: Progress | LogLine) -> None:
        """Take an event."""
        now = time.monotonic()
        pause = SAME_STEP_PAUSE_S - PAUSE_S if isinstance(event, Progress) and event.step == self._step else 0.0
        if isinstance(event, Progress) and now >= self._next + pause:
            self._step, self._next = event.step, now + PAUSE_S
            self._output.note(f"{self._stage}: {_progress_text(event)}")


def _progress_text(event: Progress) -> str:
    counted = f" {event.done}/{event.total}" if event.total else ""
    rest = f", about {seconds_text(event.remaining_s)} left" if event.remaining_s else ""
    return f"{event.step}{counted} ({event.fraction:.0%}){rest}"


def print_findings(output: Output, findings: Iterable[toolchain_pb2.Finding]) -> None:
    """Print findings."""
    output.findings(_convert.to_finding(finding) for finding in findings)


def print_transform_plan(output: Output, plan: transform_pb2.PlanTransformResponse) -> None:
    """Print what a transform would do and why; refusals alone where there are any."""
    for refusal in plan.refusals:
        output.failure(_convert.to_failure(refusal))
    if plan.refusals:
        return
    output.table(("pass", "exactness", "why"), [(step.id, step.exactness, step.reason) for step in plan.passes])
    for text in plan.assumptions:
        output.line(f"assumed: {text}")
    output.line("Nothing was done. Passes that find nothing to change leave the model as it is.")


def print_transform(output: Output, result: transform_pb2.TransformResult) -> None:
    """Print what a transform did: passes, how to feed the new model, the proof."""
    rows = []
    for item in result.passes:
        reasons = sorted({skip.reason for skip in item.skipped})
        if not item.applied and not reasons and item.nodes_before == item.nodes_after:
            continue
        rows.append((item.id, f"{len(item.applied)}", f"{item.nodes_before} -> {item.nodes_after}", "; ".join(reasons)))
    output.table(("pass", "changes", "nodes", "left alone because"), rows)
    if len(rows) < len(result.passes):
        output.line(f"{len(result.passes) - len(rows)} other passes found nothing to do")
    output.line()
    io_rows = [
        (item.before.name, _spec(item.before), item.after.name, _spec(item.after), item.rule) for item in result.io_map
    ]
    output.table(("yours", "", "transformed", "", "rule"), io_rows)
    output.line()
    headers = ("output", "samples", "against the original", "value", "kind", "allowed")
    output.table(headers, [row for item in result.equivalence for row in _proof_rows(item)])
    if result.random_inputs:
        output.line("The proof used random inputs; give --data for real ones.", "yellow")
    for text in result.assumptions:
        output.line(f"assumed: {text}")
    print_findings(output, result.findings)


def print_check(output: Output, result: compiler_pb2.CheckResult, every_node: bool) -> None:
    """Print where the nodes run."""
    output.line(
        f"{result.bpu_nodes} nodes on the BPU in {result.bpu_subgraphs} subgraph(s), {result.cpu_nodes} on the CPU"
    )
    nodes = [node for node in result.nodes if every_node or node.device != "BPU" or node.reason]
    rows = [(node.node, node.type, node.device, node.dtype, node.reason) for node in nodes]
    if rows:
        output.table(("node", "type", "on", "as", "why"), rows)
    print_findings(output, result.findings)


def _proof_rows(item: toolchain_pb2.OutputComparison) -> Iterator[tuple[str, ...]]:
    """Yield the measured figures of an output, and beside max_abs what it may be."""
    for figure in item.figures:
        limit = f"≤ {item.allowed_max_abs:.3g}" if figure.name == "max_abs" else ""
        yield (item.output, str(item.samples), figure.name, *_value_and_kind(figure), limit)


def _spec(spec: toolchain_pb2.TensorSpec) -> str:
    return f"{spec.dtype} [{', '.join('?' if size < 0 else str(size) for size in spec.shape)}]"


def _value_and_kind(figure: Any) -> tuple[str, str]:
    value, _, kind = figure_text(_convert.to_figure(figure)).rpartition(" ")
    return value, kind
