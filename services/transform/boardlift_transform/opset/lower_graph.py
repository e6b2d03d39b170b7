"""Step every node of a graph, and of the graphs inside it, below the versions that the target doesn't have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, helper

from boardlift_transform.opset.cast_around import step_types
from boardlift_transform.opset.errors import NoForm, Offence
from boardlift_transform.opset.inline_functions import MAX_NODES, expand, function_key
from boardlift_transform.opset.registry import adapters
from boardlift_transform.opset.schemas import NEWEST, PLAIN, schema_at
from boardlift_transform.opset.scope import Scope
from boardlift_transform.opset.step import Names, Step

Written = tuple[NodeProto, int]
"""A node and the ai.onnx opset it is written at."""
MAX_DEPTH = 64
"""Deepest nesting of graphs inside graphs that is followed."""


@dataclass
class Lowering:
    """State of one conversion."""

    target: int
    """Opset that the result ends at."""
    functions: Mapping[tuple[str, str, str], FunctionProto]
    names: Names
    keep_foreign: bool
    offences: list[Offence] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    """Foreign domains that are still used."""
    count: int = 0

    def lower(self, nodes: Iterable[NodeProto], scope: Scope, opset: int, depth: int = 0) -> list[NodeProto]:
        """Lower nodes of one graph.

        Args:
            nodes: The nodes, in topological order.
            scope: Facts of that graph.
            opset: ai.onnx opset that the nodes are written at.
            depth: How many graphs this one lies inside.

        Returns:
            Nodes written at the target; offending nodes are recorded and left out.
        """
        if depth > MAX_DEPTH:
            raise RecursionError(f"graphs nested deeper than {MAX_DEPTH}")
        done: list[NodeProto] = []
        for first in nodes:
            stack: list[Written] = [(first, opset)]
            settled: NodeProto | None = None  # node whose bodies are lowered already
            while stack:
                node, level = stack.pop()
                if node is not settled and self._lower_bodies(node, level, scope, depth):
                    settled = node
                made = self._step(node, level, scope)
                if made is None:
                    done.append(node)
                else:
                    stack.extend(reversed(made))
        return done

    def _step(self, node: NodeProto, level: int, scope: Scope) -> list[Written] | None:
        """Nodes that replace a node, None if it is as low as it must be."""
        function = (
            self.functions.get(function_key(node.domain, node.op_type, node.overload)) if self.functions else None
        )
        if function is not None:
            return self._inline(node, function, level, scope)
        if node.domain not in ("", "ai.onnx"):
            return self._foreign(node)
        try:
            made = self._lower_node(node, level, scope)
        except NoForm as why:
            schema = schema_at(node.op_type, level)
            self._offend(node, schema.since_version if schema else level, why)
            return []
        if made is None:
            node.ClearField("domain")
        return made

    def _lower_node(self, node: NodeProto, level: int, scope: Scope) -> list[Written] | None:
        schema = schema_at(node.op_type, level)
        if schema is None:
            raise NoForm(f"is not known at opset {level} (newest known here: {NEWEST})", "name a released operator")
        since = schema.since_version
        if since <= self.target:
            self._check_level(node, level, since)
            return None
        adapt = adapters().get((node.op_type, since))
        step = Step(node, since, self.target, scope, self.names)
        if adapt is not None:
            adapt(step)
            return step.made
        return step_types(step)

    def _check_level(self, node: NodeProto, level: int, since: int) -> None:
        if level < self.target:
            now = schema_at(node.op_type, self.target)
            if now is None or now.deprecated or now.since_version != since:
                raise NoForm(
                    f"sits in a function written at opset {level}, below the target {self.target}, where it differs",
                    "write the function at the opset of the model",
                )

    def _inline(self, node: NodeProto, function: FunctionProto, level: int, scope: Scope) -> list[Written]:
        own = next((o.version for o in function.opset_import if o.domain in ("", "ai.onnx")), level)
        body = expand(node, function, self.names)
        self.count += len(body)
        if self.count > MAX_NODES:
            raise RecursionError(f"functions expand to more than {MAX_NODES} nodes")
        for new in body:
            for name in new.output:
                scope.producers[name] = (new, own)
        return [(new, own) for new in body]

    def _foreign(self, node: NodeProto) -> list[Written] | None:
        if not self.keep_foreign:
            why = NoForm(f"is of the foreign domain {node.domain!r}", "replace it, or pass foreign_domains='keep'")
            self._offend(node, 0, why)
            return []
        self.foreign.add(node.domain)
        return None

    def _lower_bodies(self, node: NodeProto, level: int, scope: Scope, depth: int) -> bool:
        """Lower the graphs inside a node, at the opset that it and they are written at.

        A body that goes into a function's or an adapter's own nodes is left to them: it is lowered where it ends up.
        """
        holders = [a for a in node.attribute if a.HasField("g") or a.graphs]
        if not holders:
            return False
        schema = schema_at(node.op_type, level) if node.domain in ("", "ai.onnx") else None
        if schema is not None and (node.op_type, schema.since_version) in adapters():
            return False
        if function_key(node.domain, node.op_type, node.overload) in self.functions:
            return False
        for attribute in holders:
            for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                tell_types(node, body, scope)
                inner = read_scope(body, level, scope)
                fresh = [
                    NodeProto.FromString(n.SerializeToString())
                    for n in self.lower([*body.node], inner, level, depth + 1)
                ]
                del body.node[:]
                body.node.extend(fresh)
                body.initializer.extend(inner.new_tensors)
                del body.value_info[:]
                for value in body.output:  # sizes that inference wrote there; a branch never taken may have others
                    if value.type.HasField("tensor_type"):
                        value.type.tensor_type.ClearField("shape")
        return True

    def _offend(self, node: NodeProto, version: int, why: NoForm) -> None:
        name = node.name or next((o for o in node.output if o), node.op_type)
        op = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        self.offences.append(Offence(name, op, version, why.reason, why.remedy))


def tell_types(node: NodeProto, body: GraphProto, scope: Scope) -> None:
    """Write types into body inputs that lack them; bodies that come from functions carry none."""
    if node.op_type not in ("Loop", "Scan") or all(v.type.WhichOneof("value") for v in body.input):
        return
    attrs = {a.name: a for a in node.attribute}
    scanned = attrs["num_scan_inputs"].i if "num_scan_inputs" in attrs else 0
    axes = list(attrs["scan_input_axes"].ints) if "scan_input_axes" in attrs else [0] * scanned
    states = len(body.input) - scanned
    for i, value in enumerate(body.input):
        if value.type.WhichOneof("value") or i >= len(node.input):
            continue
        found = scope.type_of(node.input[i]) if node.input[i] else None
        if found is None and node.op_type == "Loop" and i < 2:
            found = helper.make_tensor_type_proto(TensorProto.INT64 if i == 0 else TensorProto.BOOL, [])
        if found is None:
            continue
        dims = scope.shape(node.input[i]) if node.input[i] else ()
        value.type.CopyFrom(found)
        if not found.HasField("tensor_type"):
            continue
        if node.op_type == "Loop" and i >= 2:
            dims = None  # a carried value may change its shape
        elif i >= states and dims is not None:
            axis = axes[i - states] % len(dims)
            dims = dims[:axis] + dims[axis + 1 :]
        value.type.CopyFrom(helper.make_tensor_type_proto(found.tensor_type.elem_type, dims))


def read_scope(graph: GraphProto, opset: int, parent: Scope | None = None) -> Scope:
    """Facts of a graph after shape inference.

    Args:
        graph: The graph.
        opset: ai.onnx opset of its nodes.
        parent: Facts of the graph around it.

    Returns:
        A scope that refers to the graph's types, initialisers and nodes.
    """
    scope = Scope(opset, parent)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.WhichOneof("value"):
            scope.types[value.name] = value.type
    scope.tensors.update((t.name, t) for t in graph.initializer)
    kinds = {t.tensor_type.elem_type for t in scope.types.values()} | {t.data_type for t in graph.initializer}
    scope.late = bool(kinds - PLAIN - {0}) or (parent is not None and parent.late)
    for node in graph.node:
        for name in node.output:
            if name:
                scope.producers[name] = (node, opset)
    return scope
