"""Nodes that compute the same on values whose axes lie in another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, is_constant, rank_of, shape_of
from boardlift_transform.lift.rules import BINARY, REDUCTIONS, UNARY

BY_AXIS = frozenset(["Concat", "Split", "Gather"])


def can_permute(node: ir.Node) -> bool:
    """True where the order of axes is a parameter, on float values of four axes with a batch of 1."""
    known = node.op_type in UNARY | BINARY | REDUCTIONS | BY_AXIS or node.op_type == "Slice"
    if not known or node.domain not in ("", "ai.onnx") or node.op_type == "PRelu":
        return False
    computed = [v for v in (*node.inputs, *node.outputs) if v is not None and not is_constant(v)]
    if any((shape_of(v) or ())[:1] != (1,) or rank_of(v) != 4 or v.dtype != ir.DataType.FLOAT for v in computed):
        return False
    if any(use.node.graph is not node.graph for out in node.outputs for use in out.uses()):
        return False  # the branch of an If reads it
    if node.op_type in REDUCTIONS:
        return bool(attribute(node, "axes")) and len(node.inputs) == 1
    if node.op_type == "Slice":
        return len(node.inputs) > 3 and all(is_constant(v) for v in node.inputs[1:])
    if node.op_type in UNARY:
        return all(shape_of(v) in ((), (1,)) for v in node.inputs[1:] if v is not None)
    indices = constant_of(input_at(node, 1)) if node.op_type == "Gather" else None
    return node.op_type != "Gather" or (indices is not None and indices.ndim == 1 and not is_constant(node.inputs[0]))


def permute(node: ir.Node, perm: Sequence[int], editor: Editor) -> None:
    """Rewrite what a node says about axes, its constants and its outputs' shapes; its inputs are permuted already.

    Args:
        node: A node that `can_permute`.
        perm: As of Transpose; keeps axis 0.
        editor: Editor of the node's graph.
    """
    for out in node.outputs:
        shape = shape_of(out) or ()
        out.shape = ir.Shape([shape[p] for p in perm])
    if node.op_type in REDUCTIONS:
        axes = sorted(perm.index(a % 4) for a in attribute(node, "axes"))
        node.attributes["axes"] = ir.AttrInt64s("axes", axes)
    elif node.op_type in BY_AXIS:
        node.attributes["axis"] = ir.AttrInt64("axis", perm.index(int(attribute(node, "axis", 0)) % 4))
    elif node.op_type == "Slice":
        axes = [perm.index(int(a) % 4) for a in np.ravel(np.asarray(constant_of(node.inputs[3])))]
        node.replace_input_with(3, editor.constant(np.asarray(axes, np.int64), f"{node.name}_axes"))
    if node.op_type in BINARY or node.op_type == "Concat":
        for index, value in enumerate(node.inputs):
            array = constant_of(value)
            if value is not None and array is not None and array.size > 1:
                wide = array.reshape([1] * (4 - array.ndim) + list(array.shape)).transpose(perm)
                node.replace_input_with(index, editor.constant(wide, f"{value.name}_features"))
