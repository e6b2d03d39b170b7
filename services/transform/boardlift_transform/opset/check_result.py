"""Prove that a converted graph is legal at its opset before anybody gets it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import onnx
from onnx import GraphProto, ModelProto, NodeProto, helper

from boardlift_transform.opset.schemas import schema_at
from boardlift_transform.opset.scope import Scope
from boardlift_transform.opset.strip_weights import is_heavy
from boardlift_transform.refusal import Refusal

if TYPE_CHECKING:
    from boardlift_transform.opset.lower_graph import Lowering


class ResultNotLegal(Refusal):
    """An adapter wrote something that the target opset doesn't hold: a fault of ours, never passed on."""

    def __init__(self, findings: Sequence[str], opset: int) -> None:
        """List what was found.

        Args:
            findings: One line each.
            opset: The opset of the result.
        """
        super().__init__(
            "RESULT_NOT_LEGAL",
            f"the downgraded graph is not legal at opset {opset}: {'; '.join(findings[:8])}",
            remedy="report this model: its downgrade is not supported yet",
            metadata={"opset": opset, "count": len(findings)},
        )


def check_result(model: ModelProto, nodes: Sequence[NodeProto], scope: Scope, low: Lowering) -> None:
    """Check operators, attributes and arity against the schemas, then everything by the full checker.

    Args:
        model: The source model, for its inputs, outputs and initialisers.
        nodes: Nodes of the result.
        scope: Facts of the result's main graph.
        low: The conversion.

    Raises:
        ResultNotLegal: The result is not what it must be.
    """
    findings = [f for n in walk(nodes) if n.domain == "" for f in misfits(n, low.target)]
    if not findings:
        findings = full_check(model, nodes, scope, low)
    if findings:
        raise ResultNotLegal(findings, low.target)


def without_shape(graph: GraphProto) -> list[str]:
    """Tensor outputs that declare no shape: runtimes take them, the checker doesn't."""
    return [v.name for v in graph.output if v.type.HasField("tensor_type") and not v.type.tensor_type.HasField("shape")]


def drop_outputs(graph: GraphProto, names: Sequence[str]) -> None:
    """Take outputs off a graph that is only there to be checked."""
    kept = [v for v in graph.output if v.name not in names]
    if len(kept) != len(graph.output):
        del graph.output[:]
        graph.output.extend(kept)


def walk(nodes: Sequence[NodeProto]) -> Iterator[NodeProto]:
    """All nodes, those of inner graphs included."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                stack.extend(graph.node)


def misfits(node: NodeProto, opset: int) -> Iterator[str]:
    """What a node has that its operator doesn't have at `opset`."""
    schema = schema_at(node.op_type, opset)
    if schema is None or schema.deprecated:
        yield f"{node.op_type} does not exist at opset {opset}"
        return
    for attribute in node.attribute:
        if attribute.name not in schema.attributes:
            yield f"{node.op_type}-{schema.since_version} has no attribute {attribute.name}"
    if not schema.min_input <= len(node.input) <= schema.max_input:
        yield f"{node.op_type}-{schema.since_version} takes no {len(node.input)} inputs"
    if not schema.min_output <= len(node.output) <= schema.max_output:
        yield f"{node.op_type}-{schema.since_version} gives no {len(node.output)} outputs"


def full_check(model: ModelProto, nodes: Sequence[NodeProto], scope: Scope, low: Lowering) -> list[str]:
    """The onnx checker with strict shape inference, on the graph without its heavy weights."""
    light = ModelProto(ir_version=7)
    light.opset_import.append(helper.make_opsetid("", low.target))
    light.opset_import.extend(o for o in model.opset_import if o.domain in low.foreign)
    graph = light.graph
    graph.name = model.graph.name or "graph"
    graph.node.extend(nodes)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    for name in without_shape(graph):
        scope.shape(name)
    for value in graph.output:
        if not value.type.tensor_type.HasField("shape") and value.name in scope.types:
            value.type.CopyFrom(scope.types[value.name])
    drop_outputs(graph, without_shape(graph))
    graph.sparse_initializer.extend(model.graph.sparse_initializer)
    names = {v.name for v in graph.input}
    for tensor in [*model.graph.initializer, *scope.new_tensors]:
        if not is_heavy(tensor):
            graph.initializer.append(tensor)
        elif tensor.name not in names:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    for node in graph.node:
        for newer in ("overload", "metadata_props", "device_configurations"):
            node.ClearField(newer)
    try:
        onnx.checker.check_model(light, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError) as why:
        return ["checker: " + " ".join(str(why).split())]
    return []
