"""Write ConvTranspose as a Conv whose channels are the phases of the stride, and a pixel shuffle, which stay int16.

Before -> After: `ConvTranspose(stride s)` -> `Conv(s * s times the channels, stride 1)`, `DepthToSpace(s)`, `Slice`;
with stride 1 -> `Conv` of the turned kernel. Phase r of the output reads every s-th tap of the kernel, from r on.
Why: under int16 the tool computes every ConvTranspose in int8, which fails a variant by default; Conv, DepthToSpace and
Slice stay int16. Measured at O1, int16, 8 channels of 10x12: k2 s2 20.8 -> 39.6 us, signal to noise 37.1 -> 48.1 dB; k4
s2 p1 21.0 -> 43.5 us, 35.0 -> 44.1 dB; depthwise 20.8 -> 49.6 us, 36.9 -> 49.2 dB; k3 s1 15.2 -> 18.7 us, 35.4 -> 43.9
dB; 32 channels of 28x28, k4 s2 95.9 -> 439 us, 34.3 -> 41.0 dB, hence the limit of `elements` in the output. Stride 3
costs 468 us instead of 24 (a shuffle of block 3) and stays. Planned for int16 only.
Exactness: float rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, shape_of
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult, rewrite_nodes

STRIDE, TAPS, ELEMENTS = 2, 49, 1 << 16


class _Window(NamedTuple):
    taps: int
    begin: int
    end: int
    rows: int
    crop: int


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 2-D ConvTranspose nodes with constant weights and the same stride along both axes."""
    limits = {"stride": STRIDE, "taps": TAPS, "elements": ELEMENTS}
    limits.update({name: int(parameters[name]) for name in limits if name in parameters})

    def rule(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
        return _rewrite(node, editor, result, limits)

    return rewrite_nodes(model, PASS.id, {"ConvTranspose"}, rule)


def _rewrite(
    node: ir.Node, editor: Editor, result: PassResult, limits: Mapping[str, int]
) -> tuple[ir.Value, str] | None:
    x, weight = node.inputs[0], constant_of(input_at(node, 1))
    size, made = shape_of(x), shape_of(node.outputs[0])
    if x is None or weight is None or weight.ndim != 4 or size is None or made is None:
        return None
    strides, pads = list(attribute(node, "strides") or [1, 1]), list(attribute(node, "pads") or [0] * 4)
    if attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", "") or attribute(node, "output_shape"):
        result.skip(node, "its padding is not explicit")
        return None
    uneven = strides[0] != strides[1] or any(d != 1 for d in attribute(node, "dilations") or ())
    if uneven or strides[0] > limits["stride"]:
        result.skip(node, f"only the same stride along both axes, up to {limits['stride']}, without dilation")
        return None
    if strides[0] > 1 and int(np.prod(made)) > limits["elements"]:
        result.skip(node, f"its output has more than {limits['elements']} elements, which would cost too much time")
        return None
    step, group, base = strides[0], int(attribute(node, "group", 1)), node.name or "ConvTranspose"
    along = [_along(size[a + 2], made[a + 2], weight.shape[a + 2], step, pads[a]) for a in (0, 1)]
    reach = [window.taps for window in along]
    if reach[0] * reach[1] > limits["taps"]:
        result.skip(node, f"{reach[0]}x{reach[1]} taps per phase, more than {limits['taps']}")
        return None
    inputs: list[ir.Value | None] = [x, editor.constant(phase_kernels(weight, step, group, reach), f"{base}_weight")]
    bias = constant_of(input_at(node, 2))
    if bias is not None:
        inputs.append(editor.constant(np.repeat(bias, step * step), f"{base}_bias"))
    attributes = {"kernel_shape": reach, "strides": [1, 1], "dilations": [1, 1], "group": group}
    attributes["pads"] = [w.begin for w in along] + [w.end for w in along]
    rows = [w.rows for w in along]
    value = editor.node(node, "Conv", inputs, [size[0], made[1] * step * step, *rows], attributes, hint=base)
    if step > 1:
        how = {"blocksize": step, "mode": "CRD"}
        whole = [*made[:2], rows[0] * step, rows[1] * step]
        value = editor.node(node, "DepthToSpace", [value], whole, how, hint=f"{base}_shuffle")
    if [row * step for row in rows] != list(made[2:]):
        ends = [w.crop + m for w, m in zip(along, made[2:], strict=True)]
        bounds = {"starts": [w.crop for w in along], "ends": ends, "axes": [2, 3], "steps": [1, 1]}
        given = [editor.constant(np.asarray(v, np.int64), f"{base}_{name}") for name, v in bounds.items()]
        value = editor.node(node, "Slice", [value, *given], made, hint=f"{base}_crop")
    return value, f"Conv of {step * step} phases" if step > 1 else "Conv of the turned kernel"


def _along(size: int, made: int, kernel: int, step: int, cut: int) -> _Window:
    """The Conv along one axis; `cut` elements of the full output go at its beginning."""
    taps = -(-kernel // step)
    dropped = min(cut // step, taps - 1)
    crop, begin = cut - dropped * step, taps - 1 - dropped
    rows = max(-(-(crop + made) // step), size + begin - taps + 1)
    return _Window(taps, begin, rows - (size + begin - taps + 1), rows, crop)


def phase_kernels(weight: Array, step: int, group: int, taps: list[int]) -> Array:
    """Kernels `[out * step * step, in / group, taps, taps]` from a ConvTranspose's `[in, out / group, k, k]`."""
    more = [(0, n * step - k) for n, k in zip(taps, weight.shape[2:], strict=True)]
    wide = np.pad(weight, [(0, 0), (0, 0), *more])
    per_group, out = weight.shape[0] // group, weight.shape[1]
    parts = wide.reshape(group, per_group, out, taps[0], step, taps[1], step)[:, :, :, ::-1, :, ::-1]
    turned = parts.transpose(0, 2, 4, 6, 1, 3, 5)
    return np.ascontiguousarray(turned.reshape(group * out * step * step, per_group, *taps))


PASS = Pass(
    id="shuffle-conv-transpose",
    summary="int16 only: ConvTranspose -> Conv of the stride's phases, DepthToSpace",
    exactness=ROUNDING,
    apply=apply,
    parameters=(
        Parameter("stride", f"largest stride; default {STRIDE}"),
        Parameter("taps", f"most taps per phase; default {TAPS}"),
        Parameter("elements", f"most elements of the output where the stride is not 1; default {ELEMENTS}"),
    ),
)
