"""Name what would bring CPU nodes back to the BPU, or make costly BPU nodes cheap; pure.

A remedy is a precision, a placement, or a rewrite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from boardlift_compiler.apply_preset import INT16
from boardlift_compiler.explore.list_candidates import apply_plan
from boardlift_compiler.read_model import ModelSummary, Node
from boardlift_compiler.spec import CompileSpec

PASS_OF_TYPE = {
    "Neg": "replace-neg",
    "Min": "replace-min",
    "ReduceMin": "replace-min",
    "Mean": "replace-mean",
    "ReduceMax": "split-reductions",
    "ReduceMean": "split-reductions",
    "ReduceSum": "split-reductions",
    "Expand": "split-broadcast",
    "Tile": "split-broadcast",
    "ArgMax": "softmax-on-last-axis",
    "ArgMin": "softmax-on-last-axis",
    "Slice": "replace-moves",
    "Pad": "replace-moves",
    "Resize": "replace-upsample",
    "GRU": "wire-gru-state",
    "AveragePool": "replace-average-pool",
}
"""Operator that is on the CPU -> transform pass that writes it another way."""
GROUPED_CONV, LAST_AXIS, LIFT = "dense-grouped-conv", "softmax-on-last-axis", "lift-to-4d"
SHUFFLE = "split-depth-to-space"
MOVED_BY_TOOL = ("Relu", "Softmax", "Reshape", "Transpose", "MaxPool", "AveragePool", "GlobalAveragePool")
"""Types for which the tool honours run_on_bpu in some places."""


@dataclass(frozen=True)
class Suggestion:
    """One thing that may help."""

    name: str
    """Stable name."""
    kind: str
    """precision, placement or transform."""
    nodes: tuple[str, ...]
    """Nodes it is about."""
    message: str
    """One sentence."""
    transform_pass: str = ""
    """Pass that does it."""
    spec: CompileSpec | None = None
    """The spec that applies it; None for a transform."""


def suggest_remedies(cpu_nodes: Sequence[str], model: ModelSummary, spec: CompileSpec) -> list[Suggestion]:
    """Return remedies for nodes on the CPU, and for nodes on the BPU in a form known to be dear.

    Args:
        cpu_nodes: Names of nodes on the CPU as the tool prints them.
        model: The model.
        spec: How it is compiled now.
    """
    costly = _costly(model, cpu_nodes)
    if not cpu_nodes:
        return costly
    known = {n.name: n for n in model.nodes}
    nodes = [known[name] for name in cpu_nodes if name in known]
    found = _precision(nodes, cpu_nodes, model, spec)
    movable = tuple(n.name for n in nodes if n.op_type in MOVED_BY_TOOL)
    if movable:
        asked = tuple(dict.fromkeys([*spec.calibration.run_on_bpu, *movable]))
        text = "Ask the tool to move them to the BPU; it does so between BPU neighbours only."
        placed = spec.with_calibration(run_on_bpu=asked)
        found.append(Suggestion("run-on-bpu", "placement", movable, text, spec=placed))
    return found + _transforms(nodes, model) + costly


def _costly(model: ModelSummary, cpu_nodes: Sequence[str]) -> list[Suggestion]:
    def dear(node: Node) -> bool:
        block = node.attributes.get("blocksize", 2)
        return node.op_type == "DepthToSpace" and isinstance(block, int) and block > 2 and node.name not in cpu_nodes

    nodes = tuple(n.name for n in model.nodes if dear(n))
    text = "Write DepthToSpace as blocks of 2 or as Transposes: any other block is stored with channels padded to 64."
    return [Suggestion(SHUFFLE, "transform", nodes, text, SHUFFLE)] if nodes else []


def _precision(
    nodes: Sequence[Node], cpu_nodes: Sequence[str], model: ModelSummary, spec: CompileSpec
) -> list[Suggestion]:
    found = []
    softmax = tuple(n.name for n in nodes if n.op_type == "Softmax")
    if softmax:
        for plan, text in (
            ("softmax-int8", "Run Softmax on the BPU in int8: the fastest form, the coarsest one."),
            ("softmax-int16", "Run Softmax alone on the BPU in int16: little time, little error."),
        ):
            found.append(Suggestion(plan, "precision", softmax, text, spec=apply_plan(spec, plan, model)))
    if not spec.wants_int16 and spec.preset != "int16":
        words = (*spec.calibration.optimization, INT16)
        whole = replace(spec, preset="").with_calibration(optimization=words)
        text = "Run everything in int16: some operators have a BPU form in int16 only."
        found.append(Suggestion("int16", "precision", tuple(cpu_nodes), text, spec=whole))
    return found


def _transforms(nodes: Sequence[Node], model: ModelSummary) -> list[Suggestion]:
    passes: dict[str, list[Node]] = {}
    for node in nodes:
        for name in _passes_for(node, model):
            passes.setdefault(name, []).append(node)
    found = []
    for name, members in passes.items():
        types = ", ".join(sorted({n.op_type for n in members}))
        text = f"Rewrite {types} by the transform pass {name}."
        found.append(Suggestion(name, "transform", tuple(n.name for n in members), text, name))
    return found


def _passes_for(node: Node, model: ModelSummary) -> tuple[str, ...]:
    if node.op_type in ("Conv", "ConvTranspose"):
        weight = model.weights.get(node.inputs[1]) if len(node.inputs) > 1 else None
        group = node.attributes.get("group", 1)
        if weight is None:
            return ()
        lift = (LIFT,) if len(weight.shape) == 3 else ()
        grouped = isinstance(group, int) and group > 1 and all(k == 1 for k in weight.shape[2:])
        return (*lift, GROUPED_CONV) if grouped else lift
    if node.op_type == "Softmax":
        return () if node.attributes.get("axis", 1) in (3, -1) else (LAST_AXIS,)
    known = PASS_OF_TYPE.get(node.op_type)
    return (known,) if known else ()


def remedies_about(node: str, suggestions: Sequence[Suggestion]) -> list[str]:
    """Return the names of the suggestions that are about a node."""
    return [s.name for s in suggestions if node in s.nodes]
