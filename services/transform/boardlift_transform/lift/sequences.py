"""Sequences and states of recurrent operators in batch-first form, and back."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, shape_of


def batch_first(node: ir.Node, editor: Editor) -> ir.Value:
    """X as `[N, T, D]`, `[N, D]` for one step."""
    x = node.inputs[0]
    shape = shape_of(x)
    if x is None or shape is None:
        raise ValueError("the shape was checked")
    steps, batch, width = shape
    if steps == 1:
        return editor.reshape(node, x, [batch, width], hint=f"{node.name}_row")
    maker = x.producer()
    if maker is not None and maker.op_type == "Transpose" and attribute(maker, "perm") == [1, 0, 2]:
        source: ir.Value | None = maker.inputs[0]
        if source is not None:
            return source
    return editor.transpose(node, x, [1, 0, 2], hint=f"{node.name}_batch_first")


def fed_product(node: ir.Node, editor: Editor, x: ir.Value, weight: Array, bias: Array) -> ir.Value:
    """`x @ W.T + b` for all steps."""
    shape = [*(shape_of(x) or ())[:-1], len(weight)]
    if len(shape) == 2:
        operands = [editor.constant(a, f"{node.name}_{n}") for a, n in ((weight, "weight"), (bias, "bias"))]
        return editor.node(node, "Gemm", [x, *operands], shape, {"transB": 1}, hint=f"{node.name}_fed")
    matrix = editor.constant(np.ascontiguousarray(weight.T), f"{node.name}_weight")
    product = editor.node(node, "MatMul", [x, matrix], shape, hint=f"{node.name}_fed")
    return editor.node(node, "Add", [product, editor.constant(bias, f"{node.name}_bias")], shape)


def step_of(node: ir.Node, editor: Editor, fed: ir.Value, step: int, steps: int) -> ir.Value:
    """`[N, G]` of one step."""
    shape = shape_of(fed) or ()
    if steps == 1:
        return fed
    index = editor.constant(np.asarray(step, np.int64), f"{node.name}_step")
    return editor.node(node, "Gather", [fed, index], [shape[0], shape[2]], {"axis": 1}, hint=f"{node.name}_at_{step}")


def initial_state(node: ir.Node, editor: Editor, place: int, index: int) -> ir.Value | None:
    """`[N, H]` of an initial state `[directions, N, H]`; None when it is zero."""
    given = input_at(node, place)
    shape, array = shape_of(given), constant_of(given)
    if given is None or shape is None or (array is not None and not array.any()):
        return None
    if array is not None:
        return editor.constant(array[index], f"{node.name}_initial")
    if shape[0] == 1:
        return editor.reshape(node, given, list(shape[1:]), hint=f"{node.name}_initial")
    at = editor.constant(np.asarray(index, np.int64), f"{node.name}_direction")
    return editor.node(node, "Gather", [given, at], list(shape[1:]), {"axis": 0}, hint=f"{node.name}_initial")


def write_outputs(
    node: ir.Node, editor: Editor, sequences: list[list[ir.Value]], lasts: list[list[ir.Value | None]], batch: int
) -> None:
    """Y `[T, directions, N, H]`, and the last states `[directions, N, H]`, in place of the node's outputs."""
    hidden, steps = (shape_of(sequences[0][0]) or (0, 0))[1], len(sequences[0])
    if steps > 1:
        _serve_time_first(node, editor, sequences, batch, hidden)
    for place, output in enumerate(node.outputs):
        if place:
            _serve_states(output, editor, [last[place - 1] for last in lasts])
        if not output.uses() and not output.is_graph_output():
            continue
        parts = [_sequence(node, editor, s) for s in sequences] if place == 0 else [last[place - 1] for last in lasts]
        if place == 0 and steps > 1:
            parts = [editor.transpose(node, p, [1, 0, 2]) for p in parts if p is not None]
        axis, shape = (1, [steps, 1, batch, hidden]) if place == 0 else (0, [1, batch, hidden])
        wide = [
            editor.node(node, "Unsqueeze", [p], shape, {"axes": _new_axes(p, shape, axis)}, hint=f"{node.name}_out")
            for p in parts
        ]
        shape = [d * len(wide) if i == axis else d for i, d in enumerate(shape)]
        joined = wide[0] if len(wide) == 1 else editor.node(node, "Concat", wide, shape, {"axis": axis})
        editor.replace(output, joined)


