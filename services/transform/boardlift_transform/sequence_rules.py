"""Sequences whose length is known: each element is followed to where it is read.

A sequence is a list of values here. Nodes that make one are only noted, and are unused once its readers are replaced:
SequenceAt -> the element, SequenceLength -> a constant, ConcatFromSequence -> Concat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, shape_of, source_of
from boardlift_transform.fold_graph import FoldRule, GraphFolder
from boardlift_transform.pass_result import node_label
from boardlift_transform.refusal import Refusal


class SequenceRules:
    """Rules for one walk over a model, which know what every sequence holds."""

    def __init__(self) -> None:
        """Know no sequence yet."""
        self._elements: dict[ir.Value, list[ir.Value]] = {}

    @property
    def rules(self) -> Mapping[str, FoldRule]:
        """Rules by operator."""
        return {
            "SequenceEmpty": self._construct,
            "SequenceConstruct": self._construct,
            "SequenceInsert": self._insert,
            "SequenceErase": self._erase,
            "SplitToSequence": self._split,
            "Identity": self._copy,
            "SequenceAt": self._at,
            "SequenceLength": self._length,
            "ConcatFromSequence": self._concat,
        }

    def _of(self, node: ir.Node) -> list[ir.Value] | None:
        sequence = node.inputs[0]
        return None if sequence is None else self._elements.get(source_of(sequence))

    def _construct(self, node: ir.Node, folder: GraphFolder) -> bool:
        self._elements[node.outputs[0]] = [v for v in node.inputs if v is not None]
        return False

    def _copy(self, node: ir.Node, folder: GraphFolder) -> bool:
        elements = self._of(node)
        if elements is not None:
            self._elements[node.outputs[0]] = elements
        return False

    def _insert(self, node: ir.Node, folder: GraphFolder) -> bool:
        elements, value = self._of(node), input_at(node, 1)
        if elements is not None and value is not None:
            place = len(elements) if input_at(node, 2) is None else _position(node, 2, len(elements) + 1)
            self._elements[node.outputs[0]] = [*elements[:place], value, *elements[place:]]
        return False

    def _erase(self, node: ir.Node, folder: GraphFolder) -> bool:
        elements = self._of(node)
        if elements is not None:
            place = len(elements) - 1 if input_at(node, 1) is None else _position(node, 1, len(elements))
            self._elements[node.outputs[0]] = elements[:place] + elements[place + 1 :]
        return False

    def _split(self, node: ir.Node, folder: GraphFolder) -> bool:
        x, shape, editor = node.inputs[0], shape_of(node.inputs[0]), folder.editor
        sizes = constant_of(input_at(node, 1))
        if x is None or shape is None or (sizes is None and input_at(node, 1) is not None):
            return False
        axis = int(attribute(node, "axis", 0)) % len(shape)
        ends = np.cumsum(sizes) if sizes is not None and sizes.ndim else _every(shape[axis], sizes)
        starts = [0, *ends[:-1]]
        made = []
        for start, end in zip(starts, ends, strict=True):
            if sizes is None and not attribute(node, "keepdims", 1):
                index = editor.constant(np.asarray(start, np.int64), f"{x.name}_index")
                dims = (*shape[:axis], *shape[axis + 1 :])
                made.append(editor.node(node, "Gather", [x, index], dims, {"axis": axis}, hint=node.name or ""))
                continue
            bounds = [editor.constant(np.asarray([v], np.int64), f"{x.name}_bound") for v in (start, end, axis)]
            dims = (*shape[:axis], int(end) - int(start), *shape[axis + 1 :])
            made.append(editor.node(node, "Slice", [x, *bounds], dims, hint=node.name or ""))
        self._elements[node.outputs[0]] = made
        return False

    def _at(self, node: ir.Node, folder: GraphFolder) -> bool:
        elements = self._of(node)
        if elements is None:
            return False
        return _replaced(node, elements[_position(node, 1, len(elements))], folder, "the element itself")

    def _length(self, node: ir.Node, folder: GraphFolder) -> bool:
        elements = self._of(node)
        if elements is None:
            return False
        length = folder.editor.constant(np.asarray(len(elements), np.int64), f"{node_label(node)}_length")
        return _replaced(node, length, folder, f"constant {len(elements)}")

    def _concat(self, node: ir.Node, folder: GraphFolder) -> bool:
        elements = self._of(node)
        if not elements:
            return False
        axis, stack = int(attribute(node, "axis", 0)), bool(attribute(node, "new_axis", 0))
        joined = concatenate(node, elements, folder.editor, folder.opset, axis, stack=stack)
        return _replaced(node, joined, folder, f"Concat of {len(elements)}")


def _every(length: int, size: object) -> list[int]:
    """Ends of chunks of one size; the last may be smaller."""
    step = 1 if size is None else int(np.asarray(size))
    return [min(end, length) for end in range(step, length + step, step)]


def _position(node: ir.Node, index: int, length: int) -> int:
    """A constant place in a sequence, counted from its start."""
    value = node.inputs[index]
    place = constant_of(source_of(value)) if value is not None else None
    if place is None:
        raise Refusal(
            "SEQUENCE_ON_DATA",
            f"{node.op_type} {node_label(node)} takes its place from {value.name if value else 'nowhere'}, computed",
            remedy="stack the tensors and index them by Gather, or freeze the input that decides (frozen_inputs)",
            metadata={"node": node_label(node)},
        )
    return int(place.reshape(-1)[0]) % max(length, 1)


def _replaced(node: ir.Node, value: ir.Value, folder: GraphFolder, what: str) -> bool:
    label = node_label(node)
    folder.editor.replace(node.outputs[0], value)
    folder.editor.drop(node)
    folder.result.apply(label, node.op_type, what)
    return True


def concatenate(
    anchor: ir.Node, values: Sequence[ir.Value], editor: Editor, opset: int, axis: int, *, stack: bool
) -> ir.Value:
    """Join values before `anchor` along an axis, a new one when `stack` is set; constants give a constant."""
    hint, shapes = f"{anchor.name or anchor.op_type}_joined", [shape_of(v) for v in values]
    arrays = [a for a in map(constant_of, values) if a is not None]
    if len(arrays) == len(values):
        return editor.constant(np.stack(arrays, axis) if stack else np.concatenate(arrays, axis), hint)
    if stack:
        axes = [editor.constant(np.asarray([axis], np.int64), f"{hint}_axes")] if opset >= 13 else []
        attributes = None if axes else {"axes": [axis]}
        shapes = [None if s is None else _with_axis(s, axis) for s in shapes]
        values = [
            editor.node(anchor, "Unsqueeze", [v, *axes], s, attributes, hint=hint)
            for v, s in zip(values, shapes, strict=True)
        ]
    known = [list(s) for s in shapes if s is not None]
    whole = None
    if len(known) == len(shapes):
        whole = known[0]
        whole[axis] = sum(s[axis] for s in known[1:]) + whole[axis]
    return editor.node(anchor, "Concat", values, whole, {"axis": axis}, hint=hint)


def _with_axis(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    place = axis % (len(shape) + 1)
    return (*shape[:place], 1, *shape[place:])
