"""Give whole numbers that become floats a scale of their own, and cut floats in operators that the BPU has.

Before -> After: `Cast(int or bool to float) -> Concat` -> `Cast -> Add(0) -> Concat`, also with moves in between;
`Cast(float to int) -> Cast(to float)` -> `Floor(Relu(x)) - Floor(Relu(-x))`.
Why: the calibrator gives what a Cast makes a step of 1, and a Concat has one step for all it joins: everything beside a
flag is rounded to whole numbers, while the log shows nothing but a threshold of 32767 (policy with a flag beside 12
observations, int16, cosine simulated: 0.84 -> 1.00). Two Casts in a row are dropped, so that nothing is cut any more
(0.93 -> 1.00). A Mul(1) instead of the Add does not help.
Exactness: bit-exact, for magnitudes below 2^31.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, remove_unused, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult

_MOVES = frozenset("Reshape Transpose Flatten Squeeze Unsqueeze Slice Split Identity Expand Tile Concat".split())
_WHOLE = frozenset(getattr(ir.DataType, n) for n in ("INT8", "UINT8", "INT16", "UINT16", "INT32", "INT64"))


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite pairs of Casts, then operands of Concat that come from a Cast."""
    result = PassResult()
    editor = Editor(model.graph, PASS.id)
    for node in list(model.graph):
        if node.op_type == "Cast":
            _cut(node, editor, result)
    for node in list(model.graph):
        if node.op_type == "Concat" and node.outputs[0].dtype == ir.DataType.FLOAT:
            _buffer(node, editor, result)
    if result.applied:
        remove_unused(model.graph)
    return result


def _cut(node: ir.Node, editor: Editor, result: PassResult) -> None:
    """Float to int and back."""
    whole = node.inputs[0]
    inner = whole.producer() if whole is not None else None
    if inner is None or inner.op_type != "Cast" or whole is None or whole.dtype not in _WHOLE:
        return
    x = inner.inputs[0]
    if x is None or x.dtype != ir.DataType.FLOAT or int(attribute(node, "to", 0)) != ir.DataType.FLOAT:
        return
    shape, name = shape_of(x), node.name or "cut"

    def op(kind: str, *inputs: ir.Value) -> ir.Value:
        return editor.node(node, kind, inputs, shape, hint=f"{name}_{kind.lower()}")

    minus = op("Mul", x, editor.constant(np.asarray(-1, np.float32), f"{name}_minus"))
    above, below = (op("Floor", op("Relu", side)) for side in (x, minus))
    editor.replace(node.outputs[0], op("Sub", above, below))
    result.apply(node, "Cast to int, Cast to float", "Floor of both signs")


def _buffer(node: ir.Node, editor: Editor, result: PassResult) -> None:
    casts = [i for i, value in enumerate(node.inputs) if value is not None and _is_cast(value)]
    if not casts or len(node.inputs) < 2:
        return
    for index in casts:
        value = node.inputs[index]
        if value is not None:
            zero = editor.constant(np.asarray(0, np.float32), f"{value.name}_zero")
            made = editor.node(node, "Add", [value, zero], shape_of(value), hint=f"{value.name}_buffer")
            node.replace_input_with(index, made)
    result.apply(node, "Concat of what a Cast makes", "Add(0), Concat")


def _is_cast(value: ir.Value) -> bool:
    """True when the value comes from a Cast of whole numbers or truth values, through moves only."""
    maker = value.producer()
    if maker is None:
        return False
    if maker.op_type == "Cast":
        source = maker.inputs[0]
        return source is not None and source.dtype in _WHOLE | {ir.DataType.BOOL}
    return maker.op_type in _MOVES and maker.inputs[0] is not None and _is_cast(maker.inputs[0])


PASS = Pass("buffer-cast", "Cast into a Concat -> Cast, Add(0); Casts that cut -> Floor", BIT_EXACT, apply)
