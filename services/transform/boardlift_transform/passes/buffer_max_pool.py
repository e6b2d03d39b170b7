"""Put a multiplication by 1 between what enters the BPU and an unpadded MaxPool.

Before -> After: `input -> MaxPool(pads 0)` -> `input -> Mul(1) -> MaxPool(pads 0)`; also behind Transpose and Concat of
an input, and behind operators that run on the CPU.
Why: under int16 a MaxPool without padding at the beginning that reads what is copied into the BPU, directly or through
moves only, is wrong in every row but the first in the vendor's simulator (by up to the output's whole range, over all
kernels and strides tried); the log and the quantised ONNX do not show it. Behind any operator that computes, behind
Slice and Pad, with padding at the beginning, and in int8, it is exact. Not planned for int8.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult

_MOVES = frozenset({"Transpose", "Concat", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Split"})
_COMPUTES = frozenset(
    (
        "Conv ConvTranspose Gemm MatMul BatchNormalization InstanceNormalization Relu LeakyRelu PRelu Elu Selu Clip"
        " Sigmoid Tanh HardSigmoid Softplus Erf Abs Add Sub Mul Div Max MaxPool AveragePool GlobalMaxPool"
        " GlobalAveragePool Slice Pad Resize DepthToSpace SpaceToDepth ReduceMean ReduceSum"
    ).split()
)
"""Operators that the BPU computes; anything else may run on the CPU and then enters the BPU anew."""


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 2-D MaxPool nodes without padding at the beginning."""
    result = PassResult()
    editor = Editor(model.graph, PASS.id)
    buffered: dict[ir.Value, ir.Value] = {}
    for node in list(model.graph):
        x = node.inputs[0] if node.op_type == "MaxPool" and node.domain in ("", "ai.onnx") else None
        if x is None or x.dtype != ir.DataType.FLOAT or len(shape_of(x) or ()) != 4:
            continue
        pads = attribute(node, "pads") or [0] * 4
        if (attribute(node, "auto_pad", "NOTSET") in ("NOTSET", "") and any(pads[:2])) or not _enters(x):
            continue
        if x not in buffered:
            one = editor.constant(np.asarray(1, np.float32), f"{node.name}_one")
            buffered[x] = editor.node(node, "Mul", [x, one], shape_of(x), hint=f"{node.name}_buffer")
        node.replace_input_with(0, buffered[x])
        result.apply(node, "MaxPool of what enters the BPU", "Mul(1), MaxPool")
    return result


def _enters(value: ir.Value) -> bool:
    """True when some path back from the value leads through moves only to an input or to an unknown operator."""
    pending, seen = [value], set[ir.Value]()
    while pending:
        current = pending.pop()
        maker = current.producer()
        if maker is None or maker.op_type not in _COMPUTES | _MOVES:
            return True
        if maker.op_type in _MOVES and current not in seen:
            seen.add(current)
            pending.extend(v for v in maker.inputs[: 1 if maker.op_type != "Concat" else None] if v is not None)
    return False


PASS = Pass(
    id="buffer-max-pool",
    summary="MaxPool of what enters the BPU -> Mul(1) in front of it",
    exactness=BIT_EXACT,
    apply=apply,
)
