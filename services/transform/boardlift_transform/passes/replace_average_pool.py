"""Replace AveragePool that is padded (count_include_pad = 0) or wide by what the board computes right.

Before -> After: `AveragePool(k, pads)` -> `Conv(group=C, weight 1/k^2, pads) -> Mul([1,1,H,W])`, the factor k^2/n
where n is the number of elements inside the image; a window of the whole image -> GlobalAveragePool.
Why: the integer model and the BPU divide by the full window on the border (error up to 0.8 on unit-scale data) while
the tool's log says cosine 0.9996. A window wider than 7 is pooled in int8 with a coarse result, under int16 too:
measured 4 % of the output's range off at 8x8 and 16 % at 14x14, 0.2 and 0.5 % in the new form. A pool that counts its
padding and has more of it at the end is wrong on the last rows under int16; as a Conv it can be balanced.
Exactness: float rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes

WIDEST = 7


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 2-D pools whose windows reach over the border, unevenly, or are wider than the tool pools well."""
    return rewrite_nodes(model, PASS.id, {"AveragePool"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, out = node.inputs[0], node.outputs[0]
    size, made = shape_of(x), shape_of(out)
    if x is None or size is None or made is None or len(size) != 4:
        return None
    if attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", ""):
        result.skip(node, "its padding is not explicit")
        return None
    kernel = attribute(node, "kernel_shape")
    strides, pads = attribute(node, "strides") or [1, 1], list(attribute(node, "pads") or [0] * 4)
    overrun = [max(0, (made[a + 2] - 1) * strides[a] + kernel[a] - size[a + 2] - pads[a] - pads[a + 2]) for a in (0, 1)]
    if not any(pads) and not any(overrun) and list(kernel) == list(size[2:]) and max(kernel) > WIDEST:
        return editor.node(node, "GlobalAveragePool", [x], made, hint=node.name or ""), "GlobalAveragePool"
    divides_alike = attribute(node, "count_include_pad", 0) or not any(pads)
    end_heavy = any(pads[a + 2] > pads[a] for a in (0, 1))
    if divides_alike and not any(overrun) and not end_heavy and max(kernel) <= WIDEST:
        return None
    counts = [_count(size[a + 2], made[a + 2], kernel[a], strides[a], pads[a], pads[a + 2], node) for a in (0, 1)]
    area = float(kernel[0] * kernel[1])
    channels = size[1]
    base = node.name or "AveragePool"
    weight = np.full((channels, 1, *kernel), 1.0 / area, np.float32)
    factor = (area / np.outer(counts[0], counts[1])).astype(np.float32).reshape(1, 1, made[2], made[3])
    attributes = {
        "kernel_shape": list(kernel),
        "strides": list(strides),
        "pads": [pads[0], pads[1], pads[2] + overrun[0], pads[3] + overrun[1]],
        "dilations": [1, 1],
        "group": channels,
    }
    value = editor.node(node, "Conv", [x, editor.constant(weight, f"{base}_weight")], made, attributes, hint=base)
    if not np.all(factor == 1):
        value = editor.node(
            node, "Mul", [value, editor.constant(factor, f"{base}_border")], made, hint=f"{base}_border"
        )
    return value, "depthwise Conv and border factor"


def _count(size: int, made: int, kernel: int, stride: int, begin: int, end: int, node: ir.Node) -> Any:
    """Elements that each window along one axis divides by."""
    starts = np.arange(made) * stride - begin
    low, high = (-begin, size + end) if attribute(node, "count_include_pad", 0) else (0, size)
    return np.minimum(starts + kernel, high) - np.maximum(starts, low)


PASS = Pass(
    id="replace-average-pool",
    summary="padded or wide AveragePool -> depthwise Conv and border factor, or GlobalAveragePool",
    exactness=ROUNDING,
    apply=apply,
)
