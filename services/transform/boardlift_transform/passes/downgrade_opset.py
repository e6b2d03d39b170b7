"""Bring the model to the target's operator set and IR version.

Before -> After: opset 17 / IR 10 -> opset 11 / IR 7.
Why: the toolchain stops at opset 11 and IR 9 (manual: 7).
Exactness: float rounding where an operator is decomposed, else bit-exact. What cannot be expressed is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import PROVENANCE, used_opset
from boardlift_transform.park_weights import park_weights
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Convert to `opset`; large weights stay out of the conversion and are put back by name."""
    from boardlift_transform.opset import downgrade

    result = PassResult()
    target, ir_version = int(parameters.get("opset", 11)), int(parameters.get("ir_version", 7))
    before = used_opset(model)
    if before != target:
        nodes_before = sum(1 for _ in model.graph.all_nodes())
        origins = {_identity(node): node.metadata_props.get(PROVENANCE, "") for node in model.graph.all_nodes()}
        with park_weights(model) as parked:
            converted = downgrade(ir.to_proto(model), target)
            _adopt(model, ir.from_proto(converted))
            parked.restore(model)
        _name_origins(model, origins)
        result.apply("graph", f"opset {before}, {nodes_before} nodes", f"opset {target}, {len(model.graph)} nodes")
    if model.ir_version != ir_version:
        result.apply("graph", f"IR {model.ir_version}", f"IR {ir_version}")
        model.ir_version = ir_version
    return result


def _adopt(model: ir.Model, other: ir.Model) -> None:
    """Let the caller's model object hold the converted graph."""
    model.graph = other.graph
    model.functions.clear()
    model.functions.update(other.functions)


def _identity(node: ir.Node) -> tuple[str, str]:
    return node.op_type, (node.outputs[0].name or "") if node.outputs else ""


def _name_origins(model: ir.Model, origins: Mapping[tuple[str, str], str]) -> None:
    """Write the pass that made it on every node; the conversion keeps no metadata."""
    for node in model.graph.all_nodes():
        made_by = origins.get(_identity(node), PASS.id)
        if made_by:
            node.metadata_props[PROVENANCE] = made_by


PASS = Pass(
    id="downgrade-opset",
    summary="bring the model to the target's opset and IR version",
    exactness=ROUNDING,
    apply=apply,
    parameters=(
        Parameter("opset", "target version of the default operator set; default 11"),
        Parameter("ir_version", "target IR version; default 7"),
    ),
)
