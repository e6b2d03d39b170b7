"""Write operators of foreign domains in ONNX's own, and refuse the others by name.

Before -> After: onnxruntime's FusedConv, FusedGemm, FusedMatMul, Gelu, SkipLayerNormalization ... and ai.onnx.ml's
Scaler, Normalizer, Imputer, LinearRegressor, LinearClassifier ... -> the operators that they stand for.
Why: the toolchain knows the domain ai.onnx only ("nodes are specified as domain").
Exactness: float rounding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import onnx.defs
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, remove_unused, shape_of, used_opset
from boardlift_transform.foreign import contrib, ml
from boardlift_transform.infer_node import infer_node
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult, node_label
from boardlift_transform.refusal import Refusal

_OWN = ("", "ai.onnx")
_RULES = {"com.microsoft": contrib.RULES, "ai.onnx.ml": ml.RULES}
DOMAINS = (*_RULES, "com.microsoft.nchwc", "com.ms.internal.nhwc")
"""Domains whose operators stock onnxruntime runs."""
_SILENT = frozenset({"SimplifiedLayerNormalization", "LayerNormalization"})
"""onnxruntime writes these into ONNX's own domain, whatever the opset; ONNX has the second since opset 17."""
_REMEDIES = {
    "com.microsoft.nchwc": "onnxruntime saved it for the processor of one machine: give the model as it was before, or"
    " save it with ORT_ENABLE_BASIC",
    "com.microsoft": "give the model as it was before onnxruntime's optimiser or quantiser, or save it with"
    " ORT_ENABLE_BASIC",
    "ai.onnx.ml": "the board has no kernel for it: leave it to onnxruntime beside the board's model and ask only for"
    " outputs in front of it",
    "ZipMap": "convert with options={'zipmap': False}, or ask only for outputs without it",
    "": "export without custom operators",
}


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite what there is a rule for.

    Raises:
        Refusal: FOREIGN_DOMAIN for the first node that is left, unless `keep` is set.
    """
    result, opset = PassResult(), used_opset(model)
    editor = Editor(model.graph, PASS.id)
    reasons: dict[str, str] = {}
    seen: set[ir.Value] = set()
    schemas: dict[str, onnx.defs.OpSchema | None] = {}
    for node in list(model.graph):
        domain = "com.microsoft" if _is_silent(node, opset) else node.domain
        rule = _RULES.get(domain, {}).get(node.op_type)
        if rule is not None:
            _infer_inputs(node, model, seen, schemas)
        made = rule(node, editor, opset) if rule is not None else ""
        if isinstance(made, str):
            reasons[node_label(node)] = made
            continue
        for old, new in made:
            editor.replace(old, new)
        result.apply(node, f"{domain}::{node.op_type}", ", ".join(sorted({_kind(v) for _, v in made})))
        editor.drop(node)
    if result.applied:
        remove_unused(model.graph)
    if not parameters.get("keep", False):
        _refuse_rest(model, opset, reasons)
    return result


def _infer_inputs(
    node: ir.Node, model: ir.Model, seen: set[ir.Value], schemas: dict[str, onnx.defs.OpSchema | None]
) -> None:
    """Infer the shapes of the node's inputs: files that the optimiser saved do not tell them, rules ask for them."""
    waiting = [v for v in node.inputs if v is not None]
    makers: set[ir.Node] = set()
    while waiting:
        value = waiting.pop()
        maker = value.producer()
        if maker is None or value in seen or shape_of(value) is not None:
            continue
        seen.add(value)
        makers.add(maker)
        waiting += [v for v in maker.inputs if v is not None]
    for maker in (n for n in model.graph if n in makers) if makers else ():
        infer_node(maker, model.graph.opset_imports, schemas)


def is_needed(operators: Collection[str], opset: int) -> bool:
    """True when a model with these operators (foreign ones as `domain::Operator`) has something for this pass."""
    silent = _SILENT if opset < 17 else _SILENT - {"LayerNormalization"}
    return any("::" in op or op in silent for op in operators)


def _kind(value: ir.Value) -> str:
    producer = value.producer()
    return producer.op_type if producer is not None else "input"


def _is_silent(node: ir.Node, opset: int) -> bool:
    return node.domain in _OWN and node.op_type in _SILENT and (opset < 17 or node.op_type != "LayerNormalization")


def _refuse_rest(model: ir.Model, opset: int, reasons: Mapping[str, str]) -> None:
    rest = [n for n in model.graph.all_nodes() if n.domain not in _OWN or _is_silent(n, opset)]
    if not rest:
        return
    first = rest[0]
    label, why = node_label(first), reasons.get(node_label(first), "")
    kinds = sorted({f"{n.domain or 'com.microsoft'}::{n.op_type}" for n in rest})
    raise Refusal(
        "FOREIGN_DOMAIN",
        f"node {label} is {first.domain or 'com.microsoft'}::{first.op_type}, which is not ONNX's own"
        + (f" ({why})" if why else "")
        + (f"; {len(rest)} such nodes: {', '.join(kinds)[:300]}" if len(rest) > 1 else ""),
        remedy=_REMEDIES.get(first.op_type) or _REMEDIES.get(first.domain or "com.microsoft") or _REMEDIES[""],
        metadata={"node": label, "operators": ",".join(kinds), "count": len(rest)},
    )


PASS = Pass(
    id="replace-foreign",
    summary="operators of com.microsoft and ai.onnx.ml -> ONNX's own",
    exactness=ROUNDING,
    apply=apply,
    parameters=(Parameter("keep", "leave foreign operators without a rule in the graph; default false"),),
)
