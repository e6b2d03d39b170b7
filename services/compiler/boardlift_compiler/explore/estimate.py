"""Estimate what a compiled model costs on a board, and say where the estimate stops being one; pure.

One thread, one model, BPU at 1.0 GHz::

    board_ms = bpu_us / 1000 + 2.44 * (million float output elements) + 0.27 + handovers

The first three terms are a fit over 14 published YOLO models with both a compiler log and a measurement (leaving one
out: rms 0.50 ms, worst 1.26 ms). The last one comes from two published pairs of policies, measured whole and split: a
second BPU subgraph cost 0.28 and 0.68 ms beyond the compiler's figures, the CPU operators between them included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boardlift_compiler.findings import Finding
from boardlift_compiler.read_bin import BinNode, CompiledModel

OUTPUT_MS_PER_MILLION = 2.44
OFFSET_MS = 0.27
RMS_MS, WORST_MS = 0.50, 1.26
"""Leaving one of the 14 models out and predicting it."""
FITTED_US = (495.4, 49071.9)
"""Range of the compiler estimates that the fit saw."""
HANDOVER_US, HANDOVER_LOW_US, HANDOVER_HIGH_US = 484.0, 282.0, 685.0
"""Mean and ends of the two published pairs."""
BORDER_OPS = frozenset({"Quantize", "Dequantize"})
RELATION = (
    "board_ms = bpu_us/1000 + 2.44 * million float output elements + 0.27 + 0.484 per further BPU subgraph;"
    " one thread, BPU at 1.0 GHz. Fitted on 14 YOLO models (nv12, float outputs, one subgraph): rms 0.50 ms, worst"
    " 1.26 ms when left out; the cost per further subgraph rests on two published pairs (0.28 and 0.68 ms)."
)


@dataclass(frozen=True)
class Island:
    """A run of operators on the CPU."""

    nodes: tuple[BinNode, ...]
    """Its operators, without Quantize and Dequantize."""
    splits: bool
    """True when the BPU runs before and after it."""
    elements: int
    """Elements that cross between it and the BPU per frame."""

    @property
    def names(self) -> tuple[str, ...]:
        """Operators as "name (type)"."""
        return tuple(f"{n.name} ({n.op_type})" for n in self.nodes)

    @property
    def handover_us(self) -> tuple[float, float, float]:
        """Estimated, low and high cost of leaving the BPU for it and coming back; 0 at the ends of the model."""
        if not self.splits:
            return 0.0, 0.0, 0.0
        copy = crossing_us(self.elements)
        return HANDOVER_US + copy, HANDOVER_LOW_US + copy, HANDOVER_HIGH_US + copy


@dataclass(frozen=True)
class LatencyEstimate:
    """Estimated latency of one build. Nothing ran on a board."""

    bpu_us: float
    """Sum of the compiler's estimates over all BPU subgraphs."""
    handover_us: float
    """Cost of the handovers between them."""
    board_ms: float
    """One frame, one thread."""
    low_ms: float
    """Lower end: the worst error of the fit and the cheaper of the two pairs."""
    high_ms: float
    """Upper end."""
    bpu_subgraphs: int
    """Number of BPU subgraphs."""


def crossing_us(elements: int) -> float:
    """Return the estimated time to convert and copy elements between BPU and CPU, microseconds."""
    return OUTPUT_MS_PER_MILLION * elements / 1000.0


def estimate_board(subgraph_us: Sequence[float], float_outputs: int, crossing: int = 0) -> LatencyEstimate:
    """Estimate one frame on the board.

    Args:
        subgraph_us: The compiler's estimate per BPU subgraph, microseconds.
        float_outputs: Elements of all float outputs together.
        crossing: Elements that cross between BPU and CPU inside the model.
    """
    bpu_us = math.fsum(subgraph_us)
    further = max(len(subgraph_us) - 1, 0)
    copy = crossing_us(crossing) if further else 0.0
    handover_us = further * HANDOVER_US + copy
    floor_ms = bpu_us / 1000.0
    base_ms = floor_ms + OUTPUT_MS_PER_MILLION * float_outputs / 1e6 + OFFSET_MS
    low = base_ms + (further * HANDOVER_LOW_US + copy) / 1000.0 - WORST_MS
    high = base_ms + (further * HANDOVER_HIGH_US + copy) / 1000.0 + WORST_MS
    return LatencyEstimate(
        bpu_us, handover_us, base_ms + handover_us / 1000.0, max(low, floor_ms), high, len(subgraph_us)
    )


