"""Find the CPU islands of a model from the checker's table alone, when nothing was built yet; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boardlift.v1 import compiler_pb2

from boardlift_compiler.detect_fallbacks import printed_name
from boardlift_compiler.explore.estimate import Island
from boardlift_compiler.read_bin import BinNode
from boardlift_compiler.read_model import ModelSummary

NOWHERE = -1


def islands_of_check(rows: Sequence[compiler_pb2.NodePlacement], model: ModelSummary) -> list[Island]:
    """Return the runs of CPU operators between BPU subgraphs and at the ends, in execution order.

    A CPU operator runs behind the last subgraph it needs. One that the tool inserted is not in the model: it goes with
    the row before it. What crosses the borders is only known of a build, so the copies are not in an island's cost.

    Args:
        rows: The checker's table.
        model: The model that was checked.
    """
    subgraphs = [row.subgraph for row in rows if row.device == "BPU"]
    order = {subgraph: position for position, subgraph in enumerate(dict.fromkeys(subgraphs))}
    levels = _levels(model, {row.node: order.get(row.subgraph, NOWHERE) for row in rows if row.device == "BPU"})
    islands: dict[int, list[BinNode]] = {}
    level = NOWHERE
    for row in rows:
        level = levels.get(row.node, level)
        if row.device == "CPU":
            islands.setdefault(level, []).append(BinNode(row.node, row.type, (), ()))
    last = len(order) - 1
    return [Island(tuple(nodes), NOWHERE < at < last, 0) for at, nodes in sorted(islands.items())]


def _levels(model: ModelSummary, placed: Mapping[str, int]) -> dict[str, int]:
    """Return per printed node name the position of the last subgraph that it needs or is in."""
    of_tensor: dict[str, int] = {}
    levels: dict[str, int] = {}
    for node in model.nodes:
        name = printed_name(node.name)
        level = max([of_tensor.get(i, NOWHERE) for i in node.inputs], default=NOWHERE)
        levels[name] = max(level, placed.get(name, NOWHERE))
        of_tensor.update(dict.fromkeys(node.outputs, levels[name]))
    return levels
