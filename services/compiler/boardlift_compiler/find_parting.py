"""Tell integers that are not what calibration promised from plain quantisation loss, and name the node; pure.

The tool leaves three models: float, calibrated (float that rounds where the integers will) and quantised (integers).
Its own cosine compares the first two, so what it gets wrong behind calibration shows nowhere. On 238 builds of random
networks (simulated) the integers were at most 5 dB behind where they were right, and 9 to 46 dB where they were not.
The node at fault was itself at 16 dB or less in those that were looked at; a coarse table can be as far behind at an
output that hardly moves: on a public voice detector 6 to 15 dB, by a Sqrt that is at 31 dB itself. That is a warning.
So is an output that still has its signal: in int16 the last Conv rounds its weights as calibration does not, which on
small policies leaves 23 to 27 dB of 42 to 49.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from boardlift_compiler.findings import Finding

NEAR_DB = 30.0
"""Signal to noise of an output, quantised against float, from which nothing is said."""
BEHIND_DB = 8.0
"""How far the quantised model may be behind the calibrated one."""
COARSE_DB = 25.0
"""Signal to noise of a node's integers against the calibrated model from which it is coarse, not wrong."""
LOSS_DB = 17.0
"""Signal to noise of an output against float below which its signal counts as lost: cosine 0.99 without a mean."""
CAP_DB = 60.0
"""Figures above are all the same: perfect."""


@dataclass(frozen=True)
class OutputGap:
    """One float output; decibels against the tool's float model, None when it never changes."""

    output: str
    """Its name."""
    source: str
    """Tensor that a node makes and the output is."""
    calibrated_db: float | None
    """Signal to noise of the calibrated model."""
    quantized_db: float | None
    """Signal to noise of the quantised model."""


@dataclass(frozen=True)
class NodeGap:
    """One node of the calibrated model; a figure is None where there is nothing to compare."""

    node: str
    """Its name."""
    type: str
    """Operator type."""
    inputs: tuple[str, ...]
    """Tensors that it reads, weights included."""
    output: str
    """Its first output."""
    calibrated_db: float | None
    """Signal to noise, calibrated against float."""
    integers_db: float | None
    """Signal to noise, integers against calibrated."""


def find_parting(outputs: Sequence[OutputGap], nodes: Sequence[NodeGap]) -> list[Finding]:
    """Return an error per output whose integers are far behind the calibrated model, a warning per coarse or lossy one.

    Args:
        outputs: All float outputs.
        nodes: All nodes in order; may be empty, then no node is named.
    """
    found = [f for row in outputs for f in _judge(row, nodes)]
    return list({(f.code, f.subject): f for f in reversed(found)}.values())[::-1]


def _judge(row: OutputGap, nodes: Sequence[NodeGap]) -> Iterator[Finding]:
    if row.calibrated_db is None or row.quantized_db is None:
        return
    if row.quantized_db < NEAR_DB and row.calibrated_db - row.quantized_db > BEHIND_DB:
        text = (
            f"Output {row.output}: the integers are at {row.quantized_db:.1f} dB of signal to noise on calibration"
            f" samples, where calibration promised {row.calibrated_db:.1f} dB."
        )
        at = first_fall(row.source, nodes, {n.output: n.integers_db for n in nodes})
        coarse = at is not None and at.behind_db >= COARSE_DB
        severity = "warning" if coarse or row.quantized_db >= LOSS_DB else "error"
        advice = "Put this node on the CPU (run_on_cpu), or write it another way; keep the build and report it."
        yield Finding("INTEGERS_PART", severity, f"{text}{_told(at)}", at.subject if at else row.output, advice)
    elif row.calibrated_db < LOSS_DB:
        text = f"Output {row.output} comes out at {row.calibrated_db:.1f} dB of signal to noise, its mean taken out."
        at = first_fall(row.source, nodes, {n.output: n.calibrated_db for n in nodes})
        advice = "Ask for this node in int16; `boardlift sensitivity` measures every layer and finds the plan."
        yield Finding("QUANTISATION_LOSS", "warning", f"{text}{_told(at)}", at.subject if at else row.output, advice)


@dataclass(frozen=True)
class Fall:
    """Where a figure falls most."""

    subject: str
    """Name of the node."""
    type: str
    """Its operator."""
    before_db: float
    """The lowest figure in front of it."""
    behind_db: float
    """The figure behind it."""
    passed: tuple[str, ...]
    """Nodes without a figure in front of it: they may be what is at fault."""


def _told(at: Fall | None) -> str:
    if at is None:
        return ""
    behind = f", behind {', '.join(at.passed[:3])}" if at.passed else ""
    return f" It falls at {at.subject} ({at.type}{behind}), from {at.before_db:.0f} to {at.behind_db:.0f} dB."


def first_fall(tensor: str, nodes: Sequence[NodeGap], figures: Mapping[str, float | None]) -> Fall | None:
    """Return the node with the largest fall among those that a tensor depends on; None when there is none."""
    makers = {n.output: n for n in nodes}
    wanted, waiting = set[str](), [tensor]
    while waiting:
        name = waiting.pop()
        if name in makers and name not in wanted:
            wanted.add(name)
            waiting += makers[name].inputs
    best: Fall | None = None
    for node in nodes:
        figure = figures[node.output]
        if node.output not in wanted or figure is None:
            continue
        before, passed = _before(node, makers, figures)
        if before - figure > (best.before_db - best.behind_db if best else 3.0):
            best = Fall(node.node, node.type, before, figure, passed)
    return best


def _before(
    node: NodeGap, makers: Mapping[str, NodeGap], figures: Mapping[str, float | None]
) -> tuple[float, tuple[str, ...]]:
    """Return the lowest figure in front of a node, and the nodes without one that were looked through."""
    lowest, passed = CAP_DB, dict[str, None]()
    waiting = [makers[t] for t in node.inputs if t in makers]
    while waiting:
        maker = waiting.pop()
        figure = figures[maker.output]
        if figure is not None:
            lowest = min(lowest, figure)
        elif maker.node not in passed:
            passed[maker.node] = None
            waiting += [makers[t] for t in maker.inputs if t in makers]
    return lowest, tuple(passed)
