"""Know the type, the shape and, where constant, the value of every name in one graph and its parents."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, TypeProto, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from boardlift_transform.opset.schemas import schema_at
from boardlift_transform.opset.shape_rules import RULES, corrected

Array = npt.NDArray[np.generic]
Shape = tuple[int | None, ...]

FOLD_LIMIT = 65_536
"""Elements up to which shape arithmetic is evaluated: such constants are axes, pads and shapes, never weights."""
FOLD_DEPTH = 24
"""How far back a chain of shape arithmetic is followed."""
FOLDABLE = frozenset(
    {"Identity", "Cast", "Unsqueeze", "Squeeze", "Concat", "Gather", "Slice", "Reshape", "Neg", "Add", "Sub", "Mul"}
    | {"Div", "Mod", "Min", "Max", "Floor", "Ceil", "ConstantOfShape", "Range", "Expand", "Tile", "Equal", "Where"}
    | {"Transpose", "ReduceProd", "ReduceSum", "Flatten", "Split", "Sqrt", "Not"}
)


@dataclass
class Scope:
    """Facts about one graph; a subgraph's scope looks into its parents."""

    opset: int
    """ai.onnx opset at which names without a producer record are read."""
    parent: Scope | None = None
    types: dict[str, TypeProto] = field(default_factory=dict)
    tensors: dict[str, TensorProto] = field(default_factory=dict)
    """Initialisers, by reference: weights are never copied here."""
    producers: dict[str, tuple[onnx.NodeProto, int]] = field(default_factory=dict)
    """Node that makes a name, and the opset that node is written at."""
    new_tensors: list[TensorProto] = field(default_factory=list)
    """Constants that adapters added to this graph."""
    known: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)
    """Added constants by content, so that equal ones are stored once."""
    values: dict[str, Array | None] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)
    """Initialisers whose value an adapter has read."""
    late: bool = False
    """Whether some value has an element type that no target knows."""
    refined: set[str] = field(default_factory=set)
    """Names whose shape was looked for once already."""

    def home(self, name: str) -> Scope | None:
        """The scope in which a name is defined, this one or a parent; None if unknown."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.types or name in scope.tensors or name in scope.producers:
                return scope
            scope = scope.parent
        return None

    def type_of(self, name: str) -> TypeProto | None:
        """Type of a value, inferred from its producer if it must be."""
        scope = self.home(name)
        if scope is None:
            return None
        if name in scope.types:
            return scope.types[name]
        if name in scope.tensors:
            tensor = scope.tensors[name]
            scope.types[name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        else:
            scope._infer(name)
        return scope.types.get(name)

    def elem(self, name: str) -> int:
        """Element type as TensorProto.DataType, 0 when unknown or no tensor."""
        found = self.type_of(name) if name else None
        return found.tensor_type.elem_type if found is not None and found.HasField("tensor_type") else 0

    def shape(self, name: str) -> Shape | None:
        """Shape with None for unknown sizes; None when not even the rank is known."""
        found = self.type_of(name) if name else None
        if found is None or not found.HasField("tensor_type"):
            return None
        dims = dims_of(found)
        scope = self.home(name)
        if (dims is None or None in dims) and scope is not None and name not in scope.refined:
            scope._infer(name)
            dims = dims_of(scope.types[name])
        return dims

    def const(self, name: str) -> Array | None:
        """Value of a name that can't change at run time; shape arithmetic on known shapes is evaluated."""
        return self._const(name, FOLD_DEPTH) if name else None

    def _const(self, name: str, depth: int) -> Array | None:
        scope = self.home(name)
        if scope is None:
            return None
        if name in scope.values:
            return scope.values[name]
        value = scope._evaluate(name, depth)
        if value is not None or depth == FOLD_DEPTH:  # a chain cut short may be followed from nearer by
            scope.values[name] = value
        return value

    def _evaluate(self, name: str, depth: int) -> Array | None:
        if name in self.tensors:
            tensor = self.tensors[name]
            if tensor.data_location == TensorProto.EXTERNAL:
                return None
            self.frozen.add(name)
            return numpy_helper.to_array(tensor)
        shape = self.shape(name)
        if shape is not None and 0 in shape and None not in shape and self.elem(name) != TensorProto.STRING:
            return np.zeros([d or 0 for d in shape], helper.tensor_dtype_to_np_dtype(self.elem(name)))
        if name not in self.producers or depth == 0:
            return None
        node, opset = self.producers[name]
        if node.domain not in ("", "ai.onnx"):
            return None
        if node.op_type in ("Shape", "Size"):
            return self._fold_shape(node)
        if node.op_type == "CastLike":
            return self._fold_cast(node, depth)
        if node.op_type != "Constant":
            if node.op_type not in FOLDABLE or not self._is_small(name):
                return None
            feeds = {i: self._const(i, depth - 1) for i in node.input if i}
            if any(v is None or v.size > FOLD_LIMIT for v in feeds.values()):
                return None
        else:
            feeds = {}
        return run_node(node, opset, feeds, name)

    def _fold_cast(self, node: onnx.NodeProto, depth: int) -> Array | None:
        """CastLike needs the type of its second input, not the value."""
        value, elem = self._const(node.input[0], depth - 1), self.elem(node.input[1])
        if value is None or not elem or elem == TensorProto.STRING:
            return None
        return value.astype(helper.tensor_dtype_to_np_dtype(elem))

    def _is_small(self, name: str) -> bool:
        shape = self.shape(name)
        return shape is None or math.prod(d or 0 for d in shape) <= FOLD_LIMIT

    def _fold_shape(self, node: onnx.NodeProto) -> Array | None:
        dims = self.shape(node.input[0])
        if dims is None:
            return None
        attrs = {a.name: a.i for a in node.attribute}
        part = dims[attrs.get("start", 0) : attrs.get("end", len(dims))]
        if any(d is None for d in part):
            return None
        sizes = np.array([d for d in part if d is not None], np.int64)
        return sizes if node.op_type == "Shape" else np.asarray(np.prod(sizes), np.int64)

    def _infer(self, name: str) -> None:
        """Work out types and shapes along the producers of `name`, inputs first, without recursion."""
        if name not in self.producers:
            self.refined.add(name)
            return
        todo = [name]
        self.refined.add(name)
        while todo:
            node, opset = self.producers[todo[-1]]
            open_inputs = [i for i in node.input if i in self.producers and i not in self.refined and self._is_open(i)]
            if open_inputs:
                self.refined.update(open_inputs)
                todo.extend(open_inputs)
                continue
            todo.pop()
            self._infer_node(node, opset)

    def _is_open(self, name: str) -> bool:
        """Whether the type or some size of a name is not known yet."""
        dims = dims_of(self.types[name]) if name in self.types else None
        return dims is None or None in dims

    def _infer_node(self, node: onnx.NodeProto, opset: int) -> None:
        schema = schema_at(node.op_type, opset) if node.domain in ("", "ai.onnx") else None
        if schema is None:
            return
        types = {i: t for i in node.input if i and (t := self.type_of(i)) is not None}
        if any(i and i not in types for i in node.input):
            return
        data = {}
        for i in node.input:
            value = self._const(i, FOLD_DEPTH) if i and self._is_small(i) and i in types else None
            if value is not None and value.size <= 1024:
                data[i] = numpy_helper.from_array(value, i)
        try:
            found = shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=[helper.make_opsetid("", opset)]
            )
        except (shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError, ValueError, TypeError):
            return  # no fact: an adapter that needs one refuses, and the final check catches a malformed node
        if node.op_type in RULES:
            found = corrected(self, node, found)
        for output, new in found.items():
            if output not in self.types or knows_more(new, self.types[output]):
                self.types[output] = new


