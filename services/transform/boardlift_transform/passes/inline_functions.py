"""Inline model-local functions.

Before -> After: a call node of a local function -> the function's own nodes.
Why: the toolchain knows operators only.
Exactness: bit-exact, the same operators run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir
import onnx_ir.passes.common as common

from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Inline every call and remove the functions."""
    result = PassResult()
    if not model.functions:
        return result
    keys = list(model.functions)
    common.InlinePass()(model)
    for key in keys:
        model.functions.pop(key, None)
        result.apply(f"{key[0]}.{key[1]}", "local function", "inlined")
    return result


PASS = Pass(id="inline-functions", summary="inline model-local functions", exactness=BIT_EXACT, apply=apply)
