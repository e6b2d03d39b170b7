"""Unroll Loop: one copy of the body per step.

Before -> After: `Loop(5, True, state)` -> the body five times in a row, each reading what the one before made; what is
collected per step -> Unsqueeze and Concat.
Why: the tool has no control flow. Exporters write a Loop wherever a scripted module counts.
The number of steps must be known: a constant trip count, or a condition that folds to a constant in every step (`while`
over a counter). Step number and condition are constants in each copy, so what hangs on them folds, inner loops too.
Exactness: bit-exact, the same operators run; constants of the body are folded as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import constant_of, input_at, remove_unused, shape_of, source_of
from boardlift_transform.fold_graph import GraphFolder, fold_graph
from boardlift_transform.inline_graph import copy_body, inline_before
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult, node_label
from boardlift_transform.refusal import Refusal

NODES = 8192
_FIX = "freeze the input that decides it (frozen_inputs), or export it with a fixed count and compute every step"


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Unroll every Loop, the inner ones too; all copies together hold at most `nodes` nodes.

    Raises:
        Refusal: LOOP_ON_DATA, LOOP_TOO_LONG or LOOP_EMPTY, with the node.
    """
    budget = _Budget(int(parameters.get("nodes", NODES)))
    result = fold_graph(model, PASS.id, rules={"Loop": budget.unroll})
    remove_unused(model.graph)
    return result


@dataclass
class _Budget:
    """Nodes that may be copied yet, over all loops of the model."""

    nodes: int

    def unroll(self, node: ir.Node, folder: GraphFolder) -> bool:
        """Put copies of the body in the place of the Loop."""
        body, label, editor = node.attributes["body"].as_graph(), node_label(node), folder.editor
        size = 1 + sum(1 for _ in body.all_nodes())
        trips, go = _trip_count(node, label), _holds(input_at(node, 1), label, 0)
        if go and _never_ends(body) and (trips is None or trips * size > self.nodes):
            raise _too_long(label, size - 1, trips)
        carried = [v for v in node.inputs[2:] if v is not None]
        collected: list[list[ir.Value]] = [[] for _ in node.outputs[len(carried) :]]
        count = 0
        while go and (trips is None or count < trips):
            self.nodes -= size
            if self.nodes < 0:
                raise _too_long(label, size - 1, trips)
            step = editor.constant(np.asarray(count, np.int64), f"{label}_step")
            condition = editor.constant(np.asarray(True), f"{label}_condition")
            copy = copy_body(body, [step, condition, *carried], editor)
            folder.within(copy).fold()
            condition, *made = inline_before(node, copy, editor)
            carried, rows = made[: len(carried)], made[len(carried) :]
            for column, row in zip(collected, rows, strict=True):
                column.append(row)
            count += 1
            go = _holds(condition, label, count)
        if count == 0 and collected:
            raise _refused("LOOP_EMPTY", label, "runs no step, so what it collects is empty", _FIX)
        for old, new in zip(node.outputs, [*carried, *(_stack(node, c, folder) for c in collected)], strict=True):
            editor.replace(old, new)
        editor.drop(node)
        folder.result.apply(label, "Loop", f"{count} steps of {size - 1} nodes")
        return True


def _never_ends(body: ir.Graph) -> bool:
    """True when the body hands the condition on, or says True: only the trip count ends the loop."""
    source = source_of(body.outputs[0])
    known = constant_of(source)
    return source is body.inputs[1] or (known is not None and bool(known.all()))


def _too_long(label: str, size: int, trips: int | None) -> Refusal:
    steps = "an unknown number of steps" if trips is None or trips > 1 << 31 else f"{trips} steps"
    return _refused(
        "LOOP_TOO_LONG",
        label,
        f"takes {steps} of {size} nodes: unrolled, the model exceeds the limit of copied nodes",
        "export it with fewer steps, or keep the loop on the robot and compile its body",
    )


def _trip_count(node: ir.Node, label: str) -> int | None:
    """The largest number of steps; None when only the condition ends the loop."""
    limit = input_at(node, 0)
    if limit is None:
        return None
    count = constant_of(source_of(limit))
    if count is None:
        raise _refused("LOOP_ON_DATA", label, f"takes its number of steps from {limit.name}, which is computed", _FIX)
    return int(count.reshape(-1)[0])


def _holds(condition: ir.Value | None, label: str, steps: int) -> bool:
    """Whether another step runs, from a condition that must be constant by now."""
    if condition is None:
        return True
    known = constant_of(source_of(condition))
    if known is None:
        when = f"after step {steps}" if steps else "before its first step"
        raise _refused("LOOP_ON_DATA", label, f"ends when the data say so: {condition.name}, {when}", _FIX)
    return bool(known.reshape(-1)[0])


def _stack(node: ir.Node, rows: list[ir.Value], folder: GraphFolder) -> ir.Value:
    """Values `[...]` of all steps as one `[steps, ...]`."""
    editor, hint = folder.editor, f"{node.name or node.op_type}_collected"
    arrays = [constant_of(row) for row in rows]
    if all(a is not None for a in arrays):
        return editor.constant(np.stack([a for a in arrays if a is not None]), hint)
    shapes, by_input = [shape_of(row) for row in rows], folder.opset >= 13
    axes = [editor.constant(np.asarray([0], np.int64), f"{hint}_axes")] if by_input else []
    lifted = [
        editor.node(
            node, "Unsqueeze", [row, *axes], None if shape is None else (1, *shape),
            None if by_input else {"axes": [0]}, hint=hint,
        )
        for row, shape in zip(rows, shapes, strict=True)
    ]  # fmt: skip
    whole = None if None in shapes else (len(rows), *(shapes[0] or ()))
    return editor.node(node, "Concat", lifted, whole, {"axis": 0}, hint=hint)


def _refused(reason: str, label: str, message: str, remedy: str) -> Refusal:
    return Refusal(reason, f"Loop {label} {message}", remedy=remedy, metadata={"node": label})


PASS = Pass(
    id="unroll-loop",
    summary="Loop of a known number of steps -> one copy of its body per step",
    exactness=ROUNDING,
    apply=apply,
    parameters=(Parameter("nodes", f"most nodes that all copies together may hold; default {NODES}"),),
)
