"""Write a dilated MaxPool as a maximum over shifted copies, one axis after the other.

Before -> After: `MaxPool(k, dilations d, strides s, pads)` -> per axis with k > 1: `Max(Gather(x, i_1), ..., Gather(x,
i_k))`, where i_j holds the rows that tap j of each window reads; a tap in the padding reads a row that another tap of
the same window reads too.
Why: the tool dies on a dilated MaxPool ("MaxPool dilation only support 1*1"); with padding, parts of the new form may
run on the CPU, which its node table shows. A dilation along an axis whose kernel is
1 does nothing and is taken away.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 2-D MaxPool nodes that are dilated and return no indices."""
    return rewrite_nodes(model, PASS.id, {"MaxPool"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, out = node.inputs[0], node.outputs[0]
    size, made, dilations = shape_of(x), shape_of(out), attribute(node, "dilations") or []
    if x is None or size is None or made is None or len(size) != 4 or all(d == 1 for d in dilations):
        return None
    kernel, strides = attribute(node, "kernel_shape"), attribute(node, "strides") or [1, 1]
    pads = attribute(node, "pads") or [0] * 4
    if len(node.outputs) > 1 or attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", ""):
        result.skip(node, "it returns indices, or its padding is not explicit")
        return None
    base = node.name or "MaxPool"
    if all(k == 1 or d == 1 for k, d in zip(kernel, dilations, strict=True)):
        plain = {name: attribute(node, name) for name in node.attributes if name != "dilations"}
        return editor.node(node, "MaxPool", [x], made, plain, hint=base), "MaxPool without dilations"
    value = x
    for axis in (0, 1):
        rows = _rows(size[axis + 2], made[axis + 2], kernel[axis], strides[axis], dilations[axis], pads[axis])
        if rows is None:
            result.skip(node, "a window lies wholly in the padding")
            return None
        value = _along(node, value, rows, axis + 2, editor)
    return value, f"maximum of {sum(k for k in kernel if k > 1)} gathered copies"


def _rows(size: int, made: int, kernel: int, stride: int, dilation: int, begin: int) -> Any:
    """Rows `[taps, windows]` inside the image that the taps of each window read."""
    rows = np.arange(made)[None] * stride - begin + np.arange(kernel)[:, None] * dilation
    inside = (rows >= 0) & (rows < size)
    if not inside.any(0).all():
        return None
    some = rows[inside.argmax(0), np.arange(made)]
    return np.where(inside, rows, some[None])


def _along(node: ir.Node, value: ir.Value, rows: Any, axis: int, editor: Editor) -> ir.Value:
    shape = list(shape_of(value) or ())
    if len(rows) == 1 and np.array_equal(rows[0], np.arange(shape[axis])):
        return value
    shape[axis] = rows.shape[1]
    taps: list[ir.Value | None] = []
    for row in rows:
        index = editor.constant(row.astype(np.int64), f"{node.name}_rows")
        taps.append(editor.node(node, "Gather", [value, index], shape, {"axis": axis}, hint=f"{node.name}_tap"))
    total = taps[0]
    for tap in taps[1:]:
        total = editor.node(node, "Max", [total, tap], shape, hint=f"{node.name}_max")
    if total is None:
        raise ValueError(f"{node.name} has a kernel of size 0")
    return total


PASS = Pass(
    id="undilate-max-pool",
    summary="dilated MaxPool -> maximum over gathered copies, one axis at a time",
    exactness=BIT_EXACT,
    apply=apply,
)
