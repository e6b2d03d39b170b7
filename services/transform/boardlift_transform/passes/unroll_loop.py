"""Unroll Loop and Scan: one copy of the body per step.

Before -> After: `Loop(5, True, state)` -> the body five times in a row, each reading what the one before made; what is
collected per step, in an output or in a sequence -> Unsqueeze and Concat.
Why: the tool has no control flow. Exporters write a Loop wherever a scripted module counts.
The number of steps must have a bound: a constant trip count, or a condition that folds to False in some step (`while`
over a counter). Step number and condition are constants in each copy, so what hangs on them folds, inner loops too.
A Scan takes as many steps as what it scans is long.
Where the data may end the loop before (`break`), each step from there on stands in an If on the step before it.
Exactness: bit-exact, the same operators run; constants of the body are folded as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import constant_of, input_at, remove_unused, source_of
from boardlift_transform.fold_graph import GraphFolder, fold_graph
from boardlift_transform.loop_steps import FIX, LoopSteps, certain, refused
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult, node_label
from boardlift_transform.scan_steps import unroll_scan
from boardlift_transform.sequence_rules import SequenceRules, concatenate

NODES = 8192
_SHORTEN = "export it with fewer steps, or keep the loop on the robot and compile its body"


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Unroll every Loop and Scan, the inner ones too; all copies together hold at most `nodes` nodes.

    Raises:
        Refusal: LOOP_ON_DATA, LOOP_TOO_LONG, LOOP_EMPTY or SEQUENCE_ON_DATA, with the node.
    """
    budget = _Budget(int(parameters.get("nodes", NODES)))
    rules = {**SequenceRules().rules, "Loop": budget.unroll, "Scan": budget.unroll_scan}
    result = fold_graph(model, PASS.id, rules=rules)
    remove_unused(model.graph)
    return result


@dataclass
class _Budget:
    """Nodes that may be copied yet, over all loops of the model."""

    nodes: int

    def unroll_scan(self, node: ir.Node, folder: GraphFolder) -> bool:
        """Put copies of the body in the place of the Scan."""

        def spend(steps: int, size: int) -> None:
            self.nodes -= steps * (size + 1)
            if self.nodes < 0:
                raise refused(
                    "LOOP_TOO_LONG", node_label(node), f"takes {steps} steps of {size} nodes, too many", _SHORTEN
                )
            if steps == 0:
                raise refused("LOOP_EMPTY", node_label(node), "runs no step, so what it collects is empty", FIX)

        return unroll_scan(node, folder, spend)

    def unroll(self, node: ir.Node, folder: GraphFolder) -> bool:
        """Put copies of the body in the place of the Loop."""
        body, label, editor = node.attributes["body"].as_graph(), node_label(node), folder.editor
        size, trips = 1 + sum(1 for _ in body.all_nodes()), _trip_count(node, label)
        steps = LoopSteps(node, folder, [v for v in node.inputs[2:] if v is not None], input_at(node, 1))
        if steps.goes_on is not False and _never_ends(body) and (trips is None or trips * size > self.nodes):
            raise refused("LOOP_TOO_LONG", label, f"takes {_told(trips)} of {size - 1} nodes, too many", _SHORTEN)
        while steps.goes_on is not False and (trips is None or steps.count < trips):
            self.nodes -= size
            if self.nodes < 0 and steps.guarded:
                raise refused("LOOP_ON_DATA", label, "ends when the data say so, and nothing bounds it", FIX)
            if self.nodes < 0:
                raise refused("LOOP_TOO_LONG", label, f"takes {_told(trips)} of {size - 1} nodes, too many", _SHORTEN)
            steps.take(body)
        if steps.count == 0 and len(node.outputs) > len(steps.carried):
            raise refused("LOOP_EMPTY", label, "runs no step, so what it collects is empty", FIX)
        joined = [
            concatenate(node, list(c), editor, folder.opset, 0, stack=True) for c in zip(*steps.rows, strict=True)
        ]
        for old, new in zip(node.outputs, [*steps.carried, *joined], strict=True):
            editor.replace(old, new)
        editor.drop(node)
        how = f", {steps.guarded} of them in an If" if steps.guarded else ""
        folder.result.apply(label, "Loop", f"{steps.count} steps of {size - 1} nodes{how}")
        return True


def _trip_count(node: ir.Node, label: str) -> int | None:
    """The largest number of steps; None when only the condition ends the loop."""
    limit = input_at(node, 0)
    if limit is None:
        return None
    count = constant_of(source_of(limit))
    if count is None:
        raise refused("LOOP_ON_DATA", label, f"takes its number of steps from {limit.name}, which is computed", FIX)
    return int(count.reshape(-1)[0])


def _told(trips: int | None) -> str:
    return "an unknown number of steps" if trips is None or trips > 1 << 31 else f"{trips} steps"


def _never_ends(body: ir.Graph) -> bool:
    """True when the body hands the condition on, or says True: only the trip count ends the loop."""
    source = source_of(body.outputs[0])
    return source is body.inputs[1] or certain(source) is True


PASS = Pass(
    id="unroll-loop",
    summary="Loop and Scan of a bounded number of steps -> one copy of its body per step",
    exactness=ROUNDING,
    apply=apply,
    parameters=(Parameter("nodes", f"most nodes that all copies together may hold; default {NODES}"),),
)
