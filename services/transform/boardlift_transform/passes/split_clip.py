"""Write a Clip that the tool takes out of the graph as two one-sided ones.

Before -> After: `Clip(x, lo, hi)` with lo = -hi -> `Clip(Clip(x, lo), hi)`; with lo = 0 -> `Clip(Relu(x), hi)`.
Why: of such a Clip the tool keeps nothing but the calibrated threshold, where integers saturate. Where another
threshold is in force (a model output in int16, the common one of a Concat, the fixed one of a Sigmoid) nothing is
clipped any more, and the tool's own cosine does not show it. Measured against onnxruntime, signal to noise: Clip to
-1..1 as an int16 output -3.7 -> 47.1 dB, into a Concat 18.5 -> 32.5 dB (int8), into a Sigmoid 19.7 -> 50.6 dB; behind
an Add as an int8 output -3.4 -> 37.6 dB; for 0.7 us. Behind a table (Abs, LeakyRelu, Softplus, Sqrt, Selu, Mish, a
one-sided Clip ...) and behind ReduceMax and linear Resize the threshold of a Clip to -c..c is lost as well, or clips
what they read: twice a Conv of noise, the table, Clip, int8: -8.3 dB behind Softplus, -4.6 Mish, -4.4 Sqrt, -1.1 Abs;
behind Clip at 0.8 -4.7 -> 27.8 dB, LeakyRelu 8.7 -> 22.9 dB. One-sided ones become tables, which clip. Left as it is
in front of operators where it was measured to work (those that fuse it to HardSwish among them).
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, constant_of, input_at, is_constant, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes

SATURATES = frozenset("Conv Mul Div Add Sub ReduceMean ReduceSum Abs LeakyRelu AveragePool GlobalAveragePool".split())
"""Readers in front of which the calibrated threshold stays in force."""
MOVES = frozenset("Transpose Reshape Slice MaxPool".split())
"""Readers that pass the integers on as they are: their own readers count."""
HOLDS = frozenset(
    "Conv ConvTranspose Gemm MatMul Add Sub Neg Pow Relu Elu Floor Where Concat Pad Tile DepthToSpace Max Min MaxPool"
    " AveragePool GlobalAveragePool GlobalMaxPool ReduceMean ReduceSum".split()
)
"""Makers behind which the threshold of a Clip to -c..c is taken; tables do not take it."""


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite Clip nodes of float tensors with scalar bounds."""
    return rewrite_nodes(model, PASS.id, {"Clip"}, _rewrite)


def saturates(value: ir.Value) -> bool:
    """True when everything that reads the value takes integers that saturate at its own threshold."""
    if value.is_graph_output():
        return False
    readers = [use.node for use in value.uses()]
    return all(n.op_type in SATURATES or (n.op_type in MOVES and all(saturates(o) for o in n.outputs)) for n in readers)


def holds(value: ir.Value | None) -> bool:
    """True when what makes the value, moves looked through, takes the value's threshold for its own result."""
    maker = value.producer() if value is not None else None
    if maker is None or maker.op_type in HOLDS:
        return True
    if maker.op_type == "Mul":  # one of two computed tensors may be fused to a table: Swish, Mish, Gelu
        return any(is_constant(v) for v in maker.inputs)
    return maker.op_type in MOVES and holds(maker.inputs[0])


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, out = node.inputs[0], node.outputs[0]
    low, high = (constant_of(input_at(node, index)) for index in (1, 2))
    if x is None or low is None or high is None or low.size != 1 or high.size != 1:
        return None
    bottom, top = float(low.item()), float(high.item())
    if out.dtype not in (ir.DataType.FLOAT, None) or bottom not in (-top, 0.0):
        return None
    if saturates(out) and (bottom == 0.0 or holds(x)):
        return None
    shape, base = shape_of(out), node.name or "Clip"
    if bottom == 0.0:
        floor = editor.node(node, "Relu", [x], shape, hint=f"{base}_low")
    else:
        floor = editor.node(node, "Clip", [x, node.inputs[1]], shape, hint=f"{base}_low")
    return editor.node(node, "Clip", [floor, None, node.inputs[2]], shape, hint=base), "two one-sided ones"


PASS = Pass(
    id="split-clip",
    summary="Clip to -c..c or 0..c that the tool would drop -> two one-sided ones",
    exactness=BIT_EXACT,
    apply=apply,
)
