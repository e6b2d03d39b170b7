"""Take uneven padding and holes out of ConvTranspose: compute more, cut off with a Slice.

Before -> After: `ConvTranspose(k, stride s, pads [b, e])`, b != e or k < s -> `ConvTranspose(max(k, s), zeros at the
end, pads 0)`, `Slice`.
Why: the tool puts a ConvTranspose whose kernel is smaller than its stride on the CPU, and fails there when its padding
is uneven ("pads only currently support p[0] == p[2]").
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 2-D ConvTranspose nodes with constant weights and no dilation."""
    return rewrite_nodes(model, PASS.id, {"ConvTranspose"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, weight = node.inputs[0], constant_of(input_at(node, 1))
    size, made = shape_of(x), shape_of(node.outputs[0])
    if x is None or weight is None or weight.ndim != 4 or size is None or made is None:
        return None
    if any(d != 1 for d in attribute(node, "dilations") or ()):
        result.skip(node, "it is dilated")
        return None
    kernel, strides = weight.shape[2:], attribute(node, "strides") or [1, 1]
    begins = _begins(node, size, made, kernel, strides)
    wide = [max(k, s) for k, s in zip(kernel, strides, strict=True)]
    full = [(size[a + 2] - 1) * strides[a] + wide[a] for a in (0, 1)]
    extra = [max(0, begins[a] + made[a + 2] - full[a]) for a in (0, 1)]
    cuts = [full[a] + extra[a] - begins[a] - made[a + 2] for a in (0, 1)]
    if begins == cuts and wide == list(kernel):
        return None
    if any(e >= s for e, s in zip(extra, strides, strict=True) if e):
        result.skip(node, "its output reaches far beyond its last element")
        return None
    base = node.name or "ConvTranspose"
    array = np.pad(weight, [(0, 0), (0, 0), *((0, w - k) for w, k in zip(wide, kernel, strict=True))])
    inputs = [x, editor.constant(array, f"{base}_weight"), *node.inputs[2:]]
    attributes = {
        "kernel_shape": wide,
        "strides": list(strides),
        "pads": [0] * 4,
        "output_padding": extra,
        "group": int(attribute(node, "group", 1)),
        "dilations": [1, 1],
    }
    whole = [*made[:2], *(f + e for f, e in zip(full, extra, strict=True))]
    value = editor.node(node, "ConvTranspose", inputs, whole, attributes, hint=base)
    window = {"starts": begins, "ends": [b + m for b, m in zip(begins, made[2:], strict=True)], "axes": [2, 3]}
    bounds = [editor.constant(np.asarray(v, np.int64), f"{base}_{name}") for name, v in window.items()]
    return editor.node(node, "Slice", [value, *bounds], made, hint=f"{base}_crop"), f"kernel {wide}, Slice"


def _begins(node: ir.Node, size: Any, made: Any, kernel: Any, strides: Any) -> list[int]:
    """Elements cut at the beginning, auto_pad and output_shape worked out as in the ONNX operator's text."""
    mode, extra = attribute(node, "auto_pad", "NOTSET"), attribute(node, "output_padding") or [0, 0]
    if mode in ("NOTSET", "") and "output_shape" not in node.attributes:
        return list((attribute(node, "pads") or [0] * 4)[:2])
    totals = [strides[a] * (size[a + 2] - 1) + extra[a] + kernel[a] - made[a + 2] for a in (0, 1)]
    if mode == "VALID":
        return [0, 0]
    return [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in totals]


PASS = Pass(
    id="crop-conv-transpose",
    summary="ConvTranspose with uneven padding or holes -> no padding, Slice",
    exactness=BIT_EXACT,
    apply=apply,
)
