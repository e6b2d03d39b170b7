"""Inner graphs of If, Loop and Scan: copied with their inputs bound, and moved into the graph around them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from boardlift_transform.edit_graph import PROVENANCE, Editor, shape_of, source_of


def copy_body(body: ir.Graph, feeds: Sequence[ir.Value], editor: Editor) -> ir.Graph:
    """Copy a body so that it reads `feeds` in place of its inputs.

    Names are fresh, and shapes that the body states are forgotten: they may change from one step to the next. Weights
    are shared, values of the graphs around it are read where they are.
    """
    made = body.clone(allow_outer_scope_values=True)
    within = editor.within(made)
    for index, output in enumerate(made.outputs):
        if output.is_graph_input():  # handed through; an output must be made by a node
            made.outputs[index] = within.node(None, "Identity", [output], None, dtype=output.dtype)
    for value, feed in zip(list(made.inputs), feeds, strict=True):
        value.replace_all_uses_with(feed)
    made.inputs.clear()
    rename_values(made, editor)
    for node in made:
        for output in node.outputs:
            output.shape = None
    return made


def rename_values(inner: ir.Graph, editor: Editor) -> None:
    """Give the nodes, values and constants of an inner graph names that nothing else in the model has."""
    for name, value in list(inner.initializers.items()):
        del inner.initializers[name]
        value.name = editor.value_name(name)
        inner.register_initializer(value)
    for node in inner:
        node.name = editor.node_name(node.name or node.op_type)
        for output in node.outputs:
            if output.name:
                output.name = editor.value_name(output.name)


def inline_before(anchor: ir.Node, inner: ir.Graph, editor: Editor) -> list[ir.Value]:
    """Move the nodes and constants of an inner graph in front of `anchor`; return what its outputs are.

    The names must be free (`rename_values`). An output that only copies another value is that value.
    """
    outputs = [source_of(value) for value in inner.outputs]
    inner.outputs.clear()
    for name, value in list(inner.initializers.items()):
        del inner.initializers[name]
        editor.graph.register_initializer(value)
    for node in list(inner):
        inner.remove(node)
        node.metadata_props[PROVENANCE] = editor.pass_id
        anchor.prepend(node)
    return outputs


def run_if(
    anchor: ir.Node, condition: ir.Value, inner: ir.Graph, otherwise: Sequence[ir.Value], editor: Editor, name: str
) -> ir.Node:
    """Put an If in front of `anchor`: what `inner` gives where the condition holds, else the values in `otherwise`."""
    keep = ir.Graph([], [], nodes=[], name=f"{name}_keep", opset_imports=dict(editor.graph.opset_imports))
    within = editor.within(keep)
    keep.outputs.extend(
        within.node(None, "Identity", [v], shape_of(v), hint=f"{name}_keep", dtype=v.dtype) for v in otherwise
    )
    inner.name = f"{name}_run"
    branches = {"then_branch": inner, "else_branch": keep}
    made = editor.node_outputs(anchor, "If", [condition], [None] * len(otherwise), branches, hint=name)
    node = made[0].producer()
    if node is None:
        raise ValueError("a new node makes its outputs")
    for output, value in zip(made, otherwise, strict=True):
        output.type = value.type
    return node
