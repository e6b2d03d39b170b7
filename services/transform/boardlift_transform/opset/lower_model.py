"""Bring a model to an older opset, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, helper, shape_inference

from boardlift_transform.opset.check_result import ResultNotLegal, check_result, drop_outputs, walk, without_shape
from boardlift_transform.opset.errors import InvalidModel, Offence, UnsupportedDowngrade
from boardlift_transform.opset.inline_functions import find_recursion, function_key
from boardlift_transform.opset.lower_graph import Lowering, read_scope
from boardlift_transform.opset.schemas import NEWEST, PLAIN
from boardlift_transform.opset.scope import Scope
from boardlift_transform.opset.settle_windows import settle_windows
from boardlift_transform.opset.shape_rules import MISLEADING
from boardlift_transform.opset.step import Names
from boardlift_transform.opset.strip_weights import fix_shape, skeleton

IR_OF_OPSET = {10: 5, 11: 7, 12: 7, 13: 7}
"""IR version of the result for each target opset."""


def downgrade(
    model: ModelProto,
    opset: int = 11,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    foreign_domains: str = "keep",
) -> ModelProto:
    """Express a model at an older opset of ai.onnx.

    Functions are inlined, bodies of If, Loop and Scan are converted. Inputs and outputs keep names, order and types.

    Args:
        model: The model; never changed. Weights are copied once, into the result.
        opset: Target, one of 10, 11, 12, 13. A model that is below it already keeps its opset.
        input_shapes: Static shapes of graph inputs, for operators whose lower form needs them; the result then declares
            these shapes.
        foreign_domains: ``keep`` passes nodes of other domains through, ``refuse`` reports them.

    Returns:
        A checked model, IR version 5 (opset 10) or 7 at most.

    Raises:
        UnsupportedDowngrade: Some nodes have no form at the target; all of them are listed.
        InvalidModel: The model is no legal ONNX model.
        ValueError: An argument is out of range.
    """
    if opset not in IR_OF_OPSET:
        raise ValueError(f"target opset {opset} is not supported, choose one of {sorted(IR_OF_OPSET)}")
    if foreign_domains not in ("keep", "refuse"):
        raise ValueError(f"foreign_domains is 'keep' or 'refuse', not {foreign_domains!r}")
    own = read_opset(model)
    light = skeleton(model, input_shapes)
    functions = {function_key(f.domain, f.name, f.overload): f for f in light.functions}
    circle = find_recursion(functions)
    if circle is not None:
        raise InvalidModel(f"function {circle[0]}.{circle[1]} calls itself", "unroll the recursion")
    settle_windows(light, own)
    light = infer(light, own)
    check_source(light)
    names = Names(all_names(light))
    low = Lowering(min(opset, own), functions, names, keep_foreign=foreign_domains == "keep")
    scope = read_scope(light.graph, own)
    scope.tensors.update((t.name, t) for t in model.graph.initializer)
    scope.late = scope.late or any(t.data_type not in PLAIN for t in model.graph.initializer)
    nodes = lower_checked(model, light, low, scope, own)
    return assemble(model, nodes, scope, low, input_shapes, min(max(model.ir_version, 4), IR_OF_OPSET[opset]))


def lower_checked(model: ModelProto, light: ModelProto, low: Lowering, scope: Scope, own: int) -> list[NodeProto]:
    """Nodes of the result, proven legal; raises what `downgrade` raises."""
    try:
        nodes = low.lower([*light.graph.node], scope, own)
    except (RecursionError, DecodeError) as why:
        raise InvalidModel(f"graphs are nested too deeply: {why}", "flatten the model") from None
    if low.offences:
        raise UnsupportedDowngrade(low.offences, low.target)
    try:
        check_result(model, nodes, scope, low)
    except ResultNotLegal:
        check_source(skeleton(model, None), full=True)  # whose fault it is
        raise
    return nodes


def read_opset(model: ModelProto) -> int:
    """ai.onnx opset of a model; refuses what the installed onnx doesn't know."""
    found = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    opset = max(found) if found else 1
    if opset > NEWEST:
        offence = Offence(
            "model", "ai.onnx", opset, f"is newer than opset {NEWEST}, the newest known here", "upgrade onnx"
        )
        raise UnsupportedDowngrade([offence], NEWEST)
    return opset


