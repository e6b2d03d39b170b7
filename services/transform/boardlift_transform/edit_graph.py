"""Editing an `onnx_ir` graph: typed nodes with provenance, constants, replacement that keeps output names."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from boardlift_transform.names_in_use import NamesInUse

PROVENANCE = "boardlift.pass"
ORIGIN = "boardlift.origin"
Array = npt.NDArray[Any]


def constant_of(value: ir.Value | None) -> Array | None:
    """The value's constant contents, or None when it is computed or fed at run time."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return np.asarray(value.const_value.numpy())


def is_constant(value: ir.Value | None) -> bool:
    """True when the value is a constant; does not touch the bytes."""
    return value is not None and value.const_value is not None and not value.is_graph_input()


def shape_of(value: ir.Value | None) -> tuple[int, ...] | None:
    """The static shape, or None when any dimension is unknown."""
    if value is None:
        return None
    shape: ir.ShapeProtocol | None = value.shape
    if shape is None and value.const_value is not None:
        shape = value.const_value.shape
    dims = tuple(shape) if shape is not None else (None,)
    for dim in dims:  # the most called lines of all: no generator
        if not isinstance(dim, int):
            return None
    return dims  # type: ignore[return-value]


def rank_of(value: ir.Value | None) -> int | None:
    """Number of axes, or None when unknown."""
    if value is None or value.shape is None:
        return None
    return len(value.shape)


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """The attribute's plain value (ints, floats, strings, lists, tensors), or the default."""
    attr = node.attributes.get(name)
    if attr is None or attr.value is None:
        return default
    if attr.type == ir.AttributeType.STRING:
        return attr.as_string()
    if attr.type in (ir.AttributeType.INTS, ir.AttributeType.FLOATS):
        return list(attr.value)
    return attr.value


def input_at(node: ir.Node, index: int) -> ir.Value | None:
    """The input at `index`, None when absent."""
    return node.inputs[index] if index < len(node.inputs) else None


def only_use(value: ir.Value) -> ir.Node | None:
    """The single node that reads the value, None when there are more or it is a graph output."""
    if value.is_graph_output():
        return None
    uses = list(value.uses())
    return uses[0].node if len(uses) == 1 else None


def source_of(value: ir.Value) -> ir.Value:
    """The value itself, or what it is copied from by Identity."""
    producer = value.producer()
    while producer is not None and producer.op_type == "Identity" and producer.inputs[0] is not None:
        value = producer.inputs[0]
        producer = value.producer()
    return value