def _serve_time_first(node: ir.Node, editor: Editor, sequences: list[list[ir.Value]], batch: int, hidden: int) -> None:
    """Readers of Y as `[T, N, directions * H]`, which is how exporters read it, get it without leaving batch first."""
    ways, steps = len(sequences), len(sequences[0])
    plain = (steps, batch, ways * hidden)
    whole: ir.Value | None = None
    for reader in [use.node for use in node.outputs[0].uses()]:
        moved = reader.op_type == "Transpose" and attribute(reader, "perm") == [0, 2, 1, 3]
        for shaper in [use.node for use in reader.outputs[0].uses()] if moved else [reader]:
            squeezes = shaper.op_type == "Squeeze" and attribute(shaper, "axes") == [1] and ways == 1 and not moved
            reshapes = shaper.op_type == "Reshape" and (moved or ways == 1) and shape_of(shaper.outputs[0]) == plain
            if not (squeezes or reshapes) or shape_of(shaper.outputs[0]) != plain:
                continue
            if whole is None:
                parts = [_sequence(node, editor, s) for s in sequences]
                wide = [batch, steps, ways * hidden]
                whole = parts[0] if ways == 1 else editor.node(node, "Concat", parts, wide, {"axis": 2})
            _serve(node, editor, shaper.outputs[0], whole, sequences)


def _serve(node: ir.Node, editor: Editor, old: ir.Value, whole: ir.Value, sequences: list[list[ir.Value]]) -> None:
    for reader in [use.node for use in old.uses()]:
        index = constant_of(input_at(reader, 1)) if reader.op_type == "Gather" else None
        if reader.op_type == "Transpose" and attribute(reader, "perm") == [1, 0, 2]:
            editor.replace(reader.outputs[0], whole)
        elif len(sequences) == 1 and index is not None and index.ndim == 0 and not attribute(reader, "axis", 0):
            editor.replace(reader.outputs[0], sequences[0][int(index)])
    if old.uses() or old.is_graph_output():
        editor.replace(old, editor.transpose(node, whole, [1, 0, 2], hint=f"{node.name}_time_first"))


def _serve_states(output: ir.Value, editor: Editor, states: list[ir.Value | None]) -> None:
    """Readers of one direction's last state `[N, H]` get it directly."""
    for reader in [use.node for use in output.uses()]:
        index = constant_of(input_at(reader, 1)) if reader.op_type == "Gather" else None
        taken = index is not None and index.ndim == 0 and not attribute(reader, "axis", 0)
        squeezed = reader.op_type == "Squeeze" and attribute(reader, "axes") == [0] and len(states) == 1
        state = states[int(index) if index is not None and taken else 0]
        if (taken or squeezed) and state is not None:
            editor.replace(reader.outputs[0], state)


def _sequence(node: ir.Node, editor: Editor, made: list[ir.Value]) -> ir.Value:
    """`[N, T, H]`, `[N, H]` for one step."""
    if len(made) == 1:
        return made[0]
    batch, hidden = shape_of(made[0]) or (0, 0)
    rows = [editor.node(node, "Unsqueeze", [m], [batch, 1, hidden], {"axes": [1]}) for m in made]
    return editor.node(node, "Concat", rows, [batch, len(made), hidden], {"axis": 1})


def _new_axes(part: ir.Value | None, shape: list[int], axis: int) -> list[int]:
    rank = len(shape_of(part) or ())
    return [axis] if rank == 3 else list(range(len(shape) - rank))