def check_source(light: ModelProto, full: bool = False) -> None:
    """Refuse a model that the checker refuses.

    Args:
        light: The model without heavy weights.
        full: Hold shapes and types against each other as well.

    Raises:
        InvalidModel: What the checker found.
    """
    open_outputs = without_shape(light.graph)
    if light.functions or open_outputs:
        bare = ModelProto()
        bare.CopyFrom(light)
        bare.ClearField("functions")  # the checker takes no function of another opset; here each has its own
        drop_outputs(bare.graph, open_outputs)
        light = bare
    try:
        onnx.checker.check_model(light, full_check=full)
    except (onnx.checker.ValidationError, shape_inference.InferenceError) as why:
        raise InvalidModel(" ".join(str(why).split()), "repair or re-export the model") from None


def infer(light: ModelProto, own: int) -> ModelProto:
    """Types and shapes of every value that inference can tell."""
    foreign = {o.version for f in light.functions for o in f.opset_import if o.domain in ("", "ai.onnx")} - {own}
    if foreign:  # inference would read bodies at the model's opset; they are inferred after inlining
        light.ClearField("functions")
    kinds = {n.op_type for n in walk([*light.graph.node, *(n for f in light.functions for n in f.node)])}
    if kinds & MISLEADING:  # types are worked out name by name instead
        del light.graph.value_info[:]
        return light
    try:
        return shape_inference.infer_shapes(light, data_prop=True)
    except DecodeError:
        raise InvalidModel("graphs are nested too deeply to be read back", "flatten the model") from None
    except (shape_inference.InferenceError, RuntimeError) as why:
        raise InvalidModel(f"types or shapes contradict each other: {why}", "repair or re-export the model") from None


def all_names(model: ModelProto) -> set[str]:
    """Every value and node name in a model, in whatever graph."""
    taken: set[str] = set()
    graphs: list[GraphProto] = [model.graph]
    while graphs:
        graph = graphs.pop()
        for group in (graph.input, graph.output, graph.value_info):
            taken.update(value.name for value in group)
        taken.update(tensor.name for tensor in graph.initializer)
        for node in graph.node:
            taken.add(node.name)
            taken.update(node.output)
            for attribute in node.attribute:
                graphs.extend([attribute.g] if attribute.HasField("g") else attribute.graphs)
    return taken


def assemble(
    model: ModelProto,
    nodes: Sequence[NodeProto],
    scope: Scope,
    low: Lowering,
    input_shapes: Mapping[str, Sequence[int]] | None,
    ir_version: int,
) -> ModelProto:
    """Put the lowered nodes and the source's weights into a new model."""
    result = ModelProto()
    result.CopyFrom(model)  # the one copy of the weights; copying tensor by tensor would cost twice
    result.ir_version = ir_version
    del result.opset_import[:]
    result.opset_import.append(helper.make_opsetid("", low.target))
    result.opset_import.extend(o for o in model.opset_import if o.domain in low.foreign)
    for newer in ("functions", "configuration"):
        result.ClearField(newer)
    source, graph = model.graph, result.graph
    graph.name = source.name or "graph"
    graph.ClearField("metadata_props")
    del graph.node[:]
    graph.node.extend(nodes)
    for node in graph.node:
        for newer in ("overload", "metadata_props", "device_configurations"):
            node.ClearField(newer)
    if scope.frozen:
        del graph.input[:]
        graph.input.extend(v for v in source.input if v.name not in scope.frozen)
    graph.initializer.extend(scope.new_tensors)
    alive = {o for n in nodes for o in n.output}
    del graph.value_info[:]
    graph.value_info.extend(v for v in source.value_info if v.name in alive)
    for value in graph.output:
        if not value.type.tensor_type.HasField("shape") and value.name in scope.types:
            value.type.CopyFrom(scope.types[value.name])  # the checker asks for a shape where runtimes don't
    for item in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        item.ClearField("metadata_props")
    for value in graph.input:
        if input_shapes and value.name in input_shapes:
            fix_shape(value, input_shapes[value.name])
    return result
