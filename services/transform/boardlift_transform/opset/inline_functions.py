"""Replace calls of functions by their bodies, each body node keeping the opset its function is written at."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto

from boardlift_transform.opset.step import Names

Key = tuple[str, str, str]
"""Domain, name and overload of a function."""
MAX_NODES = 2_000_000
"""Ceiling on inlined nodes: functions that call functions can multiply without bound."""


def function_key(domain: str, name: str, overload: str) -> Key:
    """Identity of a function; ``ai.onnx`` and the empty domain are one."""
    return ("" if domain == "ai.onnx" else domain, name, overload)


def find_recursion(functions: Mapping[Key, FunctionProto]) -> Key | None:
    """A function that calls itself, directly or through others; None if there is none.

    Args:
        functions: All functions of a model.

    Returns:
        Its identity.
    """
    calls = {key: _called(function) & functions.keys() for key, function in functions.items()}
    done: set[Key] = set()
    while True:
        ready = [key for key, targets in calls.items() if key not in done and targets <= done]
        if not ready:
            return next((key for key in calls if key not in done), None)
        done.update(ready)


def _called(function: FunctionProto) -> set[Key]:
    found, nodes = set(), list(function.node)
    while nodes:
        node = nodes.pop()
        found.add(function_key(node.domain, node.op_type, node.overload))
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                nodes.extend(graph.node)
    return found


def expand(call: NodeProto, function: FunctionProto, names: Names) -> list[NodeProto]:
    """Body of a function with the call's values and attributes put in.

    Args:
        call: The calling node.
        function: Its function.
        names: Makes names for the body's inner values.

    Returns:
        New nodes; the last ones write the call's outputs. An output that the function passes through unchanged from an
        input becomes an Identity.
    """
    rename: dict[str, str] = {"": ""}
    for i, formal in enumerate(function.input):
        rename[formal] = call.input[i] if i < len(call.input) else ""
    produced = {o for n in function.node for o in n.output}
    passed: list[tuple[str, str]] = []
    for i, formal in enumerate(function.output):
        actual = call.output[i] if i < len(call.output) else ""
        if not actual:
            continue
        if formal in produced and formal not in rename:
            rename[formal] = actual
        else:
            passed.append((formal, actual))
    stem = call.name or next((o for o in call.output if o), function.name)
    given = {a.name: a for a in call.attribute}
    defaults = {a.name: a for a in function.attribute_proto}
    body = [_copy(n, rename, {**defaults, **given}, names, stem) for n in function.node]
    for formal, actual in passed:
        node = NodeProto(op_type="Identity", name=names.fresh(f"{stem}/pass"))
        node.input.append(rename.get(formal, formal))
        node.output.append(actual)
        body.append(node)
    return body


def _copy(
    node: NodeProto, rename: dict[str, str], given: Mapping[str, AttributeProto], names: Names, stem: str
) -> NodeProto:
    new = NodeProto()
    new.CopyFrom(node)
    new.name = names.fresh(f"{stem}/{node.name or node.op_type}")
    _put_names(new, rename, names, stem)
    _put_attributes(new, rename, given, names, stem)
    return new


def _put_names(node: NodeProto, rename: dict[str, str], names: Names, stem: str) -> None:
    for i, name in enumerate(node.input):
        node.input[i] = rename.get(name, name)
    for i, name in enumerate(node.output):
        if name not in rename:
            rename[name] = names.fresh(f"{stem}/{name}")
        node.output[i] = rename[name]


def _put_attributes(
    node: NodeProto, rename: dict[str, str], given: Mapping[str, AttributeProto], names: Names, stem: str
) -> None:
    kept = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue
            new = AttributeProto()
            new.CopyFrom(given[attribute.ref_attr_name])
            new.name = attribute.name
            kept.append(new)
            continue
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            _put_graph(graph, dict(rename), given, names, stem)
        kept.append(attribute)
    copies = [onnx.AttributeProto.FromString(a.SerializeToString()) for a in kept]
    del node.attribute[:]
    node.attribute.extend(copies)


def _put_graph(
    graph: onnx.GraphProto, rename: dict[str, str], given: Mapping[str, AttributeProto], names: Names, stem: str
) -> None:
    values = [*graph.input, *graph.value_info]
    for old in dict.fromkeys([*(v.name for v in values), *(t.name for t in graph.initializer)]):
        if old not in rename:
            rename[old] = names.fresh(f"{stem}/{old}")
    for value in values:
        value.name = rename[value.name]
    for tensor in graph.initializer:
        tensor.name = rename[tensor.name]
    for node in graph.node:
        _put_names(node, rename, names, stem)
        _put_attributes(node, rename, given, names, stem)
    for value in graph.output:
        value.name = rename.get(value.name, value.name)
