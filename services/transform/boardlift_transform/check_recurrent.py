"""Which forms of GRU and LSTM the tool computes as another one, without a word."""

from __future__ import annotations

import onnx_ir as ir

from boardlift_transform.edit_graph import attribute, input_at
from boardlift_transform.lift.cells import ACTIVATIONS
from boardlift_transform.pass_result import node_label
from boardlift_transform.refusal import Refusal


def check_recurrent(model: ir.Model) -> None:
    """Refuse what the tool leaves out when it unrolls the operator.

    Measured, int16, cosine simulated: GRU with Relu 0.58, LSTM with input_forget 0.955, with clip 0.987; plain 0.9995.

    Raises:
        Refusal: RECURRENT_FORM.
    """
    for node in model.graph.all_nodes():
        form = _form(node) if node.op_type in ACTIVATIONS and node.domain in ("", "ai.onnx") else ""
        if form:
            raise Refusal(
                "RECURRENT_FORM",
                f"node {node_label(node)} ({node.op_type}) has {form}, which the tool leaves out when it unrolls it",
                remedy="export it with the default activations and without clip, input_forget and peepholes, or write"
                " its cell as Gemm and element-wise operators",
                metadata={"node": node_label(node), "form": form},
            )


def _form(node: ir.Node) -> str:
    plain, functions = ACTIVATIONS[node.op_type], attribute(node, "activations")
    if functions and [f.lower() for f in functions] not in ([p.lower() for p in plain * n] for n in (1, 2)):
        return f"activations {', '.join(functions)}"
    if attribute(node, "clip", 0.0):
        return "clip"
    if attribute(node, "input_forget", 0):
        return "input_forget"
    return "peepholes" if node.op_type == "LSTM" and input_at(node, 7) is not None else ""
