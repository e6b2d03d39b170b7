"""Which values carry the batch on axis 0: a forward walk from the inputs.

Used to decide where a literal leading 1 may become -1. Unknown operators end the chain, so the answer errs towards
"no".
"""

from __future__ import annotations

import onnx_ir as ir

from boardlift_transform.edit_graph import attribute, constant_of, input_at, is_constant, shape_of

_SAME = frozenset(
    [
        "Abs",
        "Acos",
        "Acosh",
        "Add",
        "AveragePool",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "BatchNormalization",
        "Cast",
        "Ceil",
        "Celu",
        "Clip",
        "Conv",
        "ConvTranspose",
        "Cos",
        "Cosh",
        "DepthToSpace",
        "Div",
        "Dropout",
        "Elu",
        "Equal",
        "Erf",
        "Exp",
        "Flatten",
        "Floor",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "Greater",
        "HardSigmoid",
        "Identity",
        "InstanceNormalization",
        "LRN",
        "LeakyRelu",
        "Less",
        "Log",
        "LogSoftmax",
        "LpNormalization",
        "MatMul",
        "Max",
        "MaxPool",
        "Mean",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "PRelu",
        "Pow",
        "Reciprocal",
        "Relu",
        "Resize",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softmax",
        "Softplus",
        "Softsign",
        "SpaceToDepth",
        "Sqrt",
        "Sub",
        "Sum",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
        "Upsample",
        "Where",
        "And",
        "Or",
        "Xor",
        "Hardmax",
        "TopK",
    ]
)
_AXIS = frozenset(["Concat", "Split", "ArgMax", "ArgMin", "Gather", "Softmax", "LogSoftmax", "TopK"])


def batch_values(graph: ir.Graph) -> set[ir.Value]:
    """Values of batch 1 whose axis 0 is the batch of an input."""
    carried = {v for v in graph.inputs if (shape_of(v) or (0,))[0] == 1 and len(shape_of(v) or ()) >= 2}
    for node in graph:
        if node.domain in ("", "ai.onnx") and any(v in carried for v in node.inputs) and _keeps(node, carried):
            carried.update(o for o in node.outputs if (shape_of(o) or (0,))[0] == 1)
    return carried


def _keeps(node: ir.Node, carried: set[ir.Value]) -> bool:
    op = node.op_type
    first = node.inputs[0]
    rank = len(shape_of(first) or ())
    if op in _AXIS and int(attribute(node, "axis", 1 if "oftmax" in op else 0)) % max(rank, 1) == 0:
        return False
    if op == "Gather":
        return first in carried and (constant_of(input_at(node, 1)) is not None)
    if op == "Gemm":
        return first in carried and not attribute(node, "transA", 0) and is_constant(input_at(node, 1))
    if op in _SAME or op in _AXIS:
        return _aligned(node, carried)
    if op == "Transpose":
        return bool((attribute(node, "perm") or [1])[0] == 0)
    if op in ("Squeeze", "Unsqueeze") or op.startswith("Reduce"):
        axes = attribute(node, "axes")
        out_rank = max(rank, len(shape_of(node.outputs[0]) or ()))
        return axes is not None and all(a % out_rank != 0 for a in axes)
    if op == "Slice":
        axes = constant_of(input_at(node, 3))
        return axes is not None and all(int(a) % rank != 0 for a in axes)
    if op == "Pad":
        pads = constant_of(input_at(node, 1))
        return pads is not None and pads.size == 2 * rank and pads[0] == 0 and pads[rank] == 0
    if op == "Reshape":
        return first in carried and (shape_of(node.outputs[0]) or (0,))[0] == 1
    return op in ("Tile", "Expand") and (shape_of(node.outputs[0]) or (0,))[0] == 1


def _aligned(node: ir.Node, carried: set[ir.Value]) -> bool:
    """Broadcasting keeps the batch in front only when no other operand has more axes or another leading size."""
    rank = len(shape_of(node.outputs[0]) or ())
    for value in node.inputs:
        shape = shape_of(value)
        if value is None or shape is None:
            continue
        if value in carried and len(shape) != rank and node.op_type not in ("Flatten",):
            return False
        if value not in carried and not is_constant(value) and len(shape) == rank and node.op_type != "MatMul":
            return False
    return True
