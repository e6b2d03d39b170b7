"""Work out the shapes that the installed onnx infers wrongly or not at all.

Found by holding inference against runs of every shipped node case and of random ones: an STFT that leaves `onesided` at
its default is given all bins, an Attention on packed heads of unknown size is given a last size of 0, and
GroupNormalization is given none. A wrong shape is worse than none here, because lower forms are chosen by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import onnx
from onnx import TypeProto, helper

if TYPE_CHECKING:
    from boardlift_transform.opset.scope import Scope, Shape

Rule = Callable[["Scope", onnx.NodeProto], "Shape | None"]


def like_first(scope: Scope, node: onnx.NodeProto) -> Shape | None:
    """The shape of the first input."""
    return scope.shape(node.input[0])


def stft(scope: Scope, node: onnx.NodeProto) -> Shape | None:
    """[batch, frames, bins, 2]."""
    signal = scope.shape(node.input[0])
    if signal is None:
        return None
    given = [scope.const(node.input[i]) if i < len(node.input) else None for i in (1, 3)]
    window = scope.shape(node.input[2]) if len(node.input) > 2 else None
    length = int(given[1].ravel()[0]) if given[1] is not None else (window[0] if window else None)
    onesided = next((a.i for a in node.attribute if a.name == "onesided"), 1)
    bins = None if length is None else length // 2 + 1 if onesided else length
    frames = None
    if length is not None and given[0] is not None and signal[1] is not None:
        frames = (signal[1] - length) // int(given[0].ravel()[0]) + 1
    return (signal[0], frames, bins, 2)


def attention(scope: Scope, node: onnx.NodeProto) -> Shape | None:
    """[batch, heads, steps, size] for separate heads, [batch, steps, heads * size] for packed ones."""
    query, value = scope.shape(node.input[0]), scope.shape(node.input[2])
    if query is None or value is None:
        return None
    if len(query) == 4:
        return (*query[:3], value[3])
    heads = {a.name: a.i for a in node.attribute if a.name in ("q_num_heads", "kv_num_heads")}
    hidden = value[2]
    if hidden is not None and len(heads) == 2:
        hidden = heads["q_num_heads"] * (hidden // heads["kv_num_heads"])
    return (query[0], query[1], hidden if len(heads) == 2 else None)


RULES: dict[str, Rule] = {"GroupNormalization": like_first, "STFT": stft, "Attention": attention}
"""Operator -> shape of its first output; other outputs get their element type only."""
MISLEADING = frozenset({"STFT", "Attention"})
"""Operators after which inference over a whole model can't be trusted."""


def corrected(scope: Scope, node: onnx.NodeProto, found: Mapping[str, TypeProto]) -> dict[str, TypeProto]:
    """Inferred types of a node with the shapes put right.

    Args:
        scope: Facts of the graph.
        node: A node whose operator has a rule.
        found: Types as onnx infers them.

    Returns:
        The same element types; the first output in the shape of the rule, the others in none.
    """
    right = {}
    for i, name in enumerate(node.output):
        if name in found:
            shape = RULES[node.op_type](scope, node) if i == 0 else None
            right[name] = helper.make_tensor_type_proto(found[name].tensor_type.elem_type, shape)
    return right
