"""Compute both branches of an If on data, and select (if-conversion).

Before -> After: `If(c) {then: a} {else: b}` -> the nodes of both branches, and `Where(c, a, b)` per output.
Why: the tool has no control flow. A Where of two feature maps by one condition runs on the BPU; the tool makes it a sum
of products with 0 and 1, so a branch that is no number where it is not taken would spoil the result: `check_branches`
looks at both on every sample.
Needs the same type and static shape from both branches. Both run every time: of n nested branches, each node once.
Tried: Concat of both and Gather by the condition is estimated at 58 instead of 66 us for 24x16x16 in int16, but holds
the batch in an axis of its own, so that calibration falls back to batch 1.
Exactness: bit-exact, Where picks one of two values; constants of the branches are folded as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, constant_of, remove_unused, shape_of, source_of
from boardlift_transform.fold_graph import GraphFolder, fold_graph
from boardlift_transform.inline_graph import inline_before, rename_values
from boardlift_transform.inspect import count_macs
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, node_label
from boardlift_transform.refusal import Refusal

BRANCH, CONDITION = "boardlift.branch", "boardlift.condition"
"""Metadata: branches that a node stood in, inner ones first, a line `then NAME` or `else NAME` each; and the name of
the If whose condition a node makes."""
_SELECTED = frozenset(
    getattr(ir.DataType, name)
    for name in ("FLOAT", "FLOAT16", "DOUBLE", "INT8", "UINT8", "INT32", "UINT32", "INT64", "BOOL")
)


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Replace every If, inner ones first.

    Raises:
        Refusal: BRANCHES_DIFFER, with the node.
    """
    result = fold_graph(model, PASS.id, rules={"If": _convert})
    remove_unused(model.graph)
    return result


def _convert(node: ir.Node, folder: GraphFolder) -> bool:
    label, editor, decides = node_label(node), folder.editor, node.inputs[0]
    if decides is None:
        return False
    branches = {name: node.attributes[f"{name}_branch"].as_graph() for name in ("then", "else")}
    for index, pair in enumerate(zip(*(b.outputs for b in branches.values()), strict=True)):
        _check(label, index, *pair)
    made, work = [], []
    for name, branch in branches.items():
        rename_values(branch, editor)
        nodes = list(branch)
        work.append(f"{name}: {len(nodes)} nodes, {sum(map(count_macs, nodes))} multiply-accumulates")
        for inner in nodes:
            before = inner.metadata_props.get(BRANCH)
            inner.metadata_props[BRANCH] = f"{before}\n{name} {label}" if before else f"{name} {label}"
        made.append(inline_before(node, branch, editor))
    condition = editor.reshape(node, decides, (1, 1, 1, 1), (1, 1, 1, 1), hint=f"{label}_condition")
    maker = condition.producer()
    if maker is not None:
        maker.metadata_props[CONDITION] = label
    for old, then, otherwise in zip(node.outputs, *made, strict=True):
        editor.replace(old, then if then is otherwise else _select(node, condition, then, otherwise, editor))
    editor.drop(node)
    folder.result.apply(label, "If", f"both branches and Where ({'; '.join(work)})")
    return True


def _check(label: str, index: int, then: ir.Value, otherwise: ir.Value) -> None:
    """Refuse what no Where can select from."""
    shapes, dtypes = (shape_of(then), shape_of(otherwise)), (then.dtype, otherwise.dtype)
    if None not in shapes and shapes[0] == shapes[1] and dtypes[0] == dtypes[1] and dtypes[0] in _SELECTED:
        return
    described = " and ".join(f"{v.name}: {v.dtype} {v.shape}" for v in (then, otherwise))
    raise Refusal(
        "BRANCHES_DIFFER",
        f"the branches of If {label} must give output {index} the same type and static shape, and give {described}",
        remedy="freeze the input that decides (frozen_inputs), or export with branches of one shape",
        metadata={"node": label, "output": index},
    )


def _select(node: ir.Node, condition: ir.Value, then: ir.Value, otherwise: ir.Value, editor: Editor) -> ir.Value:
    """`then` where the condition holds, else `otherwise`, of the shape of both.

    In between all are 4-D like the condition: the CPU's kernel takes no other form of one condition for all elements.
    """
    shape, hint = shape_of(then) or (), node_label(node)
    wide = _four(shape)
    known = [constant_of(source_of(v)) if wide == (1, 1, 1, 1) else None for v in (then, otherwise)]
    sides = [v if shape_of(v) == wide else editor.reshape(node, v, wide, hint=f"{hint}_4d") for v in (then, otherwise)]
    if then.dtype == ir.DataType.BOOL:
        chosen = _select_truth(node, condition, sides, known, editor)
    else:
        chosen = editor.node(node, "Where", [condition, *sides], wide, hint=hint, dtype=then.dtype)
    return chosen if wide == shape else editor.reshape(node, chosen, shape, hint=f"{hint}_shape")


def _select_truth(
    node: ir.Node, condition: ir.Value, sides: list[ir.Value], known: list[Array | None], editor: Editor
) -> ir.Value:
    """`Or(And(c, then), And(Not(c), else))`, less where a side is constant: onnxruntime has no Where of truths."""
    terms, hint, wide = list[ir.Value](), node_label(node), shape_of(sides[0])
    for side, constant, holds in zip(sides, known, (True, False), strict=True):
        if constant is not None and not constant.any():
            continue
        flag = condition if holds else editor.node(node, "Not", [condition], (1, 1, 1, 1), hint=hint)
        terms.append(flag if constant is not None else editor.node(node, "And", [flag, side], wide, hint=hint))
    if not terms:
        return sides[0]
    return terms[0] if len(terms) == 1 else editor.node(node, "Or", terms, wide, hint=hint)


def _four(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A 4-D shape of as many elements that starts with 1."""
    dims = shape[1:] if shape[:1] == (1,) else shape
    if len(dims) > 3:
        dims = (math.prod(dims[:-2]), *dims[-2:])
    return (1, *dims, *(1,) * (3 - len(dims)))


PASS = Pass(
    id="if-to-where",
    summary="If on data -> both branches and Where",
    exactness=ROUNDING,
    apply=apply,
)
