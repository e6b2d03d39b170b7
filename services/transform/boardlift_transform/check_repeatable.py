"""Does a model give the same outputs for the same inputs? What draws at random cannot be proven."""

from __future__ import annotations

import onnx_ir as ir

from boardlift_transform.edit_graph import attribute, constant_of, input_at
from boardlift_transform.pass_result import node_label
from boardlift_transform.refusal import Refusal

RANDOM = frozenset(
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli".split()
)  # fmt: skip


def check_repeatable(model: ir.Model) -> None:
    """Refuse what no two runs agree on.

    Raises:
        Refusal: RANDOM_OPERATOR for operators that draw; TRAINING_MODE for BatchNormalization and Dropout that were
            exported in training mode (onnxruntime itself ignores that for the first). Weights that are standardised by
            one (NFNet) depend on no input, and fold.
    """
    for node in model.graph.all_nodes():
        if node.domain not in ("", "ai.onnx"):
            continue
        label = node_label(node)
        if node.op_type in RANDOM and any(o.uses() or o.is_graph_output() for o in node.outputs):
            raise Refusal(
                "RANDOM_OPERATOR",
                f"node {label} ({node.op_type}) draws at random: no two runs agree, and the board has no such operator",
                remedy="export the deterministic policy (mean or logits), ask only for outputs in front of the node, or"
                " give the noise as an input",
                metadata={"node": label, "operator": node.op_type},
            )
        if _trains(node):
            raise Refusal(
                "TRAINING_MODE",
                f"node {label} ({node.op_type}) was exported in training mode",
                remedy="call model.eval() before the export (torch.onnx.export with training=TrainingMode.EVAL)",
                metadata={"node": label, "operator": node.op_type},
            )


def _trains(node: ir.Node) -> bool:
    if node.op_type == "BatchNormalization":
        return bool(attribute(node, "training_mode", 0)) and _depends_on_inputs(node)
    flag = constant_of(input_at(node, 2)) if node.op_type == "Dropout" else None
    return flag is not None and bool(flag.reshape(-1)[0])


def _depends_on_inputs(node: ir.Node) -> bool:
    """False for what is computed from constants alone; what a graph around this one gives counts as an input."""
    waiting, seen = [node], {node}
    while waiting:
        for value in waiting.pop().inputs:
            maker = value.producer() if value is not None else None
            if value is not None and maker is None and (value.const_value is None or value.is_graph_input()):
                return True
            if maker is not None and maker not in seen:
                seen.add(maker)
                waiting.append(maker)
    return False
