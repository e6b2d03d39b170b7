"""What a caller may ask for, and what of it is refused before anything is done."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boardlift_transform.inspect import ModelSummary
from boardlift_transform.passes import PASSES_BY_ID, replace_foreign
from boardlift_transform.refusal import Refusal

INT16, INT8 = "int16", "int8"


@dataclass(frozen=True)
class Request:
    """What a caller wants done."""

    outputs: Sequence[str] = ()
    """Outputs to keep; empty keeps all."""
    input_shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Static shapes of inputs."""
    frozen_inputs: Mapping[str, Any] = field(default_factory=dict)
    """Inputs to turn into constants, with their values."""
    passes: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Passes to run in this order, with parameters; empty lets the plan choose."""
    skip_passes: Sequence[str] = ()
    """Passes that must not run."""
    precision: str = ""
    """`int8`, `int16` or empty for both."""
    opset: int = 0
    """Operator set to end at; 0 takes the target's."""
    keep_foreign_domains: bool = False
    """Leave operators of foreign domains in the graph instead of refusing them."""


def refuse_request(summary: ModelSummary, request: Request) -> list[Refusal]:
    """Reasons why this model cannot be transformed as asked, found before anything is done."""
    found = []
    for pass_id in [p for p, _ in request.passes] + list(request.skip_passes):
        if pass_id not in PASSES_BY_ID:
            near = difflib.get_close_matches(pass_id, PASSES_BY_ID, n=2)
            guess = f"did you mean {' or '.join(near)}? " if near else ""
            remedy = f"{guess}`boardlift transform --list-passes` names all of them"
            found.append(
                Refusal("PASS_UNKNOWN", f"no pass named {pass_id!r}", remedy=remedy, metadata={"pass": pass_id})
            )
    if request.precision not in ("", INT8, INT16):
        found.append(
            Refusal("PRECISION_UNKNOWN", f"no precision {request.precision!r}", remedy="int8, int16 or empty for both")
        )
    unknown = {op: node for op, node in summary.foreign.items() if op.partition("::")[0] not in replace_foreign.DOMAINS}
    if unknown and not request.keep_foreign_domains and summary.functions == 0:
        operator, node = next(iter(unknown.items()))
        found.append(
            Refusal(
                "FOREIGN_DOMAIN",
                f"node {node} is {operator}, an operator that neither ONNX nor onnxruntime has"
                + (f"; all of them: {', '.join(sorted(unknown))[:300]}" if len(unknown) > 1 else ""),
                remedy="export without custom operators, or cut the model in front of it (onnx.utils.extract_model)",
                metadata={"node": node, "operators": ",".join(sorted(unknown))},
            )
        )
    return found
