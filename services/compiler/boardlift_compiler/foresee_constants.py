"""Say which constants of a model the tool's integers forget: bounds of a Clip, slopes of activations; pure.

Measured against the float model, signal to noise: a Clip to -1..1 as int16 output -3.7 dB, into a Concat 18.5 dB, into
a Sigmoid 19.7 dB (47, 32 and 51 dB as two one-sided ones), behind a one-sided Clip -4.7 dB, behind a LeakyRelu 8.7 dB
(27.8 and 22.9 dB); HardSigmoid with alpha 0.25 22 dB (47 dB as Clip); Selu with
alpha 1.2 and gamma 1.3 18 dB (34 dB with its defaults); an Add behind a ConvTranspose of 2 groups 14 dB. The tool's own
cosine is taken before the first three and behind the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from boardlift_compiler.findings import Finding
from boardlift_compiler.read_model import ModelSummary, Node

HOLDS = frozenset(
    "Conv ConvTranspose Gemm MatMul Add Sub Neg Pow Relu Elu Floor Where Concat Pad Tile DepthToSpace Max Min MaxPool"
    " AveragePool GlobalAveragePool GlobalMaxPool ReduceMean ReduceSum".split()
)
"""Makers behind which the threshold of a Clip to -c..c is taken; tables do not take it."""
CODES = frozenset({"CLIP_LOST", "ACTIVATION_CONSTANTS_IGNORED", "GROUPED_BIAS_WRONG"})
TABLES = {
    "HardSigmoid": {"alpha": (0.2, 1 / 6), "beta": (0.5, 0.5)},
    "Selu": {"alpha": (1.6732632, 1.6732632), "gamma": (1.050701, 1.050701)},
}
"""Operator -> constant -> (ONNX's default, the value in the tool's table)."""
NEAR = 1e-4
SATURATES = frozenset("Conv Mul Div Add Sub ReduceMean ReduceSum Abs LeakyRelu AveragePool GlobalAveragePool".split())
"""Readers in front of which the threshold that stands for a Clip stays in force."""
MOVES = frozenset("Transpose Reshape Slice MaxPool".split())
"""Readers that pass integers on as they are."""


def foresee_constants(model: ModelSummary) -> Iterator[Finding]:
    """Yield an error per node whose constants the integer model will not have."""
    readers: dict[str, list[Node]] = {}
    for node in model.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    outputs = {o.name for o in model.outputs}
    makers = {name: node for node in model.nodes for name in node.outputs}
    for node in model.nodes:
        if node.op_type in TABLES:
            yield from _table(node)
        elif node.op_type == "Clip" and _is_threshold(node, model):
            yield from _clip(node, model, makers, _saturates(node, readers, outputs))
        elif node.op_type in ("Add", "Sub"):
            yield from _grouped_bias(node, model, makers)


def _clip(node: Node, model: ModelSummary, makers: Mapping[str, Node], in_force: bool) -> Iterator[Finding]:
    low = model.weights[node.inputs[1]].number
    front = _in_front(node, model, makers)
    if in_force and (low == 0.0 or not front):
        return
    why = "what reads it has another one" if not in_force else f"the {front} in front of it takes part in it"
    text = f"{node.name or 'Clip'}: the tool keeps nothing of this Clip but a threshold, and {why}"
    advice = "Clip each side by itself (transform pass split-clip)."
    yield Finding("CLIP_LOST", "error", f"{text}: the BPU clips something else, or nothing.", node.name, advice)


def _in_front(node: Node, model: ModelSummary, makers: Mapping[str, Node]) -> str:
    """Return the operator in front of a node, moves looked through, that does not hold a threshold; else nothing."""
    maker = makers.get(node.inputs[0])
    if maker is None or maker.op_type in HOLDS:
        return ""
    if maker.op_type == "Mul" and any(name in model.weights for name in maker.inputs):
        return ""  # one of two computed tensors may be fused to a table: Swish, Mish, Gelu
    return _in_front(maker, model, makers) if maker.op_type in MOVES else maker.op_type


def _grouped_bias(node: Node, model: ModelSummary, makers: Mapping[str, Node]) -> Iterator[Finding]:
    """The tool makes the constant a bias of the ConvTranspose, in the wrong order where that is grouped."""
    found = [makers[name] for name in node.inputs if name in makers]
    groups = [m.attributes.get("group", 1) for m in found if m.op_type == "ConvTranspose"]
    if groups and groups[0] != 1 and any(name in model.weights for name in node.inputs):
        yield Finding(
            "GROUPED_BIAS_WRONG",
            "error",
            f"{node.name or node.op_type}: the tool folds this constant into the grouped ConvTranspose before it, and"
            " gives it to the wrong channels.",
            node.name,
            "Fold it into the bias (transform pass fold-conv-transpose).",
        )


def _table(node: Node) -> Iterator[Finding]:
    own = {n: node.attributes.get(n, default) for n, (default, _) in TABLES[node.op_type].items()}
    known = {n: value for n, (_, value) in TABLES[node.op_type].items()}
    if any(isinstance(v, int | float) and abs(v - known[n]) >= NEAR for n, v in own.items()):
        told = ", ".join(f"{n} {v}" for n, v in own.items())
        yield Finding(
            "ACTIVATION_CONSTANTS_IGNORED",
            "error",
            f"{node.name or node.op_type}: the tool computes {node.op_type} by a table with constants of its own, not"
            f" with {told}.",
            node.name,
            "Write it with operators that keep theirs (transform pass decompose-activation).",
        )


def _is_threshold(node: Node, model: ModelSummary) -> bool:
    """True for -c..c and 0..c, the two forms that the tool takes out of the graph."""
    bounds = [model.weights.get(name) for name in node.inputs[1:3] if name]
    values = [bound.number for bound in bounds if bound is not None]
    if len(values) != 2 or values[0] is None or values[1] is None:
        return False
    return values[0] in (-values[1], 0.0)


def _saturates(node: Node, readers: Mapping[str, Sequence[Node]], outputs: set[str]) -> bool:
    if outputs.intersection(node.outputs):
        return False
    found = [n for name in node.outputs for n in readers.get(name, ())]
    return all(n.op_type in SATURATES or (n.op_type in MOVES and _saturates(n, readers, outputs)) for n in found)
