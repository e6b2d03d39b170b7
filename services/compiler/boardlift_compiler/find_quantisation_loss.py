"""Name the node at which quantisation costs an output most; pure.

The tool prints a cosine per node: its calibrated model against its float run, on the first calibration sample. Where an
output comes out low, the node with the largest fall from what it reads to what it gives is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_reports import NodeQuantization
from boardlift_compiler.parse_tables import OutputRow

LOW = 0.99
"""Cosine of an output below which a node is named."""


def find_quantisation_loss(outputs: Sequence[OutputRow], quantization: Mapping[str, NodeQuantization]) -> list[Finding]:
    """Return a warning per output below ``LOW`` that names the node with the largest fall among those it depends on.

    Args:
        outputs: Output table of the build.
        quantization: Tensors and cosine per node, by full name.
    """
    makers = {tensor: name for name, node in quantization.items() for tensor in node.outputs}
    found = []
    for row in outputs:
        if not row.cosine < LOW:
            continue
        falls = {name: _fall(name, quantization, makers) for name in _ancestors(row.output, quantization, makers)}
        worst = max(falls, key=lambda name: falls[name][0] - falls[name][1], default="")
        if not worst or falls[worst][0] <= falls[worst][1]:
            continue
        before, behind = falls[worst]
        text = (
            f"{row.output} comes out at cosine {row.cosine:.4f} on the first calibration sample; it falls most at"
            f" {worst} ({quantization[worst].type}), from {before:.4f} to {behind:.4f}."
        )
        advice = "Ask for this node in int16; `boardlift sensitivity` measures every layer and finds the plan."
        found.append(Finding("QUANTISATION_LOSS", "warning", text, worst, advice))
    return found


def _fall(name: str, quantization: Mapping[str, NodeQuantization], makers: Mapping[str, str]) -> tuple[float, float]:
    """Return the cosine in front of a node (the lowest of its inputs, 1 for model inputs and weights) and behind it."""
    before = _before(name, quantization, makers)
    cosine = quantization[name].cosine
    return before, before if cosine is None else cosine


def _before(name: str, quantization: Mapping[str, NodeQuantization], makers: Mapping[str, str]) -> float:
    """Return the lowest cosine in front of a node; nodes without a figure are looked through."""
    lowest, seen = 1.0, {name}
    waiting = [makers[t] for t in quantization[name].inputs if t in makers]
    while waiting:
        maker = waiting.pop()
        cosine = quantization[maker].cosine
        if cosine is not None:
            lowest = min(lowest, cosine)
        elif maker not in seen:
            seen.add(maker)
            waiting += [makers[t] for t in quantization[maker].inputs if t in makers]
    return lowest


def _ancestors(output: str, quantization: Mapping[str, NodeQuantization], makers: Mapping[str, str]) -> list[str]:
    """Return the nodes that an output depends on; all of them when the report does not know the output."""
    if output not in makers:
        return list(quantization)
    seen: dict[str, None] = {}
    waiting = [makers[output]]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen[name] = None
        waiting += [makers[t] for t in quantization[name].inputs if t in makers]
    return list(seen)
