"""Write whole-number nearest upsampling as a depthwise ConvTranspose of ones.

Before -> After: `Resize(nearest, x3)` -> `ConvTranspose(ones [C,1,3,3], stride 3, group C)`.
Why: nearest Resize by 2, 4 and 8 runs on the BPU, by 3 on the CPU.
Exactness: bit-exact: every output element is one input element times one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes
from boardlift_transform.resize_places import nearest_rows, places

ON_BPU = frozenset({1, 2, 4, 8})
MAX_SCALE = 14  # ConvTranspose with kernel and stride 16 falls to the CPU


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 4-D Resize nodes whose rounding really repeats every element."""
    return rewrite_nodes(model, PASS.id, {"Resize"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x = node.inputs[0]
    before, after = shape_of(x), shape_of(node.outputs[0])
    if x is None or before is None or after is None or len(before) != 4 or x.dtype != ir.DataType.FLOAT:
        return None
    if attribute(node, "mode", "nearest") != "nearest" or before[:2] != after[:2]:
        return None
    scales = [after[i] // before[i] for i in (2, 3)]
    if any(after[i] != before[i] * s for i, s in zip((2, 3), scales, strict=True)) or set(scales) <= ON_BPU:
        return None
    if max(scales) > MAX_SCALE:
        result.skip(node, f"scale {max(scales)} is too large for ConvTranspose on the BPU")
        return None
    if any(
        not np.array_equal(_taken(node, before[i], s), np.arange(after[i]) // s)
        for i, s in zip((2, 3), scales, strict=True)
    ):
        result.skip(node, "its rounding does not repeat every element the same number of times")
        return None
    base, channels = node.name or "Resize", before[1]
    ones = editor.constant(np.ones((channels, 1, *scales), np.float32), f"{base}_ones")
    attributes = {
        "kernel_shape": scales,
        "strides": scales,
        "group": channels,
        "pads": [0, 0, 0, 0],
        "dilations": [1, 1],
    }
    return editor.node(node, "ConvTranspose", [x, ones], after, attributes, hint=base), "ConvTranspose of ones"


def _taken(node: ir.Node, size: int, scale: int) -> Array:
    """Source index of each output element along one axis."""
    mode = attribute(node, "coordinate_transformation_mode", "half_pixel")
    place = places(mode, size, size * scale, scale) if mode != "align_corners" else None
    if place is None:
        return np.full(size * scale, -1)
    return nearest_rows(attribute(node, "nearest_mode", "round_prefer_floor"), place, size)


PASS = Pass(
    id="replace-upsample", summary="nearest x3 upsampling -> ConvTranspose of ones", exactness=BIT_EXACT, apply=apply
)
