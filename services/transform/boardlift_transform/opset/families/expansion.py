"""Operators that onnx itself defines by a function body: the body is inlined and then lowered like other nodes.

Used where an own form would be no shorter and no more stable: losses, the linear attention family, windows
whose size is made at run time.
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import FunctionProto, NodeProto, TypeProto

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.inline_functions import expand
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.schemas import schema_at
from boardlift_transform.opset.step import Step


def expand_body(step: Step) -> None:
    """Inline the operator's own function body.

    Args:
        step: The node; the types of all its inputs must be known where the body depends on them.

    Raises:
        NoForm: The operator has no body for these inputs.
    """
    function = body_of(step)
    level = next((o.version for o in function.opset_import if o.domain == ""), step.since - 1)
    nodes = expand(with_defaults(step.node, schema_at(step.node.op_type, step.since)), function, step.names)
    for node in nodes:
        for name in node.output:
            step.scope.producers.setdefault(name, (node, level))
        step.made.append((node, level))


def with_defaults(node: NodeProto, schema: onnx.defs.OpSchema | None) -> NodeProto:
    """The node with the default attributes of its operator written out, for bodies that refer to them."""
    full = NodeProto()
    full.CopyFrom(node)
    present = {a.name for a in node.attribute}
    for name, attribute in (schema.attributes if schema is not None else {}).items():
        if name not in present and attribute.default_value.type:
            full.attribute.append(attribute.default_value)
    return full


def body_of(step: Step) -> FunctionProto:
    """The function that defines the node's operator."""
    schema: Any = schema_at(step.node.op_type, step.since)  # the stubs of onnx lack the function members
    if schema is None:
        raise NoForm(f"does not exist at opset {step.since}", "name a released operator")
    if schema.has_function:
        return with_id(schema, step.node)
    if not schema.has_context_dependent_function:
        raise NoForm(f"does not exist at opset {step.target}", "avoid the operator")
    types = [input_type(step, name).SerializeToString() for name in step.node.input]
    version = min(schema.context_dependent_function_opset_versions)
    raw = schema.get_context_dependent_function_with_opset_version(version, step.node.SerializeToString(), types)
    if not raw:
        raise NoForm("has no function body for these inputs and attributes", "export it decomposed")
    return FunctionProto.FromString(raw)


def with_id(schema: Any, node: NodeProto) -> FunctionProto:
    """Body that doesn't depend on the inputs."""
    raw = schema.get_function_with_opset_version(min(schema.function_opset_versions))
    if not raw:
        raise NoForm(f"has no function body ({node.op_type})", "export it decomposed")
    return FunctionProto.FromString(raw)


def input_type(step: Step, name: str) -> TypeProto:
    """Type of an input for the body builder; empty for an input left out."""
    if not name:
        return TypeProto()
    found = step.scope.type_of(name)
    if found is None:
        raise NoForm(f"needs the type of {name!r}, which can't be inferred", "declare it in value_info")
    return found


for _name, _versions in {
    "NegativeLogLikelihoodLoss": (12, 13, 22),
    "SoftmaxCrossEntropyLoss": (12, 13),
    "LinearAttention": (27,),
    "Attention": (23, 24, 25),
    "RotaryEmbedding": (23,),
    "CausalConvWithState": (27,),
    "SequenceMap": (17,),
    "Bernoulli": (15, 22),
}.items():
    adapter(_name, *_versions)(expand_body)
