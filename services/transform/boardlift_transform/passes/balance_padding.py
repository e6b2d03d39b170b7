"""Give MaxPool and Conv at least as much padding at the beginning as at the end.

Before -> After:
    `MaxPool(pads [b, e])`, e > b, or ceil_mode overrun -> `Pad(edge, [0, e-b]) -> MaxPool(pads [b, b])`
    `Conv(k, pads [b, e])`, e > b, depthwise too        -> `Conv(k + e-b, zeros first, pads [e, e])`
    `Pad(0) -> Conv`                                    -> the same with the Pad inside
Why: with int16 the vendor's simulator is wrong on the last rows when more is padded at the end than at the beginning
(MaxPool by 1.2 to 3.5 on unit-scale data); the log and the quantised ONNX do not show it.
Exactness: bit-exact: a repeated border row cannot change a maximum that already sees that row, and zero taps add zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, only_use, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 2-D MaxPool and Conv."""
    return rewrite_nodes(model, PASS.id, {"MaxPool", "Conv"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    size, made = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    if size is None or made is None or len(size) != 4 or attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", ""):
        return None
    return _pool(node, editor, result) if node.op_type == "MaxPool" else _convolution(node, editor, result)


def _pool(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x = node.inputs[0]
    size, made = shape_of(x), shape_of(node.outputs[0])
    if x is None or size is None or made is None:
        return None
    kernel, strides = attribute(node, "kernel_shape"), attribute(node, "strides") or [1, 1]
    dilations, pads = attribute(node, "dilations") or [1, 1], attribute(node, "pads") or [0] * 4
    spans = [(made[a + 2] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1 for a in (0, 1)]
    ends = [max(0, spans[a] - size[a + 2] - pads[a]) for a in (0, 1)]  # what is really used, overrun included
    extra = [max(0, ends[a] - pads[a]) for a in (0, 1)]
    if not any(extra) and pads[2] <= pads[0] and pads[3] <= pads[1]:
        return None
    if len(node.outputs) > 1 or dilations != [1, 1]:
        result.skip(node, "it returns indices or is dilated")
        return None
    base = node.name or "MaxPool"
    if any(extra):
        wide = [size[0], size[1], size[2] + extra[0], size[3] + extra[1]]
        amounts = editor.constant(np.asarray([0] * 6 + extra, np.int64), f"{base}_pads")
        x = editor.node(node, "Pad", [x, amounts], wide, {"mode": "edge"}, hint=f"{base}_edge")
    pads = [pads[0], pads[1], ends[0] - extra[0], ends[1] - extra[1]]
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    return editor.node(node, "MaxPool", [x], made, attributes, hint=base), f"Pad(edge) and MaxPool(pads {pads})"


def _convolution(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    weight = constant_of(input_at(node, 1))
    x = node.inputs[0]
    if weight is None or x is None or weight.ndim != 4:
        return None
    pads = list(attribute(node, "pads") or [0] * 4)
    x, pads = _absorb(x, node, pads)
    dilations = attribute(node, "dilations") or [1, 1]
    pads[2:] = _used_ends(node, x, weight.shape[2:], pads, dilations)
    taps = [max(0, -(-(pads[a + 2] - pads[a]) // dilations[a])) for a in (0, 1)]
    formal = attribute(node, "pads") or [0] * 4
    if not (any(taps) or formal[2] > formal[0] or formal[3] > formal[1]):
        return None
    wide = np.pad(weight, [(0, 0), (0, 0), (taps[0], 0), (taps[1], 0)])
    pads = [pads[0] + taps[0] * dilations[0], pads[1] + taps[1] * dilations[1], pads[2], pads[3]]
    base = node.name or "Conv"
    attributes = {name: attribute(node, name) for name in node.attributes}
    attributes.update(kernel_shape=list(wide.shape[2:]), pads=pads)
    inputs = [x, editor.constant(wide, f"{base}_weight"), *node.inputs[2:]]
    made = editor.node(node, "Conv", inputs, shape_of(node.outputs[0]), attributes, hint=base)
    return made, f"kernel {list(wide.shape[2:])}, pads {pads}"


def _used_ends(node: ir.Node, x: ir.Value, kernel: Any, pads: list[int], dilations: list[int]) -> list[int]:
    """End padding that windows really reach; a stride may leave some of it unread."""
    size, made = shape_of(x) or (), shape_of(node.outputs[0]) or ()
    strides = attribute(node, "strides") or [1, 1]
    reach = [(made[a + 2] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1 for a in (0, 1)]
    return [max(0, reach[a] - size[a + 2] - pads[a]) for a in (0, 1)]


def _absorb(x: ir.Value, node: ir.Node, pads: list[int]) -> tuple[ir.Value, list[int]]:
    """Take a constant zero Pad before the Conv into its pads, as the tool would."""
    pad = x.producer()
    if (
        pad is None
        or pad.op_type != "Pad"
        or only_use(x) is not node
        or attribute(pad, "mode", "constant") != "constant"
    ):
        return x, pads
    amounts, fill = constant_of(input_at(pad, 1)), constant_of(input_at(pad, 2))
    if amounts is None or np.any(amounts[[0, 1, 4, 5]]) or np.any(amounts < 0) or (fill is not None and np.any(fill)):
        return x, pads
    if pad.inputs[0] is None or (input_at(pad, 2) is not None and fill is None):
        return x, pads
    return pad.inputs[0], [
        pads[0] + int(amounts[2]),
        pads[1] + int(amounts[3]),
        pads[2] + int(amounts[6]),
        pads[3] + int(amounts[7]),
    ]


PASS = Pass(
    id="balance-padding",
    summary="no more padding at the end than at the beginning in MaxPool and Conv",
    exactness=BIT_EXACT,
    apply=apply,
)
