"""Drop the taps of a convolution that read padding only.

Before -> After: `Conv(k, dilations d, pads p)` -> `Conv(k' < k, dilations d, pads p' < p)`, the middle of the same
weights.
Why: an image smaller than the one a network was made for leaves rates that reach past the map (deeplabv3). A Conv of
rate 24 or 36 runs on the CPU, one of rate 12 is computed in int8 under int16, as it is too wide to be written without
its dilation; and all take nine taps for one.
Exactness: float rounding (a sum without its zeros may be taken in another order).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 2-D Conv nodes with constant weights, grouped ones included."""
    return rewrite_nodes(model, PASS.id, {"Conv"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    weight, size, made = constant_of(input_at(node, 1)), shape_of(node.inputs[0]), shape_of(node.outputs[0])
    if weight is None or weight.ndim != 4 or size is None or made is None:
        return None
    if attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", ""):
        return None
    strides, dilations = attribute(node, "strides") or [1, 1], attribute(node, "dilations") or [1, 1]
    pads = list(attribute(node, "pads") or [0] * 4)
    kept = []
    for axis in (0, 1):
        step, rate = strides[axis], dilations[axis]
        first, last = live_taps(size[axis + 2], made[axis + 2], weight.shape[axis + 2], pads[axis], step, rate)
        before, span = pads[axis] - first * rate, (last - first) * rate + 1
        after = max(0, (made[axis + 2] - 1) * step + span - size[axis + 2] - before)
        windows = (size[axis + 2] + before + after - span) // step + 1
        if before < 0 or windows != made[axis + 2]:  # what is left would need a crop
            first, last = 0, weight.shape[axis + 2] - 1
        else:
            pads[axis], pads[axis + 2] = before, after
        kept.append(slice(first, last + 1))
    cut = weight[:, :, kept[0], kept[1]]
    if cut.shape == weight.shape:
        return None
    base, kernel = node.name or "Conv", list(cut.shape[2:])
    inputs = [node.inputs[0], editor.constant(cut.copy(), f"{base}_weight"), *node.inputs[2:]]
    rates = [d if k > 1 else 1 for k, d in zip(kernel, dilations, strict=True)]
    attributes = {name: attribute(node, name) for name in node.attributes}
    attributes.update(kernel_shape=kernel, pads=pads, dilations=rates)
    return editor.node(node, "Conv", inputs, made, attributes, hint=base), f"kernel {kernel}, pads {pads}"


def live_taps(size: int, made: int, taps: int, pad: int, step: int, rate: int) -> tuple[int, int]:
    """Return the first and the last tap along one axis that reads a row of the map; all of them when none does.

    Args:
        size: Rows of the map.
        made: Rows of the output.
        taps: Taps of the kernel.
        pad: Rows of padding in front.
        step: Stride.
        rate: Dilation.
    """
    alive = [t for t in range(taps) if any(0 <= row * step - pad + t * rate < size for row in range(made))]
    return (alive[0], alive[-1]) if alive else (0, taps - 1)


PASS = Pass(
    id="drop-padding-taps",
    summary="Conv whose outer taps read padding only -> Conv without them",
    exactness=ROUNDING,
    apply=apply,
)
