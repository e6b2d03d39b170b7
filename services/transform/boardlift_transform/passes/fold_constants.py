"""Fold constants and shape arithmetic, and replace `If` with a constant condition by its branch.

Before -> After: Shape, Gather, Concat, Reshape(x, computed) -> Reshape(x, constant).
Why: the toolchain needs every shape static and knows neither Shape arithmetic nor control flow.
Exactness: bit-exact for shapes; constants computed in the model's own types (numpy), last-bit rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import remove_unused
from boardlift_transform.fold_graph import fold_graph
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Infer shapes and fold, one walk in graph order."""
    result = fold_graph(model, PASS.id, trust=bool(parameters.get("trust_shapes", False)))
    remove_unused(model.graph)
    return result


PASS = Pass(
    id="fold-constants",
    summary="fold constants and shape arithmetic",
    exactness=ROUNDING,
    apply=apply,
    parameters=(Parameter("trust_shapes", "keep static shapes that are there; default false"),),
)