def dims_of(found: TypeProto) -> Shape | None:
    """Sizes in a type, None for unknown ones; None without a rank."""
    if not found.HasField("tensor_type") or not found.tensor_type.HasField("shape"):
        return None
    return tuple(d.dim_value if d.HasField("dim_value") else None for d in found.tensor_type.shape.dim)


def knows_more(new: TypeProto, old: TypeProto) -> bool:
    """Whether a type of the same kind tells sizes that the old one leaves open, and contradicts none."""
    a, b = dims_of(new), dims_of(old)
    if a is None or new.tensor_type.elem_type != old.tensor_type.elem_type:
        return False
    if b is None:
        return True
    return (
        len(a) == len(b)
        and all(y is None or x == y for x, y in zip(a, b, strict=True))
        and a.count(None) < b.count(None)
    )


def run_node(node: onnx.NodeProto, opset: int, feeds: dict[str, Array | None], output: str) -> Array | None:
    """Evaluate one node on constants; None where the evaluator can't."""
    values = {k: v for k, v in feeds.items() if v is not None}
    types = [helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for v in values.values()]
    inputs = [helper.make_value_info(k, t) for k, t in zip(values, types, strict=True)]
    graph = helper.make_graph([node], "fold", inputs, [helper.make_value_info(output, TypeProto())])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        made: Any = ReferenceEvaluator(model).run([output], values)
    except (RuntimeError, ValueError, TypeError, NotImplementedError, KeyError, IndexError, AttributeError):
        return None
    return np.asarray(made[0]) if not isinstance(made[0], list) else None
