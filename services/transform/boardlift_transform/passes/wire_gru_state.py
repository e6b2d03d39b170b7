"""Wire the last state of GRU nodes.

Before -> After: `Y = GRU(...)` with Y_h unused, and `Y[-1]` read -> both outputs of the GRU are read: `Y_h` takes the
place of the last step, or is added with a factor of zero.
Why: with only Y wired the tool dies (exit 139); with both it unrolls the GRU onto the BPU, forward, reverse and
bidirectional (5 steps of 12 to 8, int8: 156, 156, 315 us, signal to noise 31, 32, 33 dB).
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite GRU nodes with static shapes, in any direction."""
    result = PassResult()
    editor = Editor(model.graph, PASS.id)
    for node in list(model.graph):
        if node.op_type != "GRU" or node.domain not in ("", "ai.onnx"):
            continue
        sequence = node.outputs[0] if node.outputs else None
        shape = shape_of(sequence)
        state = node.outputs[1] if len(node.outputs) > 1 else None
        if sequence is None or shape is None or (state is not None and (state.uses() or state.is_graph_output())):
            continue
        if not sequence.uses() and not sequence.is_graph_output():
            continue
        if state is None:
            node.resize_outputs(2)
            state = node.outputs[1]
        if not state.name:
            state.name = editor.value_name(f"{node.name}_state")
        state.type, state.shape = sequence.type, ir.Shape(shape[1:])
        _read_state(node, sequence, state, editor)
        result.apply(node, "GRU with Y only", "GRU with Y and Y_h")
    return result


def _read_state(node: ir.Node, sequence: ir.Value, state: ir.Value, editor: Editor) -> None:
    """`Y + 0 * Y_h` in place of Y: exact, and the state has a reader."""
    following = next((n for n in _after(node)), None)
    zero = editor.constant(np.asarray(0, np.float32), f"{node.name}_zero")
    nothing = editor.node(following, "Mul", [state, zero], shape_of(state), hint=f"{node.name}_state_zero")
    readers = list(sequence.uses())
    was_output = sequence.is_graph_output()
    total = editor.node(following, "Add", [sequence, nothing], shape_of(sequence), hint=f"{node.name}_with_state")
    for use in readers:
        use.node.replace_input_with(use.idx, total)
    if was_output:
        maker = total.producer()
        editor.replace(sequence, total)
        if maker is not None:
            maker.replace_input_with(0, sequence)


def _after(node: ir.Node) -> list[ir.Node]:
    nodes = list(node.graph) if node.graph is not None else []
    return nodes[nodes.index(node) + 1 :]


PASS = Pass(id="wire-gru-state", summary="GRU with Y only -> Y and Y_h", exactness=BIT_EXACT, apply=apply)
