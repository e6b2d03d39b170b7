"""Leave out indexing that takes everything, masks that hide nothing, and Expand before what broadcasts anyway.

Before -> After: `Gather(x, 0..n-1)`, `GatherND`, `GatherElements` whose constant indices read all of x in order ->
Reshape; `And(x, all true)`, `Or(x, all false)` -> x; an `Expand` that is read by elementwise operators only, whose
results end in the same shapes without it, -> none.
Why: encoders of text build the mask of their attention so (`mask[batch, position]`, and a square of it for every
query). Left as it is, all runs on the CPU, over tokens squared, and holds the batch at 1; the board's Gather takes no
bool at all.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, is_constant, shape_of
from boardlift_transform.lift.rules import BINARY, UNARY
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes

INDEXING = frozenset(["Gather", "GatherND", "GatherElements"])
LOGIC = frozenset(["And", "Or", "Xor", "Equal", "Greater", "Less", "Not", "Cast", "Where"])
ELEMENTWISE = (BINARY | UNARY | LOGIC) - {"PRelu"}
MAX_ELEMENTS = 1 << 20
Shape = tuple[int, ...]


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """One walk: what an earlier node became is seen by a later one."""
    return rewrite_nodes(model, PASS.id, INDEXING | {"And", "Or", "Expand"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    if shape_of(node.outputs[0]) is None or any(shape_of(v) is None for v in node.inputs):
        return None
    if node.op_type in INDEXING:
        return _whole(node, editor)
    if node.op_type == "Expand":
        return _unneeded(node)
    return _open(node, editor)


def _whole(node: ir.Node, editor: Editor) -> tuple[ir.Value, str] | None:
    """Run the node on the positions of x: it takes everything when they come out in order."""
    x, indices, out = node.inputs[0], constant_of(input_at(node, 1)), node.outputs[0]
    before, after = shape_of(x) or (), shape_of(out) or ()
    count = int(np.prod(before, dtype=np.int64))
    if x is None or is_constant(x) or indices is None or not 0 < count <= MAX_ELEMENTS:
        return None
    if count != int(np.prod(after, dtype=np.int64)):
        return None
    positions = np.arange(count).reshape(before)
    axis = int(attribute(node, "axis", 0))
    try:
        if node.op_type == "Gather":
            taken = np.take(positions, indices, axis)
        elif node.op_type == "GatherElements":
            taken = np.take_along_axis(positions, indices, axis)
        elif int(attribute(node, "batch_dims", 0)) == 0:
            taken = positions[tuple(np.moveaxis(indices, -1, 0))]
        else:
            return None
    except (IndexError, ValueError):
        return None  # the model does not run, which the comparison will say
    if not np.array_equal(taken.ravel(), np.arange(count)):
        return None
    return editor.reshape(node, x, after, hint=node.name or node.op_type), "Reshape: it takes everything in order"


def _open(node: ir.Node, editor: Editor) -> tuple[ir.Value, str] | None:
    """An And with nothing but true, an Or with nothing but false."""
    for index in (0, 1):
        mask, x = constant_of(node.inputs[1 - index]), node.inputs[index]
        if mask is None or x is None or is_constant(x) or not mask.size:
            continue
        if bool(mask.any() if node.op_type == "Or" else not mask.all()):
            continue
        before, after = shape_of(x) or (), shape_of(node.outputs[0]) or ()
        if before == after or (not node.outputs[0].is_graph_output() and _fits(node.outputs[0], before)):
            return x, "the other input"
        dims = editor.constant(np.asarray(after, np.int64), f"{node.name}_dims")
        return editor.node(node, "Expand", [x, dims], after, hint=node.name or node.op_type), "Expand"
    return None


def _unneeded(node: ir.Node) -> tuple[ir.Value, str] | None:
    x, out = node.inputs[0], node.outputs[0]
    if x is None or is_constant(x) or out.is_graph_output() or not _fits(out, shape_of(x) or ()):
        return None
    return x, "nothing: its readers broadcast"


def _fits(value: ir.Value, shape: Shape) -> bool:
    """Give the value's readers, and theirs, this smaller shape where all end in what they were; else change nothing."""
    smaller: dict[ir.Value, Shape] = {value: shape}
    waiting = [value]
    while waiting:
        for reader in dict.fromkeys(use.node for use in waiting.pop().uses()):
            if reader.op_type not in ELEMENTWISE | {"Expand"} or reader.domain not in ("", "ai.onnx"):
                return False
            made = _broadcast(reader, smaller)
            out = reader.outputs[0]
            if made == shape_of(out):
                smaller.pop(out, None)
            elif made is None or out.is_graph_output() or reader.graph is not value.graph:
                return False
            elif smaller.get(out) != made:
                smaller[out] = made
                waiting.append(out)
    for changed, dims in smaller.items():
        if changed is not value:
            changed.shape = ir.Shape(dims)
    return True


def _broadcast(node: ir.Node, smaller: Mapping[ir.Value, Shape]) -> Shape | None:
    """The shape that the node would give."""
    shapes = [smaller.get(v, shape_of(v)) for v in node.inputs if v is not None]
    if node.op_type == "Expand":
        target = constant_of(input_at(node, 1))
        shapes[1:] = [tuple(target.tolist()) if target is not None else None]
    known = [s for s in shapes if s is not None]
    return tuple(int(d) for d in np.broadcast_shapes(*known)) if len(known) == len(shapes) else None


PASS = Pass(
    id="simplify-masks",
    summary="indexing that takes everything -> Reshape; And with true, Expand before a broadcast -> none",
    exactness=BIT_EXACT,
    apply=apply,
)
