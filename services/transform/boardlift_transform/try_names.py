"""What a caller names of a model, tried before anything is done: a plan refuses what the transform would refuse."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from boardlift_transform.passes import PASSES_BY_ID
from boardlift_transform.plan import PlannedPass

_NAMING = ("fix-dynamic-dims", "freeze-inputs", "cut-outputs")
"""Passes that take names, shapes and values from the caller; the first ones of every plan, and cheap."""


def try_names(model: ir.Model, steps: Iterable[PlannedPass]) -> list[str]:
    """Apply the steps that take names from the caller.

    Args:
        model: A copy for this alone; it is changed.
        steps: The plan.

    Returns:
        What had to be assumed because the caller did not say.

    Raises:
        Refusal: The model has no such input or output, or not of that shape.
    """
    results = [PASSES_BY_ID[step.id].apply(model, step.parameters) for step in steps if step.id in _NAMING]
    return [text for result in results for text in result.assumptions]
