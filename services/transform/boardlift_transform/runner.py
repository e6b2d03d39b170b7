"""Running a plan: passes on a copy, time and changes per pass, and the blame when the result differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from boardlift_transform.diff_graph import GraphDiff
from boardlift_transform.pass_result import Applied, PassResult, Skipped
from boardlift_transform.passes import PASSES_BY_ID
from boardlift_transform.plan import PlannedPass
from boardlift_transform.record_steps import StepRecorder
from boardlift_transform.refusal import Refusal

# What reading a graph that is not legal ONNX ends in: wrong ranks, types, missing attributes.
GRAPH_ERRORS = (ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, RuntimeError)
Listener = Callable[[str, int, int], None]


@dataclass(frozen=True)
class PassReport:
    """What one step of a plan did."""

    id: str
    """Pass id."""
    reason: str
    """Why it ran."""
    applied: tuple[Applied, ...]
    """Rewrites made."""
    skipped: tuple[Skipped, ...]
    """Candidates left alone, with reasons."""
    assumptions: tuple[str, ...]
    """What was assumed."""
    seconds: float
    """Wall time."""
    nodes_before: int
    """Nodes before."""
    nodes_after: int
    """Nodes after."""
    diff: GraphDiff | None = None
    """Nodes added, removed and rewritten, when it was asked for."""


def run_plan(
    model: ir.Model,
    steps: Sequence[PlannedPass],
    listener: Listener | None = None,
    recorder: StepRecorder | None = None,
) -> list[PassReport]:
    """Apply the steps to `model` in place.

    Args:
        model: Edited in place: hand over a copy.
        steps: What to run.
        listener: Called as (pass id, index, count) before each step.
        recorder: Told about the model after each step.

    Raises:
        Refusal: From a pass; its metadata gets the pass id.
    """
    reports = []
    for index, step in enumerate(steps):
        if listener is not None:
            listener(step.id, index, len(steps))
        started = time.perf_counter()
        before = len(model.graph)
        try:
            result: PassResult = PASSES_BY_ID[step.id].apply(model, step.parameters)
        except Refusal as refusal:
            refusal.metadata.setdefault("pass", step.id)
            raise
        except GRAPH_ERRORS as error:
            raise Refusal(
                "PASS_FAILED",
                f"{step.id} cannot read this graph: {type(error).__name__}: {str(error)[:300]}",
                remedy=f"run onnx.checker on the model; if that finds nothing, skip {step.id} and report the model",
                metadata={"pass": step.id},
            ) from error
        seconds = time.perf_counter() - started
        diff = recorder.after(step.id, model, bool(result.applied)) if recorder is not None else None
        reports.append(
            PassReport(
                id=step.id,
                reason=step.reason,
                applied=tuple(result.applied),
                skipped=tuple(result.skipped),
                assumptions=tuple(result.assumptions),
                seconds=seconds,
                nodes_before=before,
                nodes_after=len(model.graph),
                diff=diff,
            )
        )
    return reports


def find_guilty(
    steps: Sequence[PlannedPass], good_after: Callable[[Sequence[PlannedPass]], bool]
) -> PlannedPass | None:
    """The step that first makes the result differ, by bisection over prefixes of the plan.

    Args:
        steps: The plan that ends wrong.
        good_after: True when the model after these steps still equals the original.

    Returns:
        The step, or None when even the whole plan turns out right (a flaky comparison).
    """
    low, high = 0, len(steps)
    if good_after(steps):
        return None
    while low < high:
        middle = (low + high) // 2
        if good_after(steps[: middle + 1]):
            low = middle + 1
        else:
            high = middle
    return steps[low] if low < len(steps) else None
