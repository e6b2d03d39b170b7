"""The steps of one Scan, put in its place: a copy of the body per slice of what it scans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, shape_of
from boardlift_transform.fold_graph import GraphFolder
from boardlift_transform.inline_graph import copy_body, inline_before
from boardlift_transform.pass_result import node_label
from boardlift_transform.sequence_rules import concatenate

SINCE = 9
"""Scan of opset 8 has a batch axis and lengths of its own."""


def unroll_scan(node: ir.Node, folder: GraphFolder, spend: Callable[[int, int], None]) -> bool:
    """Replace a Scan over inputs of static shape; False when it is left.

    Args:
        node: The Scan.
        folder: The walk that met it.
        spend: Told (steps, nodes of one step) before anything is done; may refuse.
    """
    body, editor, label = node.attributes["body"].as_graph(), folder.editor, node_label(node)
    values = [v for v in node.inputs if v is not None]
    states = len(values) - int(attribute(node, "num_scan_inputs", 0))
    scanned, rows = values[states:], len(node.outputs) - states
    shapes = [shape_of(v) for v in scanned]
    if folder.opset < SINCE or not scanned or any(s is None for s in shapes):
        return False
    axes = _per_value(node, "scan_input_axes", [len(s or ()) for s in shapes])
    backwards = attribute(node, "scan_input_directions") or [0] * len(scanned)
    steps = (shapes[0] or ())[axes[0]]
    size = sum(1 for _ in body.all_nodes())
    spend(steps, size)
    carried, made = values[:states], list[list[ir.Value]]()
    for step in range(steps):
        places = [steps - 1 - step if back else step for back in backwards]
        slices = [_slice(node, v, a, p, editor) for v, a, p in zip(scanned, axes, places, strict=True)]
        copy = copy_body(body, [*carried, *slices], editor)
        folder.within(copy).fold()
        outputs = inline_before(node, copy, editor)
        carried = outputs[:states]
        made.append(outputs[states:])
    ends = [*carried, *_joined(node, made, rows, folder)]
    for old, new in zip(node.outputs, ends, strict=True):
        editor.replace(old, new)
    editor.drop(node)
    folder.result.apply(label, "Scan", f"{steps} steps of {size} nodes")
    return True


def _joined(node: ir.Node, made: list[list[ir.Value]], rows: int, folder: GraphFolder) -> list[ir.Value]:
    """What the steps gave, stacked per output."""
    axes = attribute(node, "scan_output_axes") or [0] * rows
    backwards = attribute(node, "scan_output_directions") or [0] * rows
    columns = [
        list(column)[:: -1 if back else 1] for column, back in zip(zip(*made, strict=True), backwards, strict=True)
    ]
    return [
        concatenate(node, column, folder.editor, folder.opset, int(axis), stack=True)
        for column, axis in zip(columns, axes, strict=True)
    ]


def _slice(node: ir.Node, value: ir.Value, axis: int, place: int, editor: Editor) -> ir.Value:
    shape = shape_of(value) or ()
    index = editor.constant(np.asarray(place, np.int64), f"{value.name}_place")
    dims = (*shape[:axis], *shape[axis + 1 :])
    return editor.node(node, "Gather", [value, index], dims, {"axis": axis}, hint=f"{value.name}_step")


def _per_value(node: ir.Node, name: str, ranks: list[int]) -> list[int]:
    axes = attribute(node, name) or [0] * len(ranks)
    return [int(a) % rank for a, rank in zip(axes, ranks, strict=True)]
