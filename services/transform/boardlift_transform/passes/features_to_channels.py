"""Lay out what stands between 1x1 convolutions with features as channels, as the convolutions do.

Before -> After: `Conv -> Transpose [N,C,1,T] to [N,1,T,C] -> LayerNormalization, Add -> Transpose back -> Conv` ->
`Conv -> LayerNormalization, Add on axis 1 -> Conv`: a connected group moves where that takes away more Transposes at
its border than it adds, or as many and it reduces at least `elements`.
Why: `[N,1,T,C]` leaves the layout to the tool; the heads of an attention make it choose tokens as rows of one channel
padded to 8. 300 tokens, 256 features, 4 heads, O1, estimated, with `merge-moves`: int8 17.2 -> 2.3, int16 31 -> 11 ms.
A normalisation of an input, 300 x 560: 15.6 -> 0.4 ms with a Conv of ones at its head, 15.6 ms without.
Exactness: float rounding (the kernels sum in another order).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.axis_factors import chain_of
from boardlift_transform.edit_graph import Editor, attribute, is_constant, shape_of
from boardlift_transform.lift.regions import Groups
from boardlift_transform.lift.rules import REDUCTIONS
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult
from boardlift_transform.permute_axes import can_permute, permute

FREE = frozenset(["Reshape", "Transpose", "Squeeze", "Unsqueeze"])
ELEMENTS = 1 << 12
Perm = list[int]


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Move every group of nodes that gains by it."""
    result, editor, limit = PassResult(), Editor(model.graph, PASS.id), int(parameters.get("elements", ELEMENTS))
    nodes = [n for n in model.graph if can_permute(n)]
    inside, groups = set(nodes), Groups()
    for node in nodes:
        for value in node.inputs:
            if value is not None and not is_constant(value):
                groups.join(node, value.producer() if value.producer() in inside else value)
    members: dict[object, list[ir.Node]] = {}
    for node in nodes:
        members.setdefault(groups.find(node), []).append(node)
    for group in members.values():
        perm = _perm(group)
        entries, exits, gain = _border(group, perm)
        wide = max(math.prod(shape_of(v) or ()) for n in group for v in n.outputs)
        if gain > 0 or (gain == 0 and wide >= limit and any(n.op_type in REDUCTIONS for n in group)):
            result.apply(group[0], f"{len(group)} nodes", f"features as channels, {gain} Transposes less")
            _move(group, perm, entries, exits, editor)
    return result


def _perm(group: list[ir.Node]) -> Perm:
    """Features to axis 1; tokens to axis 3 when one of the other axes is free."""
    values = [v for n in group for v in (*n.inputs, *n.outputs) if v is not None and not is_constant(v)]
    wide = np.max([shape_of(v) or () for v in values], axis=0)
    return [0, 3, 2, 1] if wide[2] == 1 else [0, 3, 1, 2]


def _border(group: list[ir.Node], perm: Perm) -> tuple[list[ir.Value], list[ir.Value], int]:
    """Values that enter and leave, and how many Transposes fewer there would be."""
    inside, back = set(group), [perm.index(i) for i in range(4)]
    given = [v for n in group for v in n.inputs if v is not None and not is_constant(v)]
    entries = [v for v in dict.fromkeys(given) if v.producer() not in inside]
    made = [v for n in group for v in n.outputs]
    exits = [v for v in made if v.is_graph_output() or any(u.node not in inside for u in v.uses())]
    gain = 0
    for value in entries:
        maker = value.producer()
        if maker is None or maker.op_type not in FREE:
            gain -= 1
        elif maker.op_type == "Transpose" and attribute(maker, "perm") == back:
            gain += all(u.node in inside for u in value.uses()) and not value.is_graph_output()
    for value in exits:
        readers = [u.node for u in value.uses() if u.node not in inside]
        gain += sum(r.op_type == "Transpose" and attribute(r, "perm") == perm for r in readers)
        gain -= value.is_graph_output() or any(r.op_type not in FREE for r in readers)
    return entries, exits, gain


def _move(group: list[ir.Node], perm: Perm, entries: list[ir.Value], exits: list[ir.Value], editor: Editor) -> None:
    """Permute all values of the group: Transposes at the border, parameters in between."""
    inside = set(group)
    places = {node: place for place, node in enumerate(editor.graph)}
    back = [perm.index(i) for i in range(4)]
    for value in entries:
        readers = [u for u in value.uses() if u.node in inside]
        first = min((u.node for u in readers), key=places.__getitem__)
        moved = editor.transpose(first, value, perm, hint=f"{value.name}_features")
        if chain_of(value)[0].is_graph_input() and any(n.op_type in REDUCTIONS for n in group):
            moved = _anchor(moved, first, editor)
        for use in readers:
            use.node.replace_input_with(use.idx, moved)
    for node in group:
        permute(node, perm, editor)
    for value in exits:
        readers = [u for u in value.uses() if u.node not in inside]
        anchor = min((u.node for u in readers), key=places.__getitem__, default=None)
        moved = editor.transpose(anchor, value, back, hint=f"{value.name}_tokens")
        for use in readers:
            use.node.replace_input_with(use.idx, moved)
        if value.is_graph_output():  # the group's own readers keep the permuted value
            value.name, moved.name = moved.name, value.name
            editor.graph.outputs[editor.graph.outputs.index(value)] = moved


def _anchor(value: ir.Value, before: ir.Node, editor: Editor) -> ir.Value:
    """Times one, as a Conv: the tool sinks a Transpose of an input through all nodes but this."""
    shape = shape_of(value) or ()
    ones = editor.constant(np.ones((shape[1], 1, 1, 1), np.float32), f"{value.name}_ones")
    window = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "group": shape[1]}
    return editor.node(before, "Conv", [value, ones], shape, window, hint=f"{value.name}_anchor")


PASS = Pass(
    id="features-to-channels",
    summary="LayerNormalization and the like between 1x1 Conv -> features on the channel axis, no Transposes",
    exactness=ROUNDING,
    apply=apply,
    parameters=(Parameter("elements", f"of a normalisation that gains no Transpose, at least; default {ELEMENTS}"),),
)
