"""Does the transformed model really fit the target? Checked on every result, with weights left out of the check."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
import onnx_ir as ir

from boardlift_transform.check_recurrent import check_recurrent
from boardlift_transform.edit_graph import shape_of, used_opset
from boardlift_transform.park_weights import park_weights
from boardlift_transform.pass_result import node_label
from boardlift_transform.refusal import Refusal
from boardlift_transform.targets import TargetProfile


@dataclass(frozen=True)
class Finding:
    """Something worth knowing that does not stop the transform."""

    code: str
    """Stable UPPER_SNAKE code."""
    message: str
    """One sentence."""
    subject: str
    """Node or tensor."""
    severity: str = "note"
    """`note`, `warning` or `error`."""
    remedy: str = ""
    """What to do."""


def check_result(model: ir.Model, target: TargetProfile, opset: int, *, partial: bool = False) -> list[Finding]:
    """Findings about the result.

    Args:
        model: The result.
        target: What it is for.
        opset: What it should be at.
        partial: True when the caller chose the passes: the result need not fit the target, it must only be valid.

    Raises:
        Refusal: OPERATOR_REFUSED, RECURRENT_FORM, SHAPE_UNKNOWN, OPSET_NOT_REACHED or RESULT_INVALID.
    """
    if partial:
        _check_with_onnx(model)
        return []
    if used_opset(model) != opset:
        raise Refusal("OPSET_NOT_REACHED", f"the model is at opset {used_opset(model)}, not {opset}")
    refused = [n for n in model.graph.all_nodes() if n.op_type in target.refused_operators]
    if refused:
        listed = ", ".join(f"{n.op_type} {node_label(n)}" for n in refused[:10])
        raise Refusal(
            "OPERATOR_REFUSED",
            f"{target.name} does not take {listed}",
            remedy=_remedy(refused),
            metadata={"operators": ",".join(sorted({n.op_type for n in refused})), "count": len(refused)},
        )
    check_recurrent(model)
    unknown = [v for n in model.graph for v in n.outputs if v.uses() and shape_of(v) is None]
    if unknown:
        first = unknown[0]
        producer = first.producer()
        raise Refusal(
            "SHAPE_UNKNOWN",
            f"{len(unknown)} values have no static shape, the first is {first.name} of "
            f"{node_label(producer) if producer else ''} ({producer.op_type if producer else ''})",
            remedy="give input_shapes, freeze inputs that set a shape, or cut the outputs before that node",
            metadata={"values": ",".join(v.name or "" for v in unknown[:10])},
        )
    _check_with_onnx(model)
    return [
        Finding("CPU_OPERATOR", f"{n.op_type} runs on the CPU of {target.name}", node_label(n))
        for n in model.graph
        if n.op_type in target.cpu_operators
    ]


_QUANTISED = frozenset(
    "QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul ConvInteger MatMulInteger".split()
)


def _remedy(nodes: list[ir.Node]) -> str:
    kinds = {n.op_type for n in nodes}
    if kinds & {"If", "Loop", "Scan"}:
        return "let unroll-loop and if-to-where run, give what decides them (frozen_inputs, input_shapes)"
    if kinds & _QUANTISED:
        return "give the float model from before it was quantised: the toolchain calibrates and quantises by itself"
    return "cut the outputs before these nodes and compute the rest on the CPU, or export without them"


def _check_with_onnx(model: ir.Model) -> None:
    with park_weights(model):
        proto = ir.to_proto(model)
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError) as error:
        text = str(error).strip().splitlines()
        raise Refusal(
            "RESULT_INVALID",
            f"the result is no valid ONNX model: {' '.join(text)[:400]}",
            remedy="this is a fault of a pass; skip the pass that is named in the report",
        ) from error
