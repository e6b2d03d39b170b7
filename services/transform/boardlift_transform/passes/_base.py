"""What a pass is; and the loop that most passes are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, remove_unused
from boardlift_transform.pass_result import Applied, PassResult, Skipped, node_label

__all__ = [
    "BIT_EXACT",
    "ROUNDING",
    "Applied",
    "Parameter",
    "Pass",
    "PassResult",
    "Rule",
    "Skipped",
    "node_label",
    "rewrite_nodes",
]

BIT_EXACT = "bit-exact"
ROUNDING = "float rounding"


@dataclass(frozen=True)
class Parameter:
    """A parameter that a pass takes."""

    name: str
    """snake_case name."""
    description: str
    """Meaning, type and default, in one sentence."""


@dataclass(frozen=True)
class Pass:
    """A graph rewrite: `apply(model, parameters)` edits the model in place and reports."""

    id: str
    """Stable kebab-case name, part of the API."""
    summary: str
    """Before -> After in one line."""
    exactness: str
    """`bit-exact` or `float rounding`."""
    apply: Callable[[ir.Model, Mapping[str, Any]], PassResult]
    """The rewrite. The caller clones when it needs the original."""
    parameters: tuple[Parameter, ...] = ()
    """Parameters that the rewrite understands."""


Rule = Callable[[ir.Node, Editor, PassResult], "tuple[ir.Value, str] | None"]


def rewrite_nodes(model: ir.Model, pass_id: str, operators: Collection[str], rule: Rule) -> PassResult:
    """Offer every node of the given operators to `rule`, in graph order.

    The rule either returns None and has changed nothing (it may have recorded why), or returns the value that takes the
    place of the node's first output and what it is now; the node then goes.
    """
    result = PassResult()
    candidates = [n for n in model.graph if n.op_type in operators and n.domain in ("", "ai.onnx")]
    if not candidates:
        return result
    editor = Editor(model.graph, pass_id)
    for node in candidates:
        if node.graph is None:
            continue
        label, before = node_label(node), node.op_type
        editor.release(node)
        made = rule(node, editor, result)
        if made is None:
            editor.claim(node)
            continue
        value, after = made
        editor.replace(node.outputs[0], value)
        result.apply(label, before, after)
    if result.applied:
        remove_unused(model.graph)
    return result
