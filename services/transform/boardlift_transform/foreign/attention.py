"""Attention and embedding as onnxruntime's transformer optimiser fuses them, in ONNX's own operators.

Source of the formulas: onnxruntime's description of its contrib operators. A rule returns the new values of the node's
outputs, or the reason why this form is not taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, rank_of, shape_of
from boardlift_transform.foreign.normalise import normalise_last

Made = list[tuple[ir.Value, ir.Value]]
_TYPES = {"Less": ir.DataType.BOOL, "ReduceSum": ir.DataType.INT32}
_DEEPEST = -3e38
_HIDDEN = -10000.0
"""What onnxruntime adds to a score that the mask hides, unless `mask_filter_value` says otherwise."""


@dataclass(frozen=True)
class _Writer:
    """Adds nodes in front of one fused node."""

    node: ir.Node
    editor: Editor

    @property
    def real(self) -> ir.DataType:
        """Type of the floats that go in."""
        kinds = [v.dtype for v in self.node.inputs if v is not None]
        return next((k for k in kinds if k is not None and k.is_floating_point()), ir.DataType.FLOAT)

    def add(
        self, kind: str, *inputs: ir.Value | None, shape: list[int] | None = None, **attributes: object
    ) -> ir.Value:
        """A node; a move keeps the type, everything else but a few makes floats."""
        kept = inputs[0].dtype if kind in ("Reshape", "Transpose") and inputs[0] is not None else None
        made = kept or _TYPES.get(kind, self.real)
        return self.editor.node(self.node, kind, inputs, shape, attributes, hint=f"{self.node.name}_{kind}", dtype=made)

    def number(self, array: Array | float) -> ir.Value:
        """A constant of that type, no deeper than the type goes."""
        kind = self.real.numpy()
        low = float(np.finfo(kind).min) if kind.kind == "f" else _DEEPEST
        return self.editor.constant(np.maximum(array, low).astype(kind), f"{self.node.name}_number")

    def reshape(self, value: ir.Value, *dims: int) -> ir.Value:
        """A Reshape; 0 copies a dimension."""
        whole = self.editor.constant(np.asarray(dims, np.int64), f"{self.node.name}_dims")
        return self.add("Reshape", value, whole)


def _unread(node: ir.Node, *places: int) -> bool:
    outputs = [node.outputs[p] for p in places if p < len(node.outputs)]
    return not any(o.uses() or o.is_graph_output() for o in outputs)


def attend(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    """Attention (one joint projection) and MultiHeadAttention (three projected inputs) without a past."""
    writer = _Writer(node, editor)
    joint = node.op_type == "Attention"
    if not _unread(node, 1, 2, 3) or any(input_at(node, i) is not None for i in ((4, 6) if joint else (6, 7, 8, 9))):
        return "it carries keys and values from before"
    if attribute(node, "do_rotary", 0) or attribute(node, "qkv_hidden_sizes"):
        return "rotary positions, or widths of its own per part"
    parts = _joint(writer) if joint else _separate(writer)
    if isinstance(parts, str):
        return parts
    queries, keys, values, width = parts
    heads = int(attribute(node, "num_heads"))
    scale = float(attribute(node, "scale", 0.0)) or (width // heads) ** -0.5
    turns = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    q, k, v = (
        writer.add("Transpose", writer.reshape(p, 0, 0, heads, -1), perm=turn)
        for p, turn in zip((queries, keys, values), turns, strict=True)
    )
    scores = writer.add("Mul", writer.add("MatMul", q, k), writer.number(scale))
    for term in (_mask(writer, input_at(node, 3 if joint else 4)), _causal(writer), input_at(node, 5)):
        if isinstance(term, str):
            return term
        if term is not None:
            scores = writer.add("Add", scores, term)
    mixed = writer.add("MatMul", writer.add("Softmax", scores, axis=3), v)
    return [(node.outputs[0], writer.reshape(writer.add("Transpose", mixed, perm=[0, 2, 1, 3]), 0, 0, -1))]


def _joint(writer: _Writer) -> tuple[ir.Value, ir.Value, ir.Value, int] | str:
    x, weight = writer.node.inputs[0], constant_of(input_at(writer.node, 1))
    given = input_at(writer.node, 2)
    bias = constant_of(given)
    if x is None or weight is None or (given is not None and bias is None):
        return "its weights are computed"
    made = []
    for index, columns in enumerate(np.split(weight, 3, axis=1)):
        part = writer.add("MatMul", x, writer.editor.constant(columns, f"{writer.node.name}_weight"))
        if bias is not None:
            part = writer.add("Add", part, writer.number(np.split(bias, 3)[index]))
        made.append(part)
    return made[0], made[1], made[2], weight.shape[1] // 3


def _separate(writer: _Writer) -> tuple[ir.Value, ir.Value, ir.Value, int] | str:
    parts = [v for v in writer.node.inputs[:3] if v is not None]
    given = input_at(writer.node, 3)
    bias = constant_of(given)
    width = (shape_of(parts[0]) or (0,))[-1]
    if len(parts) < 3 or any(rank_of(p) != 3 for p in parts):
        return "queries, keys and values are no three tensors of rank 3"
    if not width or (given is not None and bias is None):
        return "the width is not known, or the bias is computed"
    if bias is not None:
        cuts = np.split(bias, [width, 2 * width])
        parts = [writer.add("Add", p, writer.number(c)) for p, c in zip(parts, cuts, strict=True)]
    return parts[0], parts[1], parts[2], width


def _mask(writer: _Writer, given: ir.Value | None) -> ir.Value | str | None:
    """Per key 1 where it is seen, `[batch, keys]`; or per sequence how many are, `[batch]`."""
    if given is None:
        return None
    sized = shape_of(writer.node.inputs[0 if writer.node.op_type == "Attention" else 1])
    if rank_of(given) == 1 and sized is not None and shape_of(given) == sized[:1]:
        keys = writer.editor.constant(np.arange(sized[1], dtype=np.int32), f"{writer.node.name}_keys")
        given = writer.add("Less", keys, writer.reshape(given, 0, 1))
    elif rank_of(given) != 2:
        return "a mask of another form than [batch, keys] and [batch]"
    seen = writer.reshape(writer.add("Cast", given, to=int(writer.real)), 0, 1, 1, -1)
    hidden = writer.add("Sub", writer.number(1.0), seen)
    return writer.add("Mul", hidden, writer.number(float(attribute(writer.node, "mask_filter_value", _HIDDEN))))


def _causal(writer: _Writer) -> ir.Value | str | None:
    if not attribute(writer.node, "unidirectional", 0):
        return None
    shape = shape_of(writer.node.inputs[0])
    if shape is None:
        return "causal over an unknown number of tokens"
    low = float(attribute(writer.node, "mask_filter_value", _HIDDEN))
    return writer.number(np.triu(np.full((1, 1, shape[1], shape[1]), low, np.float32), 1))


def embed(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    """EmbedLayerNormalization: rows of words, positions and segments, added and normalised."""
    writer = _Writer(node, editor)
    ids, segments, words, places, kinds, gamma, beta = (input_at(node, i) for i in range(7))
    shape, table, mask, given = shape_of(ids), constant_of(places), input_at(node, 7), input_at(node, 8)
    if shape is None or len(shape) != 2 or table is None:
        return "ids of unknown shape, or computed positions"
    total = writer.add("Gather", words, ids, axis=0)
    rows = writer.number(table[None, : shape[1]]) if given is None else writer.add("Gather", places, given, axis=0)
    total = writer.add("Add", total, rows)
    if segments is not None and kinds is not None:
        total = writer.add("Add", total, writer.add("Gather", kinds, segments, axis=0))
    total.shape = ir.Shape([*shape, table.shape[1]])
    epsilon = float(attribute(node, "epsilon", 1e-12))
    made = [(node.outputs[0], normalise_last(node, editor, total, gamma, beta, epsilon, opset))]
    if not _unread(node, 1):
        if mask is None:
            return "the length of a mask that is not there is read"
        if opset < 13:
            length = writer.add("ReduceSum", mask, keepdims=0, axes=[1])
        else:
            axes = editor.constant(np.asarray([1], np.int64), f"{node.name}_axes")
            length = writer.add("ReduceSum", mask, axes, keepdims=0)
        made.append((node.outputs[1], length))
    if not _unread(node, 2):
        made.append((node.outputs[2], total))
    return made
