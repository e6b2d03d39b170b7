"""Cut the graph to chosen outputs.

Before -> After: outputs `actions, value, hidden` -> `actions`; nodes that only the others needed are gone.
Why: the board should compute what the robot reads, nothing else; every further output costs time and a CPU hand-over.
Exactness: bit-exact for the outputs that stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import names_of, remove_unused
from boardlift_transform.passes._base import BIT_EXACT, Parameter, Pass, PassResult
from boardlift_transform.refusal import Refusal


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Keep the outputs named by `outputs`, in that order; inner values may be named too."""
    result = PassResult()
    listed = parameters.get("outputs") or []
    wanted = [listed] if isinstance(listed, str) else list(listed)
    graph = model.graph
    if not wanted:
        return result
    before = names_of(graph.outputs)
    values = {v.name: v for v in graph.outputs}
    if any(name not in values for name in wanted):
        values.update({o.name: o for node in graph for o in node.outputs if o.name})
    unknown = [name for name in wanted if name not in values]
    if unknown:
        raise Refusal(
            "OUTPUT_NOT_FOUND",
            f"no value named {', '.join(unknown)}",
            remedy=f"choose from the outputs {', '.join(before)} or any inner value",
            metadata={"outputs": ",".join(unknown)},
        )
    if len(set(wanted)) != len(wanted):
        raise Refusal("OUTPUT_NOT_FOUND", "an output is named twice", metadata={"outputs": ",".join(wanted)})
    while graph.outputs:
        graph.outputs.pop()
    graph.outputs.extend(values[name] for name in wanted)
    removed = remove_unused(graph)
    for value in list(graph.inputs):
        if not value.uses() and value.name not in wanted:
            graph.inputs.remove(value)
            result.apply(value.name or "", "input", "removed, nothing needs it")
    if before != wanted or removed:
        result.apply("graph", f"outputs {', '.join(before)}", f"outputs {', '.join(wanted)}")
        for name in removed:
            result.apply(name, "node", "removed")
    return result


PASS = Pass(
    id="cut-outputs",
    summary="keep chosen outputs and drop what only the others needed",
    exactness=BIT_EXACT,
    apply=apply,
    parameters=(Parameter("outputs", "list of value names to keep, in order; default: all"),),
)