def estimate_compiled(model: CompiledModel, subgraph_us: Sequence[float]) -> LatencyEstimate:
    """Estimate a compiled model, given the compiler's estimates of its subgraphs."""
    islands = find_islands(model)
    crossing = sum(i.elements for i in islands if i.splits)
    return estimate_board(subgraph_us, float_output_elements(model), crossing)


def graph_outputs(model: CompiledModel) -> list[str]:
    """Return the names of tensors that leave the model."""
    used = {name for node in model.nodes for name in node.inputs}
    return [name for node in model.nodes for name in node.outputs if name not in used]


def float_output_elements(model: CompiledModel) -> int:
    """Return the number of elements of all float outputs."""
    known = (model.tensors.get(name) for name in graph_outputs(model))
    return sum(math.prod(t.shape) for t in known if t is not None and t.dtype == "float32")


def find_islands(model: CompiledModel) -> list[Island]:
    """Return the runs of CPU operators in execution order; runs of nothing but Quantize and Dequantize are none."""
    runs: list[list[BinNode]] = [[]]
    for node in model.nodes:
        if node.op_type == "BPU":
            runs.append([])
        else:
            runs[-1].append(node)
    found = []
    for position, run in enumerate(runs):
        operators = tuple(n for n in run if n.op_type not in BORDER_OPS)
        if operators:
            found.append(Island(operators, 0 < position < len(runs) - 1, _crossing(run, model)))
    return found


def _crossing(run: Iterable[BinNode], model: CompiledModel) -> int:
    from_bpu = {name for n in model.bpu_nodes for name in n.outputs}
    to_bpu = {name for n in model.bpu_nodes for name in n.inputs}
    names = {name for n in run for name in n.inputs if name in from_bpu}
    names |= {name for n in run for name in n.outputs if name in to_bpu}
    return sum(math.prod(model.tensors[name].shape) for name in names if name in model.tensors)


def limits_of(model: CompiledModel, estimate: LatencyEstimate) -> list[Finding]:
    """Return one finding per condition of the relation that the model does not meet."""
    found = []

    def outside(code: str, text: str, remedy: str = "Measure it on a board.") -> None:
        found.append(Finding(f"ESTIMATE_{code}", "note", text, "", remedy))

    if estimate.bpu_subgraphs > 1:
        outside("SEVERAL_SUBGRAPHS", f"{estimate.bpu_subgraphs} BPU subgraphs: the cost of each handover rests on two"
                " published pairs.", "Bring the CPU nodes between them to the BPU.")  # fmt: skip
    names = [name for island in find_islands(model) for name in island.names]
    if names:
        outside("CPU_NODES", f"The time of CPU operators themselves is not in it: {', '.join(names[:6])}.")
    if any(t is not None and t.dtype != "float32" for t in map(model.tensors.get, graph_outputs(model))):
        outside("QUANTISED_OUTPUTS", "Outputs that leave the model as integers were not in the fit.")
    kinds = {k for k in model.options.get("INPUT_TYPE_RT", "").split(";") if k}
    if kinds != {"nv12"}:
        outside("INPUT_KIND", f"The fit saw nv12 images only, this model takes {', '.join(sorted(kinds)) or 'others'}.")
    if not FITTED_US[0] <= estimate.bpu_us <= FITTED_US[1]:
        outside("RANGE", f"{estimate.bpu_us:.1f} us (estimated) lies outside the {FITTED_US[0]:.0f} to"
                f" {FITTED_US[1]:.0f} us of the fit; below it the fixed part dominates: published policies took 0.45 to"
                " 0.94 ms (measured) beyond the compiler's figure.")  # fmt: skip
    level = next((w for w in model.options.get("hbdk_pass_through_params", "").split() if w.startswith("--O")), "")
    if level not in ("--O2", "--O3"):
        outside("LEVEL", f"It was built at {level.lstrip('-') or 'an unknown level'}; only O2 and O3 predict the"
                " delivered model.", "Compile with O2 or O3.")  # fmt: skip
    return found
