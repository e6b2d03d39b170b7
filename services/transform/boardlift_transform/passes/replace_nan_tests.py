"""Express IsNaN and IsInf by comparisons, and drop the guard that exporters put behind a Softmax.

Before -> After: `IsNaN(x)` -> `Not(Equal(x, x))`; `IsInf(x)` -> `And(Equal(x, x), Not(Equal(x - x, x - x)))`, and a
comparison with 0 where only one sign counts; `s = Softmax(...)`, `Where(IsNaN(s), a, s)` -> `s`.
Why: the tool refuses both operators. The guard serves rows that a mask of -inf hides altogether, in which Softmax is no
number; infinite masks are made finite here, so nothing is left to guard, and the comparison with the original shows
where a row was hidden altogether.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, input_at, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes

_MOVES = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity"})


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Guards first, then the tests that are left."""
    result = rewrite_nodes(model, PASS.id, {"Where"}, _drop_guard)
    tests = rewrite_nodes(model, PASS.id, {"IsNaN", "IsInf"}, _compare)
    result.applied.extend(tests.applied)
    result.skipped.extend(tests.skipped)
    return result


def _drop_guard(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    condition, guarded = node.inputs[0], input_at(node, 2)
    test = condition.producer() if condition is not None else None
    if test is None or test.op_type != "IsNaN" or guarded is None or test.inputs[0] is not guarded:
        return None
    maker = guarded.producer()
    while maker is not None and maker.op_type in _MOVES and maker.inputs[0] is not None:
        maker = maker.inputs[0].producer()
    if maker is None or maker.op_type != "Softmax" or shape_of(guarded) != shape_of(node.outputs[0]):
        return None
    return guarded, "Softmax of finite values is always a number"


def _compare(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x = node.inputs[0]
    shape = shape_of(x)
    if x is None or shape is None or x.dtype != ir.DataType.FLOAT:
        return None
    base = node.name or node.op_type

    def test(op_type: str, *inputs: ir.Value) -> ir.Value:
        return editor.node(node, op_type, list(inputs), shape, hint=f"{base}_{op_type}", dtype=ir.DataType.BOOL)

    number = test("Equal", x, x)
    if node.op_type == "IsNaN":
        return test("Not", number), "Not(Equal(x, x))"
    nothing = editor.node(node, "Sub", [x, x], shape, hint=f"{base}_difference")
    value = test("And", number, test("Not", test("Equal", nothing, nothing)))
    zero = editor.constant(np.asarray(0, np.float32), f"{base}_zero")
    for name, sign in (("detect_negative", "Greater"), ("detect_positive", "Less")):
        if not attribute(node, name, 1):
            value = test("And", value, test(sign, x, zero))
    return value, "comparisons of x - x"


PASS = Pass(
    id="replace-nan-tests",
    summary="IsNaN, IsInf -> comparisons; the guard behind a Softmax goes",
    exactness=BIT_EXACT,
    apply=apply,
)
