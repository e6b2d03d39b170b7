"""One walk over the graph that infers every type and shape and folds what is constant.

Folding and inference feed each other (`Shape` of a known shape is a constant, a constant Reshape target gives a shape),
so both happen node by node in graph order: one pass, linear time, no fixed-point loop. `If` with a constant condition
is replaced by its branch; both branches of any other are walked where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx.defs
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, is_constant, shape_of, used_opset
from boardlift_transform.evaluate_node import MAX_OUTPUT_ELEMENTS, evaluate_node
from boardlift_transform.infer_node import copy_shape, infer_node
from boardlift_transform.inline_graph import inline_before, rename_values
from boardlift_transform.pass_result import PassResult, node_label

MAX_GROWTH = 4


@dataclass(frozen=True)
class GraphFolder:
    """The walk over one graph, which may be a branch or the copy of a body."""

    editor: Editor
    """Edits the graph that is walked."""
    imports: Mapping[str, int]
    """Operator sets of the model."""
    opset: int
    """Version of the default one."""
    trust: bool
    """Keep static shapes that are there."""
    rules: Mapping[str, FoldRule]
    """Further rewrites by operator, tried on nodes that are not constant."""
    result: PassResult = field(default_factory=PassResult)
    """What was done, in all graphs."""
    schemas: dict[str, onnx.defs.OpSchema | None] = field(default_factory=dict)
    """Schemas by operator, looked up once."""

    def within(self, graph: ir.Graph) -> GraphFolder:
        """The same walk over an inner graph."""
        return replace(self, editor=self.editor.within(graph))

    def fold(self) -> None:
        """Walk the graph in order."""
        for node in self.editor.graph:
            if node.graph is not None:
                self._visit(node)

    def _visit(self, node: ir.Node) -> None:
        if _fold_shape(node, self.editor, self.result) or self._fold_if(node):
            return
        if _fold_constants(node, self.editor, self.opset, self.result):
            return
        rule = self.rules.get(node.op_type)
        if rule is not None and node.domain in ("", "ai.onnx") and rule(node, self):
            return
        if self.trust and all(o.type is not None and shape_of(o) is not None for o in node.outputs):
            return
        if not copy_shape(node):
            infer_node(node, self.imports, self.schemas)

    def _fold_if(self, node: ir.Node) -> bool:
        """Replace an If by the branch that its constant condition takes; walk both branches of any other."""
        if node.op_type != "If" or node.domain not in ("", "ai.onnx"):
            return False
        branches = {name: node.attributes[name].as_graph() for name in ("then_branch", "else_branch")}
        condition = constant_of(node.inputs[0])
        if condition is None:
            for branch in branches.values():
                self.within(branch).fold()
            return False
        name = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
        rename_values(branches[name], self.editor)
        self.within(branches[name]).fold()
        for old, new in zip(node.outputs, inline_before(node, branches[name], self.editor), strict=False):
            self.editor.replace(old, new)
        label = node_label(node)
        self.editor.drop(node)
        self.result.apply(label, "If with constant condition", f"its {name.replace('_', ' ')}")
        return True


FoldRule = Callable[[ir.Node, GraphFolder], bool]


def fold_graph(
    model: ir.Model, pass_id: str, *, trust: bool = False, rules: Mapping[str, FoldRule] | None = None
) -> PassResult:
    """Infer types and shapes of all values in place and fold constants.

    Args:
        model: Edited in place.
        pass_id: Provenance of new nodes.
        trust: Keep static shapes that are there. They come from an earlier walk; those of a user's file may be wrong.
        rules: Further rewrites by operator; each returns True when the node is gone.

    Returns:
        Applied: every folded node. Skipped: foldable nodes whose result would be too large.
    """
    editor = Editor(model.graph, pass_id)
    _lift_constant_nodes(model.graph, editor)
    folder = GraphFolder(editor, model.graph.opset_imports, used_opset(model), trust, rules or {})
    folder.fold()
    return folder.result


def _lift_constant_nodes(graph: ir.Graph, editor: Editor) -> None:
    for node in list(graph):
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
            continue
        tensor = _constant_tensor(node)
        if tensor is None:
            continue
        old = node.outputs[0]
        name = old.name
        value = ir.Value(
            name=None, shape=ir.Shape(list(tensor.shape.numpy())), type=ir.TensorType(tensor.dtype), const_value=tensor
        )
        if old.is_graph_output():
            value.name = editor.value_name(f"{name}_value")
        else:
            old.name = editor.value_name(f"{name}_node")
            value.name = name
        graph.register_initializer(value)
        editor.replace(old, value)
        editor.drop(node)


def _constant_tensor(node: ir.Node) -> ir.TensorProtocol | None:
    tensor = attribute(node, "value")
    if tensor is not None:
        return ir.tensor(tensor.numpy()) if not isinstance(tensor, ir.TensorProtocol) else tensor
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64)):
        if name in node.attributes:
            return ir.tensor(np.asarray(attribute(node, name), dtype))
    if "value_ints" in node.attributes:
        return ir.tensor(np.asarray(attribute(node, "value_ints"), np.int64))
    return None


def _fold_shape(node: ir.Node, editor: Editor, result: PassResult) -> bool:
    if node.op_type not in ("Shape", "Size") or node.domain not in ("", "ai.onnx"):
        return False
    shape = shape_of(node.inputs[0])
    if shape is None:
        return False
    if node.op_type == "Size":
        array = np.asarray(int(np.prod(shape, dtype=np.int64)), np.int64)
    else:
        start, end = int(attribute(node, "start", 0)), attribute(node, "end")
        array = np.asarray(shape[start : None if end is None else int(end)], np.int64)
    _replace_by_constants(node, [array], editor)
    result.apply(node, node.op_type, f"constant {array.tolist()}")
    return True


def _fold_constants(node: ir.Node, editor: Editor, opset: int, result: PassResult) -> bool:
    if node.op_type == "Constant":
        tensor = _constant_tensor(node)
        if tensor is None:
            return False
        _replace_by_constants(node, [np.asarray(tensor.numpy())], editor)
        return True
    if not node.inputs or not all(v is None or is_constant(v) for v in node.inputs):
        return False
    if node.op_type == "Identity" and node.outputs[0].is_graph_output():
        return False  # a constant graph output must be made by a node
    if any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values()):
        return False
    if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
        return False
    arrays = [constant_of(v) for v in node.inputs]
    outputs = evaluate_node(node, arrays, opset)
    if outputs is None:
        return False
    read = sum(a.size for a in arrays if a is not None)
    made = sum(o.size for o in outputs)
    if made > MAX_OUTPUT_ELEMENTS and made > MAX_GROWTH * read:
        result.skip(node, f"the constant would grow from {read} to {made} elements")
        return False
    _replace_by_constants(node, outputs, editor)
    result.apply(node, node.op_type, "constant")
    return True


def _replace_by_constants(node: ir.Node, arrays: list[Array], editor: Editor) -> None:
    for old, array in zip(node.outputs, arrays, strict=False):
        if old.uses() or old.is_graph_output():
            editor.replace(old, editor.constant(array, f"{old.name}_folded"))
    editor.drop(node)
