"""Which nodes are lifted, and the layouts of their rank-3 values."""

from __future__ import annotations

import onnx_ir as ir

from boardlift_transform.edit_graph import is_constant, shape_of
from boardlift_transform.lift.rules import RULES, SHAPE_ONLY
from boardlift_transform.lift.twins import CHANNELS_TIME, TOKENS, Axes

SEEDS = frozenset(
    [
        "Gemm",
        "MatMul",
        "Conv",
        "ConvTranspose",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "BatchNormalization",
    ]
)
CHANNEL_SEEDS = SEEDS - {"Gemm", "MatMul"}
_FLOAT_OUT = frozenset({ir.DataType.FLOAT})


class Groups:
    """Union-find over values or nodes."""

    def __init__(self) -> None:
        """Start with everything apart."""
        self._parent: dict[object, object] = {}

    def find(self, item: object) -> object:
        """The representative of the item's group."""
        root = item
        while self._parent.get(root, root) is not root:
            root = self._parent[root]
        while self._parent.get(item, item) is not root:
            self._parent[item], item = root, self._parent[item]
        return root

    def join(self, left: object, right: object) -> None:
        """Unite two groups."""
        a, b = self.find(left), self.find(right)
        if a is not b:
            self._parent[a] = b


def low_rank(value: ir.Value | None) -> bool:
    """True for a computed value of static rank 1 to 3."""
    shape = shape_of(value)
    return value is not None and not is_constant(value) and shape is not None and 1 <= len(shape) <= 3


def candidate(node: ir.Node) -> bool:
    """True when a rule exists and every computed tensor fits in four axes."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in RULES:
        return False
    values = [v for v in (*node.inputs, *node.outputs) if v is not None and not is_constant(v)]
    if not any(low_rank(v) for v in values):
        return False
    for value in values:
        shape = shape_of(value)
        if shape is None or not 1 <= len(shape) <= 4 or 0 in shape or (len(shape) == 3 and shape[0] != 1):
            return False
    first = node.inputs[0] if node.inputs else None
    return first is not None and any(v is not None and v.dtype == ir.DataType.FLOAT for v in node.inputs)


def choose(graph: ir.Graph) -> tuple[list[ir.Node], dict[ir.Value, Axes]]:
    """Nodes to lift in graph order, and layouts of rank-3 values.

    A connected group of candidates is lifted when it holds at least one operator that computes (Gemm, Conv, ...):
    lifting element-wise operators alone would gain nothing.
    """
    nodes = [node for node in graph if candidate(node)]
    regions, layouts = Groups(), Groups()
    inside = set(nodes)
    for node in nodes:
        for value in node.inputs:
            producer = value.producer() if value is not None else None
            if producer in inside and low_rank(value):
                regions.join(node, producer)
        if node.op_type not in SHAPE_ONLY and node.op_type != "Transpose":
            rank3 = [v for v in (*node.inputs, *node.outputs) if low_rank(v) and len(v.shape or ()) == 3]  # type: ignore[union-attr]
            for value in rank3[1:]:
                layouts.join(rank3[0], value)
    for node in nodes:
        # siblings that read the same low-rank value share its layout and its fate
        for value in node.inputs:
            if low_rank(value):
                regions.join(node, value)
    seeded = {regions.find(node) for node in nodes if node.op_type in SEEDS}
    chosen = [node for node in nodes if regions.find(node) in seeded]
    return chosen, _layouts(chosen, layouts)


def _layouts(nodes: list[ir.Node], groups: Groups) -> dict[ir.Value, Axes]:
    channel_groups = {
        groups.find(value)
        for node in nodes
        if node.op_type in CHANNEL_SEEDS
        for value in (*node.inputs, *node.outputs)
        if value is not None and low_rank(value) and len(value.shape or ()) == 3
    }
    out: dict[ir.Value, Axes] = {}
    for node in nodes:
        for value in (*node.inputs, *node.outputs):
            if value is not None and low_rank(value) and len(value.shape or ()) == 3:
                out[value] = CHANNELS_TIME if groups.find(value) in channel_groups else TOKENS
    return out
