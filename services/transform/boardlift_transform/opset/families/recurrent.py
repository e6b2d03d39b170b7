"""GRU, LSTM, RNN: layout 1 (batch first) becomes layout 0 between Transposes.

Exactness: bit-exact; data are only moved.
"""

from __future__ import annotations

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step

_STATES = {"GRU": (5,), "RNN": (5,), "LSTM": (5, 6)}
"""Inputs that hold initial states [batch, directions, hidden] in layout 1."""


@adapter("GRU", 14)
@adapter("RNN", 14)
@adapter("LSTM", 14)
def time_first(step: Step) -> None:
    """Transposes around the operator; nothing for layout 0."""
    if not step.attr("layout", 0):
        step.same(drop=["layout"])
        return
    inputs = [*step.node.input]
    inputs[0] = step.op("Transpose", [inputs[0]], perm=[1, 0, 2])
    for i in _STATES[step.node.op_type]:
        if i < len(inputs) and inputs[i]:
            inputs[i] = step.op("Transpose", [inputs[i]], perm=[1, 0, 2])
    attrs = {k: step.attr(k) for k in step.attrs if k != "layout"}
    inner = step.multi(step.node.op_type, inputs, [""] * len(step.node.output), **attrs)
    for i, name in enumerate(step.node.output):
        if name:  # Y is [steps, directions, batch, hidden], the last states [directions, batch, hidden]
            step.op("Transpose", [inner[i]], name, perm=[2, 0, 1, 3] if i == 0 else [1, 0, 2])
