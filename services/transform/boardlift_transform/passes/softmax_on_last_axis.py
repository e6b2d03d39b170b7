"""Put Softmax, ArgMax and ArgMin on the axis that the BPU computes.

Before -> After: 4-D `Softmax(axis 1)` of `[N,C,1,1]` -> `Transpose -> Softmax(axis 3) -> Transpose`;
`ArgMax(axis 2 or 3)` -> `Transpose -> ArgMax(axis 1) -> Reshape`; where int8 is possible and more than 128 entries are
compared, `ArgMax(axis 1)` -> `Transpose -> ArgMax(axis 3) -> Reshape`.
Why: under int16 Softmax on axis 3 goes to the BPU by itself, on axes 1 and 2 it stays on the CPU; ArgMax runs on the
BPU for the channel only. There its result is an int8 under int8: entry 200 is read as -56, in the compiled code too
(200 channels: 39 % of the results wrong, simulated). On axis 3 it runs on the CPU and is right. Behind it the other
axes have kept their order, so that a Reshape puts the one axis back: the board's CPU takes no Transpose of int64.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Parameter, Pass, PassResult, rewrite_nodes

ENTRIES = 128


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 4-D nodes; Softmax of opset 11 flattens, so the axes behind must have length 1."""
    limit = 1 << 15 if parameters.get("precision") == "int16" else ENTRIES

    def rule(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
        return _rewrite(node, editor, result, limit)

    return rewrite_nodes(model, PASS.id, {"Softmax", "ArgMax", "ArgMin"}, rule)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult, limit: int) -> tuple[ir.Value, str] | None:
    x, out = node.inputs[0], node.outputs[0]
    shape = shape_of(x)
    if x is None or shape is None or len(shape) != 4 or x.dtype != ir.DataType.FLOAT:
        return None
    argument = node.op_type != "Softmax"
    axis, place = int(attribute(node, "axis", 0 if argument else 1)) % 4, 1 if argument else 3
    if argument and shape[axis] > limit:
        place = 3 if axis == 1 else axis
    if axis in (0, place):
        return None
    if not argument and any(d != 1 for d in shape[axis + 1 :]):
        result.skip(node, f"Softmax over axes {axis} to 3 together")
        return None
    rest = [k for k in range(4) if k != axis]
    perm = [*rest[:place], axis, *rest[place:]]
    base = node.name or node.op_type
    attributes = {name: attribute(node, name) for name in node.attributes}
    attributes |= {"axis": place, "keepdims": 1} if argument else {"axis": place}
    moved = editor.transpose(node, x, perm, hint=f"{base}_in")
    inner = [1 if argument and i == place else shape[p] for i, p in enumerate(perm)]
    made = editor.node(node, node.op_type, [moved], inner, attributes, hint=base, dtype=out.dtype)
    if not argument:
        back = editor.transpose(node, made, [perm.index(k) for k in range(4)], hint=f"{base}_out")
        return back, f"{node.op_type} on axis {place} between Transposes"
    kept = [1] if attribute(node, "keepdims", 1) else []
    back = editor.reshape(node, made, [*shape[:axis], *kept, *shape[axis + 1 :]], hint=f"{base}_out")
    return back, f"{node.op_type} on axis {place} behind a Transpose"


PASS = Pass(
    id="softmax-on-last-axis",
    summary="Softmax to axis 3, ArgMax to axis 1, or off it where int8 cannot count so far",
    exactness=BIT_EXACT,
    apply=apply,
    parameters=(Parameter("precision", "`int8`, `int16` or empty for both; default empty"),),
)
