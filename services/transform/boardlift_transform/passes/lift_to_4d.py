"""Lift rank 1-3 regions to 4-D with a free batch axis; Gemm and constant MatMul become 1x1 Conv, Conv1d becomes Conv2d.

Before -> After: `[N,C] -> Gemm -> Elu -> Gemm` -> `[N,C,1,1] -> Conv 1x1 -> Elu -> Conv 1x1`; `[N,C,T]` lies as
`[N,C,1,T]` around convolutions and `[N,1,T,C]` elsewhere.
Why: the toolchain writes 2-D Gemm, MatMul, Unsqueeze and Flatten as Reshapes to a literal batch of 1, so its calibrator
falls back from batch 8 to 1 and takes 4 to 6 times longer; 3-D Conv does not run on the BPU at all.
Exactness: float rounding (other summation order in the kernels).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, remove_unused, shape_of
from boardlift_transform.lift.regions import choose
from boardlift_transform.lift.rules import RULES
from boardlift_transform.lift.twins import Twins
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, node_label


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite every chosen node on twins; values still read at their old rank are lowered by one Reshape."""
    result = PassResult()
    graph = model.graph
    nodes, layouts = choose(graph)
    if not nodes:
        return result
    editor = Editor(graph, PASS.id)
    twins = Twins(editor, layouts)
    lifted: list[ir.Node] = []
    for node in nodes:
        label = node_label(node)
        editor.release(node)
        made = RULES[node.op_type](node, twins)
        if made is None:
            result.skip(node, f"this form of {node.op_type} has no 4-D rule")
            continue
        for old, new in zip(node.outputs, made, strict=False):
            twins.set(old, new)
        lifted.append(node)
        result.apply(label, f"{node.op_type} {_ranks(node)}", f"{_maker(made[0])} {list(shape_of(made[0]) or ())}")
    done = set(lifted)
    for node in lifted:
        _lower(node, twins, done)
    for node in reversed(lifted):
        editor.drop(node)
    remove_unused(graph)
    return result


def _lower(node: ir.Node, twins: Twins, lifted: set[ir.Node]) -> None:
    """Give readers outside the region the value at its old rank."""
    for old in node.outputs:
        new = twins.get(old)
        if new is None:
            continue
        readers = [use for use in old.uses() if use.node not in lifted]
        if readers or old.is_graph_output():
            shape = shape_of(old)
            if shape is not None and shape != shape_of(new):
                new = twins.editor.reshape(node, new, shape, hint=f"{old.name}_back")
            for use in readers:
                use.node.replace_input_with(use.idx, new)
            if old.is_graph_output():
                twins.editor.replace(old, new)
    for index in range(len(node.inputs)):
        node.replace_input_with(index, None)


def _ranks(node: ir.Node) -> str:
    return f"{list(shape_of(node.outputs[0]) or ())}"


def _maker(value: ir.Value) -> str:
    producer = value.producer()
    return producer.op_type if producer is not None else "input"


PASS = Pass(
    id="lift-to-4d",
    summary="rank 1-3 regions to 4-D with a free batch axis; Gemm/MatMul to 1x1 Conv, Conv1d to Conv2d",
    exactness=ROUNDING,
    apply=apply,
)
