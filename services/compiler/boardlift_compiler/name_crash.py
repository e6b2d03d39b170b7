"""Where the tool leaves no reason, or a wrong one, look in the model for what is known to stop it; pure."""

from __future__ import annotations

import math
import re

from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.read_model import ModelSummary, Node


def name_crash(failure: StageFailure | None, model: ModelSummary) -> StageFailure | None:
    """Return the failure with the node at fault when it is a crash, or a reshape, that the model explains.

    Nothing is refused beforehand for this: the same form passes where the tool has folded the Add away before.
    """
    if failure is not None and failure.code == "CALIBRATION_SAMPLE_SIZE":
        return _name_slopes(failure, model)
    if failure is None or failure.code != "CRASH":
        return failure
    makers = {output: node for node in model.nodes for output in node.outputs}
    found = [node.name or node.op_type for node in model.nodes if _lacks_bias(node, makers, model)]
    if not found:
        return failure
    return make_failure("CONV_BIAS_CRASH", ", ".join(found[:8]), failure.evidence, failure.exit_code)


def name_runtime_crash(failure: StageFailure, quantized: ModelSummary) -> StageFailure:
    """Return the failure with the node at fault when the runtime died on a quantised model that explains it.

    A Pad by less than nothing: the tool builds it, its runtime ends by signal 11 (measured).
    """
    if failure.code != "CRASH":
        return failure
    pads = {n.name: n.attributes.get("pads", ()) for n in quantized.nodes if n.op_type == "HzPad"}
    found = [name for name, amounts in pads.items() if isinstance(amounts, tuple) and any(a < 0 for a in amounts)]
    if not found:
        return failure
    return make_failure("PAD_CROPS", ", ".join(found[:8]), failure.evidence, failure.exit_code)


def _name_slopes(failure: StageFailure, model: ModelSummary) -> StageFailure:
    """Name the PRelu whose slopes the tool can't reshape: it says the same of a sample of the wrong size."""
    match = re.search(r"cannot reshape array of size (\d+) into shape \(1,1,1,", "\n".join(failure.evidence))
    slopes = {n.name or n.op_type: model.weights.get(n.inputs[1]) for n in model.nodes if n.op_type == "PRelu"}
    found = [name for name, w in slopes.items() if match and w is not None and math.prod(w.shape) == int(match[1])]
    if not found:
        return failure
    return make_failure("PRELU_SLOPES", ", ".join(found[:8]), failure.evidence, failure.exit_code)


def _lacks_bias(node: Node, makers: dict[str, Node], model: ModelSummary) -> bool:
    """True for an unpadded Conv without bias behind an Add of a constant, moves between them left out."""
    pads = node.attributes.get("pads", ())
    if node.op_type != "Conv" or len(node.inputs) != 2 or (isinstance(pads, tuple) and any(pads)):
        return False
    source = makers.get(node.inputs[0])
    while source is not None and source.op_type == "Transpose":
        source = makers.get(source.inputs[0])
    return source is not None and source.op_type == "Add" and any(i in model.weights for i in source.inputs)
