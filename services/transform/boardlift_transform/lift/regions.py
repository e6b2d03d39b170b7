"""Which nodes are lifted, and the layouts of their rank-3 values."""

from __future__ import annotations

import onnx_ir as ir

from boardlift_transform.edit_graph import is_constant, shape_of
from boardlift_transform.lift.rules import RULES, SHAPE_ONLY
from boardlift_transform.lift.twins import BATCHLESS, CHANNELS_TIME, TOKENS, Axes

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
        if shape is None or not 1 <= len(shape) <= 4 or 0 in shape:
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
            for rank in (2, 3):
                alike = [v for v in (*node.inputs, *node.outputs) if has_rank(v, rank)]
                for value in alike[1:]:
                    layouts.join(alike[0], value)
    for node in nodes:
        # siblings that read the same low-rank value share its layout and its fate
        for value in node.inputs:
            if low_rank(value):
                regions.join(node, value)
    seeded = {regions.find(node) for node in nodes if node.op_type in SEEDS}
    chosen = [node for node in nodes if regions.find(node) in seeded]
    return chosen, _layouts(chosen, layouts)


def has_rank(value: ir.Value | None, rank: int) -> bool:
    """True for a computed value of this static rank."""
    return low_rank(value) and len(shape_of(value) or ()) == rank


def _layouts(nodes: list[ir.Node], groups: Groups) -> dict[ir.Value, Axes]:
    """Layouts of values of rank 2 and 3; all values of a group lie alike."""
    members: dict[object, list[ir.Value]] = {}
    channel_groups = set()
    for node in nodes:
        for value in (*node.inputs, *node.outputs):
            if value is None or not (has_rank(value, 2) or has_rank(value, 3)):
                continue
            members.setdefault(groups.find(value), []).append(value)
            if node.op_type in CHANNEL_SEEDS and has_rank(value, 3):
                channel_groups.add(groups.find(value))
    out: dict[ir.Value, Axes] = {}
    for group, values in members.items():
        rank = len(shape_of(values[0]) or ())
        batch = all((shape_of(v) or (0,))[0] == 1 for v in values)
        if group in channel_groups:
            layout: Axes = CHANNELS_TIME
        elif rank == 2:
            layout = (0, 1) if batch else BATCHLESS[2]
        else:
            layout = TOKENS if batch else BATCHLESS[3]
        out.update(dict.fromkeys(values, layout))
    return out
