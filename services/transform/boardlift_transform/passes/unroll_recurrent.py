"""Unroll GRU, LSTM and RNN into Gemm and element-wise operators, batch first.

Before -> After: `X [T,N,D] -> GRU -> Y, Y_h` -> one product of all inputs, then per step one product of the state and
the gates, on `[N,H]`; also reverse and bidirectional, with or without an initial state.
Why: the tool unrolls these operators itself, but with a literal batch, so that its calibrator falls back from batch 8
to 1, and it dies on several forms of GRU (exit 139). The steps are the same number of rows.
In the default plan for RNN only, which the tool refuses. GRU and LSTM stay: calibrated, the cell states of silero_vad
lose their scale in this form (cosine of the state 0.558 instead of 0.989 in int8, 0.592 instead of 0.9996 in int16),
although it is equal in float.
Exactness: float rounding (the kernels' order of summation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, remove_unused, shape_of
from boardlift_transform.lift.cells import ACTIVATIONS, GATES, Cell
from boardlift_transform.lift.sequences import batch_first, fed_product, initial_state, step_of, write_outputs
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult, node_label

STEPS = 64
_STATES = {"GRU": [5], "RNN": [5], "LSTM": [5, 6]}


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite nodes with constant weights, default activations and at most `steps` steps over all directions."""
    result = PassResult()
    limit = int(parameters.get("steps", STEPS))
    wanted = set(parameters.get("operators", GATES))
    nodes = [n for n in model.graph if n.op_type in wanted & set(GATES) and n.domain in ("", "ai.onnx")]
    editor = Editor(model.graph, PASS.id) if nodes else None
    for node in nodes:
        reason = _reason(node, limit)
        if reason or editor is None:
            result.skip(node, reason)
            continue
        label, steps = node_label(node), (shape_of(node.inputs[0]) or (0,))[0]
        _unroll(node, editor)
        result.apply(label, node.op_type, f"{steps} steps of Gemm and gates")
    remove_unused(model.graph)
    return result


def _reason(node: ir.Node, limit: int) -> str:
    """Why a node can't be unrolled; empty when it can."""
    shape, weights = shape_of(node.inputs[0]), [constant_of(input_at(node, i)) for i in (1, 2)]
    if shape is None or len(shape) != 3 or any(w is None or w.dtype != np.float32 for w in weights):
        return "its shape is not known or its weights are not constant float32"
    lengths, bias = constant_of(input_at(node, 4)), input_at(node, 3)
    if input_at(node, 4) is not None and (lengths is None or np.any(lengths != shape[0])):
        return "its sequences have lengths of their own"
    if (bias is not None and constant_of(bias) is None) or input_at(node, 7) is not None:
        return "its bias is computed, or it has peepholes"
    functions, directions = attribute(node, "activations"), 2 if _directions(node) == [False, True] else 1
    plain = ACTIVATIONS.get(node.op_type)
    known = plain * directions if plain else None
    if functions and (functions != known if known else set(functions) - {"Tanh", "Relu"}):
        return f"its activations are {functions}"
    if "clip" in node.attributes or attribute(node, "input_forget", 0) or attribute(node, "layout", 0):
        return "it has clip, input_forget or layout"
    return f"{shape[0]} steps, more than {limit}" if shape[0] * directions > limit else ""


def _directions(node: ir.Node) -> list[bool]:
    """Per direction: True when it runs backwards."""
    return {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
        attribute(node, "direction", "forward")
    ]


def _unroll(node: ir.Node, editor: Editor) -> None:
    steps, batch, _ = shape_of(node.inputs[0]) or (0, 0, 0)
    x = batch_first(node, editor)
    arrays = [constant_of(input_at(node, i)) for i in (1, 2, 3)]
    sequences, lasts = [], list[list[ir.Value | None]]()
    for index, backwards in enumerate(_directions(node)):
        weight, recurrence, bias = (None if a is None else a[index] for a in arrays)
        if weight is None or recurrence is None:
            raise ValueError("weights were checked to be constant")
        rows, hidden = recurrence.shape
        biases = np.zeros(2 * rows, np.float32) if bias is None else bias
        functions = attribute(node, "activations") or ["Tanh"]
        cell = Cell(
            editor, node, recurrence, biases[rows:], hidden, bool(attribute(node, "linear_before_reset", 0)),
            functions[min(index, len(functions) - 1)],
        )  # fmt: skip
        fed = fed_product(node, editor, x, weight, biases[:rows])
        states = [initial_state(node, editor, place, index) for place in _STATES[node.op_type]]
        state, memory = states[0], states[1] if len(states) > 1 else None
        made: list[ir.Value] = []
        for step in range(steps)[:: -1 if backwards else 1]:
            state, memory = cell.step(step_of(node, editor, fed, step, steps), state, memory)
            made.append(state)
        sequences.append(made[::-1] if backwards else made)
        lasts.append([state, memory])
    write_outputs(node, editor, sequences, lasts, batch)


PASS = Pass(
    id="unroll-recurrent",
    summary="GRU, LSTM, RNN -> Gemm and gates per step, batch first",
    exactness=ROUNDING,
    apply=apply,
    parameters=(
        Parameter("steps", f"most steps of one node; default {STEPS}"),
        Parameter("operators", "which of GRU, LSTM and RNN; default all"),
    ),
)