class Editor:
    """Adds and replaces parts of one graph on behalf of one pass."""

    def __init__(self, graph: ir.Graph, pass_id: str) -> None:
        """Every new name will be unique in the graph as it is when the first one is asked for."""
        self.graph = graph
        self.pass_id = pass_id
        self._names = NamesInUse(graph)

    def within(self, graph: ir.Graph) -> Editor:
        """An editor of an inner graph, with the same names in use."""
        inner = copy.copy(self)
        inner.graph = graph
        return inner

    def release(self, node: ir.Node) -> None:
        """Let a new node take the name of one that is about to go."""
        if node.name:
            self._names.released.add(node.name)

    def claim(self, node: ir.Node) -> None:
        """Take a released name back for the node that stays."""
        if node.name:
            self._names.released.discard(node.name)

    def value_name(self, hint: str) -> str:
        """A value name that nobody uses."""
        return self._names.for_value(hint)

    def node_name(self, hint: str) -> str:
        """A node name that nobody uses."""
        return self._names.for_node(hint)

    def constant(self, array: Array, hint: str) -> ir.Value:
        """Add an initialiser; the array is referenced, not copied."""
        name = self.value_name(hint)
        array = np.ascontiguousarray(array) if array.ndim else np.asarray(array)
        tensor = ir.Tensor(array, name=name)
        value = ir.Value(name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
        self.graph.register_initializer(value)
        return value

    def node(
        self,
        anchor: ir.Node | None,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        shape: Sequence[int] | None,
        attributes: Mapping[str, Any] | None = None,
        *,
        hint: str = "",
        dtype: ir.DataType | None = None,
    ) -> ir.Value:
        """Insert a one-output node before `anchor` (at the end when None) and return its output.

        The output's dtype is the first input's unless given.
        """
        return self.node_outputs(anchor, op_type, inputs, [shape], attributes, hint=hint, dtype=dtype)[0]

    def node_outputs(
        self,
        anchor: ir.Node | None,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        shapes: Sequence[Sequence[int] | None],
        attributes: Mapping[str, Any] | None = None,
        *,
        hint: str = "",
        dtype: ir.DataType | None = None,
    ) -> list[ir.Value]:
        """Insert a node with one output per entry of `shapes` before `anchor`."""
        base = hint or (anchor.name if anchor is not None and anchor.name else op_type)
        if dtype is None and inputs and inputs[0] is not None:
            dtype = inputs[0].dtype
        node = ir.Node(
            "",
            op_type,
            inputs,
            [make_attribute(name, value) for name, value in (attributes or {}).items()],
            num_outputs=len(shapes),
            name=self._names.for_node(base),
            metadata_props={PROVENANCE: self.pass_id},
        )
        for output, shape in zip(node.outputs, shapes, strict=False):
            output.name = self.value_name(f"{base}_out")
            output.type = ir.TensorType(dtype) if dtype is not None else None
            output.shape = ir.Shape(shape) if shape is not None else None
        if anchor is None:
            self.graph.append(node)
        else:
            anchor.prepend(node)
        return list(node.outputs)

    def reshape(
        self,
        anchor: ir.Node | None,
        value: ir.Value,
        shape: Sequence[int],
        target: Sequence[int] | None = None,
        hint: str = "",
    ) -> ir.Value:
        """Insert a Reshape to the static `shape`; `target` is what the constant holds (default: -1 for a leading 1)."""
        constant = list(target) if target is not None else batch_free(shape)
        base = hint or f"{value.name}_reshape"
        dims = self.constant(np.asarray(constant, np.int64), f"{base}_dims")
        return self.node(anchor, "Reshape", [value, dims], shape, hint=base)

    def transpose(self, anchor: ir.Node | None, value: ir.Value, perm: Sequence[int], hint: str = "") -> ir.Value:
        """Insert a Transpose."""
        shape = shape_of(value)
        out = [shape[p] for p in perm] if shape is not None else None
        return self.node(
            anchor, "Transpose", [value], out, {"perm": list(perm)}, hint=hint or f"{value.name}_transpose"
        )

    def replace(self, old: ir.Value, new: ir.Value) -> None:
        """Let every reader of `old` read `new`; a graph output keeps its name."""
        if not old.is_graph_output():
            old.replace_all_uses_with(new)
            return
        if new.is_graph_input() or new.is_graph_output() or is_constant(new):
            for node, index in old.uses():  # the copy stands last; nodes read what is copied
                node.replace_input_with(index, new)
            new = self.node(None, "Identity", [new], shape_of(new), hint=f"{old.name}_copy")
        if new.shape is None:
            new.shape = old.shape
        name = old.name
        old.name = self.value_name(f"{name}_replaced")
        new.name = name
        old.replace_all_uses_with(new, replace_graph_outputs=True)

    def drop(self, node: ir.Node) -> None:
        """Remove a node whose outputs nobody reads."""
        self.graph.remove(node, safe=True)
        _detach_inner(node)


def _detach_inner(node: ir.Node) -> None:
    """Let what stands in the graphs of a removed node read nothing: a value counts its readers there too."""
    for attr in node.attributes.values():
        if attr.type == ir.AttributeType.GRAPH:
            for inner in attr.as_graph().all_nodes():
                for index in range(len(inner.inputs)):
                    inner.replace_input_with(index, None)


def make_attribute(name: str, value: Any) -> ir.Attr:
    """An attribute of the type that the plain value shows (the library's own conversion is slow)."""
    if isinstance(value, int):
        return ir.AttrInt64(name, int(value))
    if isinstance(value, float):
        return ir.AttrFloat32(name, value)
    if isinstance(value, str):
        return ir.AttrString(name, value)
    if isinstance(value, list | tuple) and value and all(isinstance(v, int) for v in value):
        return ir.AttrInt64s(name, list(value))
    return ir.convenience.convert_attribute(name, value)


def batch_free(shape: Sequence[int]) -> list[int]:
    """The Reshape constant for a static shape, with a leading 1 written as -1 so that any batch passes."""
    dims = [int(d) for d in shape]
    if dims and dims[0] == 1 and all(d > 0 for d in dims):
        dims[0] = -1
    return dims


def remove_unused(graph: ir.Graph) -> list[str]:
    """Remove nodes and initialisers that no output needs; returns the removed nodes' names."""
    removed: list[str] = []
    for node in reversed(list(graph)):
        if any(o.uses() or o.is_graph_output() for o in node.outputs):
            continue
        removed.append(node.name or node.op_type)
        graph.remove(node, safe=True)
        _detach_inner(node)
    outputs = set(graph.outputs)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and value not in outputs and not value.is_graph_input():
            del graph.initializers[name]
    return removed[::-1]


def used_opset(model: ir.Model) -> int:
    """The version of the default domain that the model imports (0 when it imports none)."""
    imports = model.graph.opset_imports
    return int(imports.get("", imports.get("ai.onnx", 0)))


def names_of(values: Iterable[ir.Value]) -> list[str]:
    """Names of values, unnamed ones as empty strings."""
    return [v.name or "" for v in values]
