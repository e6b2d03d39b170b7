"""Write dilated convolutions as plain ones with zeros between the taps, where the tool needs it.

Before -> After: `Conv(k, dilations d)` -> `Conv((k - 1) * d + 1, zeros between)`; a dilation along an axis whose
kernel is 1 does nothing and is taken away.
Why: a Conv with a dilation and a stride runs on the CPU, and the tool refuses it there when its padding is uneven; and
under int16 every dilated Conv is computed in int8. On a Slice a few nodes behind a dilated Conv the compiler gives up
("passes may have infinite loop"), and of a Gather in its place the code dies in the simulator; undilated, the Slice is
compiled, and faster (3x3 of dilation 3, 16x12x14, int8: 15.8 -> 6.7 us). So it is done with a stride or a Slice behind
it always, else for int16 only (parameter `always`), up to `taps` taps of the wider kernel.
Exactness: bit-exact (zero taps add zero).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Parameter, Pass, PassResult, rewrite_nodes

TAPS = 121
REACH = 4
CUTS = frozenset({"Slice", "Split", "Gather", "Pad"})
STOPS = frozenset({"Conv", "ConvTranspose", "MatMul", "Gemm"})


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 2-D Conv nodes with constant weights."""
    limit, always = int(parameters.get("taps", TAPS)), bool(parameters.get("always", False))

    def rule(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
        return _rewrite(node, editor, result, limit, always)

    return rewrite_nodes(model, PASS.id, {"Conv"}, rule)


def _rewrite(
    node: ir.Node, editor: Editor, result: PassResult, limit: int, always: bool
) -> tuple[ir.Value, str] | None:
    x, weight, dilations = node.inputs[0], constant_of(input_at(node, 1)), attribute(node, "dilations") or []
    if x is None or weight is None or weight.ndim != 4 or all(d == 1 for d in dilations):
        return None
    kernel, strides = weight.shape[2:], attribute(node, "strides") or [1, 1]
    real = [d if k > 1 else 1 for k, d in zip(kernel, dilations, strict=True)]
    wide = [(k - 1) * d + 1 for k, d in zip(kernel, real, strict=True)]
    needed = always or any(s != 1 for s in strides) or feeds_cut(node, REACH)
    if real == list(dilations) and not needed:
        return None
    spread = real != [1, 1] and needed
    if spread and wide[0] * wide[1] > limit:
        result.skip(node, f"its kernel would have {wide[0]}x{wide[1]} taps, more than {limit}")
        spread = False
        if real == list(dilations):
            return None
    base = node.name or "Conv"
    attributes = {name: attribute(node, name) for name in node.attributes}
    inputs: list[ir.Value | None] = list(node.inputs)
    if spread:
        array = np.zeros((*weight.shape[:2], *wide), weight.dtype)
        array[:, :, :: real[0], :: real[1]] = weight
        inputs[1] = editor.constant(array, f"{base}_weight")
        attributes.update(kernel_shape=wide, dilations=[1, 1])
    else:
        attributes["dilations"] = real
    made = editor.node(node, "Conv", inputs, shape_of(node.outputs[0]), attributes, hint=base)
    return made, f"kernel {wide if spread else list(kernel)}, dilations {attributes['dilations']}"


def feeds_cut(node: ir.Node, reach: int) -> bool:
    """True when a Slice, or what becomes one, stands at most `reach` nodes behind with no other layer between."""
    readers = [use.node for out in node.outputs for use in out.uses() if use.node.op_type not in STOPS]
    return any(n.op_type in CUTS or (reach > 1 and feeds_cut(n, reach - 1)) for n in readers)


PASS = Pass(
    id="undilate-conv",
    summary="dilated Conv with a stride, before a Slice, or under int16 -> zeros between the taps",
    exactness=BIT_EXACT,
    apply=apply,
    parameters=(
        Parameter("always", "rewrite without a stride too, for int16; default false"),
        Parameter("taps", f"most taps of a rewritten kernel; default {TAPS}"),
    ),
)
