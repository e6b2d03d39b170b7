"""The nodes that a pass changed as protobuf messages, bounded in size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from boardlift.v1 import transform_pb2

from boardlift_transform.diff_graph import GraphDiff, NodeView, Rewrite

MAX_NODES = 64
MAX_NAMES = 8
MAX_TEXT = 80
Item = TypeVar("Item", NodeView, Rewrite)


def graph_diff(found: GraphDiff) -> transform_pb2.GraphDiff:
    """At most 64 nodes per list, 8 names per node and 80 characters per text; says how many nodes were left out."""
    left = sum(max(0, len(items) - MAX_NODES) for items in (found.added, found.removed, found.rewritten))
    return transform_pb2.GraphDiff(
        added=[_view(v) for v in _some(found.added)],
        removed=[_view(v) for v in _some(found.removed)],
        rewritten=[
            transform_pb2.NodeRewrite(before=_view(r.before), after=_view(r.after), changed=r.changed[:MAX_NAMES])
            for r in _some(found.rewritten)
        ],
        left_out=left,
    )


def _some(items: Sequence[Item]) -> Sequence[Item]:
    return items[:MAX_NODES]


def _view(node: NodeView) -> transform_pb2.NodeView:
    attributes = {name[:MAX_TEXT]: text[:MAX_TEXT] for name, text in list(node.attributes.items())[:MAX_NAMES]}
    return transform_pb2.NodeView(
        name=node.name[:MAX_TEXT],
        operator=node.operator[:MAX_TEXT],
        inputs=[name[:MAX_TEXT] for name in node.inputs[:MAX_NAMES]],
        outputs=[name[:MAX_TEXT] for name in node.outputs[:MAX_NAMES]],
        attributes=attributes,
        shape=node.shape[:MAX_TEXT],
        made_by=node.made_by,
    )
