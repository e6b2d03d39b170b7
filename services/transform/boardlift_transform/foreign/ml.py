"""Scalers and linear models of the domain ai.onnx.ml (what scikit-learn's converter writes), in ONNX's operators.

Source of the formulas: the operator descriptions of ai.onnx.ml. A rule returns the new values of the node's outputs, or
the reason why this form is not taken.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, input_at, rank_of, shape_of
from boardlift_transform.foreign.contrib import Made, Rule
from boardlift_transform.foreign.normalise import reduce_last

_TINY = 1e-12
_FLOATS = (ir.DataType.FLOAT, None)


def _floats(node: ir.Node, editor: Editor, value: ir.Value | None) -> ir.Value:
    if value is None:
        raise ValueError(f"{node.op_type} without an input")
    if value.dtype in _FLOATS:
        return value
    target = {"to": int(ir.DataType.FLOAT)}
    return editor.node(node, "Cast", [value], shape_of(value), target, dtype=ir.DataType.FLOAT)


def _scaler(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    value = _floats(node, editor, node.inputs[0])
    for name, op in (("offset", "Sub"), ("scale", "Mul")):
        numbers = attribute(node, name)
        if numbers:
            array = np.asarray(numbers, np.float32)
            array = array.reshape(()) if array.size == 1 else array
            value = editor.node(node, op, [value, editor.constant(array, f"{node.name}_{name}")], shape_of(value))
    return [(node.outputs[0], value)]


def _normaliser(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    kind = attribute(node, "norm", "MAX")
    if kind not in ("L1", "L2"):
        return f"norm {kind}"
    x = _floats(node, editor, node.inputs[0])
    maker = x.producer()
    if kind == "L1" and maker is not None and maker.op_type == "Softmax":
        return [(node.outputs[0], x)]  # its sum is 1; the tool's reciprocal of it wraps round in int8
    norm = reduce_last(node, editor, f"Reduce{kind}", x, opset)
    tiny = editor.constant(np.asarray(_TINY, np.float32), f"{node.name}_tiny")  # rows of zeros stay zeros
    norm = editor.node(node, "Add", [norm, tiny], shape_of(norm))
    return [(node.outputs[0], editor.node(node, "Div", [x, norm], shape_of(x)))]


def _imputer(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    numbers, missing = attribute(node, "imputed_value_floats"), attribute(node, "replaced_value_float")
    if not numbers or missing is None:
        return "whole numbers"
    x = _floats(node, editor, node.inputs[0])
    if np.isnan(missing):
        test = editor.node(node, "IsNaN", [x], shape_of(x), dtype=ir.DataType.BOOL)
    else:
        number = editor.constant(np.asarray(missing, np.float32), f"{node.name}_missing")
        test = editor.node(node, "Equal", [x, number], shape_of(x), dtype=ir.DataType.BOOL)
    fill = editor.constant(np.asarray(numbers, np.float32), f"{node.name}_fill")
    return [(node.outputs[0], editor.node(node, "Where", [test, fill, x], shape_of(x), dtype=ir.DataType.FLOAT))]


def _scores(node: ir.Node, editor: Editor, rows: int) -> ir.Value | str:
    """`x W' + b` for coefficients `[rows, features]` row by row."""
    weights = np.asarray(attribute(node, "coefficients", []), np.float32)
    if not rows or weights.size % rows:
        return "coefficients that do not fit"
    x = _floats(node, editor, node.inputs[0])
    matrix = editor.constant(np.ascontiguousarray(weights.reshape(rows, -1).T), f"{node.name}_coefficients")
    shape = shape_of(x)
    out = None if shape is None or len(shape) != 2 else [shape[0], rows]
    value = editor.node(node, "MatMul", [x, matrix], out)
    bias = attribute(node, "intercepts")
    if bias:
        added = editor.constant(np.asarray(bias, np.float32), f"{node.name}_intercepts")
        value = editor.node(node, "Add", [value, added], out)
    return value


def _regressor(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    if attribute(node, "post_transform", "NONE") != "NONE":
        return f"post_transform {attribute(node, 'post_transform')}"
    value = _scores(node, editor, int(attribute(node, "targets", 1)))
    return value if isinstance(value, str) else [(node.outputs[0], value)]


def _classifier(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    labels, kind = attribute(node, "classlabels_ints"), attribute(node, "post_transform", "NONE")
    bias = attribute(node, "intercepts") or []
    named = node.outputs[0].uses() or node.outputs[0].is_graph_output()
    rows = len(labels or attribute(node, "classlabels_strings") or [])
    if kind not in ("NONE", "SOFTMAX", "LOGISTIC") or rows < 2 or (bias and len(bias) != rows):
        return f"post_transform {kind} with {rows} classes and {len(bias)} rows"
    if named and not labels:
        return "labels that are text: keep only the scores"
    scores = _scores(node, editor, rows)
    if isinstance(scores, str):
        return scores
    shape = shape_of(scores)
    made: Made = []
    if named:
        first = None if shape is None else shape[:1]
        best = editor.node(node, "ArgMax", [scores], first, {"axis": 1, "keepdims": 0}, dtype=ir.DataType.INT64)
        if list(labels or []) != list(range(rows)):
            table = editor.constant(np.asarray(labels, np.int64), f"{node.name}_labels")
            best = editor.node(node, "Gather", [table, best], first, {"axis": 0}, dtype=ir.DataType.INT64)
        made.append((node.outputs[0], best))
    if kind == "SOFTMAX":
        scores = editor.node(node, "Softmax", [scores], shape, {"axis": 1})
    elif kind == "LOGISTIC":
        scores = editor.node(node, "Sigmoid", [scores], shape)
    return [*made, (node.outputs[1], scores)]


def _reshape(node: ir.Node, editor: Editor, value: ir.Value, target: list[int]) -> ir.Value:
    dims = editor.constant(np.asarray(target, np.int64), f"{value.name}_dims")
    return editor.node(node, "Reshape", [value, dims], None)


def _extractor(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    """ArrayFeatureExtractor: entries along the last axis; the result of a vector has a leading 1."""
    x, index = node.inputs[0], input_at(node, 1)
    if x is None or index is None:
        return "an input is missing"
    shape = shape_of(node.outputs[0])
    flat = _reshape(node, editor, index, [-1])
    made = editor.node(node, "Gather", [x, flat], None if rank_of(x) == 1 else shape, {"axis": -1})
    if rank_of(x) == 1:
        made = _reshape(node, editor, made, [1, -1])
    return [(node.outputs[0], made)]


def _vectorizer(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    parts = [_floats(node, editor, v) for v in node.inputs]
    return [(node.outputs[0], editor.node(node, "Concat", parts, shape_of(node.outputs[0]), {"axis": 1}))]


def _binarizer(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    x = _floats(node, editor, node.inputs[0])
    limit = editor.constant(np.asarray(attribute(node, "threshold", 0.0), np.float32), f"{node.name}_threshold")
    above = editor.node(node, "Greater", [x, limit], shape_of(x), dtype=ir.DataType.BOOL)
    target = {"to": int(ir.DataType.FLOAT)}
    return [(node.outputs[0], editor.node(node, "Cast", [above], shape_of(x), target, dtype=ir.DataType.FLOAT))]


RULES: dict[str, Rule] = {
    "Scaler": _scaler,
    "Normalizer": _normaliser,
    "Imputer": _imputer,
    "LinearRegressor": _regressor,
    "LinearClassifier": _classifier,
    "ArrayFeatureExtractor": _extractor,
    "FeatureVectorizer": _vectorizer,
    "Binarizer": _binarizer,
}
