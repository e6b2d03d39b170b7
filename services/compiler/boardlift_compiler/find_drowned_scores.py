"""Find a Softmax whose scores are drowned by a mask: integers as coarse as the mask is deep; pure.

Measured, one causal head of 10 tokens with a mask of -1e9: signal to noise 4.1 dB in int8, 4.0 dB in int16; with -500
31.8 and 39.2 dB. The tool's cosine of the sum is 1.0, as the mask outweighs everything in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_reports import NodeQuantization

DEEPEST = 1000.0
"""Threshold of a summand in front of a Softmax beyond which ordinary scores have no steps left, in int16 too."""
MOVES = frozenset({"Reshape", "Transpose"})
"""What may stand between the Add and the Softmax: transform pass rows-to-channels puts a Reshape there."""
SPLIT = "_FROM_QUANTIZED_SOFTMAX"
"""End of the names of the nodes that the tool makes of a Softmax on the BPU."""


def find_drowned_scores(quantization: Mapping[str, NodeQuantization]) -> list[Finding]:
    """Return an error per Add in front of a Softmax one of whose calibrated thresholds is beyond ``DEEPEST``.

    Args:
        quantization: Tensors and thresholds per node, by full name.
    """
    makers = {tensor: name for name, node in quantization.items() for tensor in node.outputs}
    pending = [name for name, node in quantization.items() if node.type == "Softmax" or name.endswith(SPLIT)]
    before: list[str] = []
    while pending:
        read = (tensor.removesuffix("_calibrated") for tensor in quantization[pending.pop()].inputs)
        made = [makers[tensor] for tensor in read if tensor in makers]
        before += made
        pending += [name for name in made if quantization[name].type in MOVES]
    found = []
    for name in dict.fromkeys(before):
        node = quantization[name]
        reach = max((abs(v) for limits in node.thresholds for v in limits), default=0.0)
        if node.type == "Add" and reach > DEEPEST:
            text = f"{name}: it adds values down to {-reach:.3g} to scores, which then fall into one integer step."
            advice = "Mask with -500 instead (transform pass tame-constants does it for constant masks)."
            found.append(Finding("MASK_DROWNS_SCORES", "error", text, name, advice))
    return sorted(found, key=lambda f: f.subject)
