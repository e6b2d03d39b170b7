"""What a pass did to a graph, node by node: added, removed, rewritten, and which pass a new node comes from. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from boardlift_transform.edit_graph import PROVENANCE

MAX_SHOWN_ELEMENTS = 8
MAX_SHOWN_TEXT = 60


@dataclass(frozen=True)
class NodeView:
    """One node as the diff sees it; weights are named, never read."""

    name: str
    """Node name, or its first output's name when the model gives none or gives it twice."""
    operator: str
    """Operator type, with its domain unless that is the default one."""
    inputs: tuple[str, ...]
    """Names of the values it reads, absent ones empty."""
    outputs: tuple[str, ...]
    """Names of the values it makes."""
    attributes: Mapping[str, str]
    """Attributes as short text."""
    shape: str
    """Shape of the first output as text, `?` when unknown."""
    made_by: str
    """Id of the pass that made the node; empty for a node of the user's model."""


@dataclass(frozen=True)
class Rewrite:
    """A node that is there before and after, and differs."""

    before: NodeView
    """The node before the pass."""
    after: NodeView
    """The node after it."""
    changed: tuple[str, ...]
    """What differs: `operator`, `inputs`, `outputs`, `shape`, or an attribute's name."""


@dataclass(frozen=True)
class GraphDiff:
    """Difference of two graphs."""

    added: tuple[NodeView, ...]
    """New nodes, in graph order."""
    removed: tuple[NodeView, ...]
    """Nodes that are gone, in graph order."""
    rewritten: tuple[Rewrite, ...]
    """Nodes that kept their name and changed, in graph order."""

    @property
    def is_empty(self) -> bool:
        """True when no node differs."""
        return not (self.added or self.removed or self.rewritten)


GraphView = Mapping[str, NodeView]


def view_graph(graph: ir.Graph) -> dict[str, NodeView]:
    """All nodes, those of inner graphs too, by a name that is unique."""
    nodes = list(graph.all_nodes())
    counts = Counter(node.name for node in nodes if node.name)
    views: dict[str, NodeView] = {}
    for index, node in enumerate(nodes):
        outputs = tuple(o.name or "" for o in node.outputs)
        own = node.name if node.name and counts[node.name] == 1 else next((o for o in outputs if o), "")
        key = own if own and own not in views else f"{own}#{index}"
        views[key] = _view(node, key, outputs)
    return views


def diff_graphs(before: GraphView, after: GraphView) -> GraphDiff:
    """Compare two views; a node is the same node when it has the same name."""
    rewrites = []
    for name, new in after.items():
        old = before.get(name)
        changed = _changes(old, new) if old is not None else ()
        if old is not None and changed:
            rewrites.append(Rewrite(old, new, changed))
    return GraphDiff(
        added=tuple(view for name, view in after.items() if name not in before),
        removed=tuple(view for name, view in before.items() if name not in after),
        rewritten=tuple(rewrites),
    )


def diff_lines(diff: GraphDiff, limit: int = 0) -> list[str]:
    """The diff as text: `-` removed, `+` added (with the pass that made it), `~` rewritten.

    Args:
        diff: What to print.
        limit: Most lines per kind; 0 prints all, else a last line says how many are left out.
    """
    removed = [f"- {_line(view)}" for view in diff.removed]
    added = [f"+ {_line(view)}{_origin(view)}" for view in diff.added]
    rewritten = [f"~ {_rewrite_line(item)}{_origin(item.after)}" for item in diff.rewritten]
    return [line for kind in (removed, added, rewritten) for line in _cut(kind, limit)]


def _view(node: ir.Node, name: str, outputs: tuple[str, ...]) -> NodeView:
    domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}::"
    shape = node.outputs[0].shape if node.outputs else None
    return NodeView(
        name=name,
        operator=f"{domain}{node.op_type}",
        inputs=tuple(v.name or "" if v is not None else "" for v in node.inputs),
        outputs=outputs,
        attributes={key: _attribute(value) for key, value in node.attributes.items()},
        shape="x".join(str(d) for d in shape) if shape is not None else "?",
        made_by=node.metadata_props.get(PROVENANCE, ""),
    )


def _attribute(value: ir.Attr) -> str:
    if value.is_ref():
        return f"@{value.ref_attr_name}"
    if value.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
        return "{graph}"
    held = value.value
    if isinstance(held, ir.TensorProtocol):
        return f"{held.dtype.name.lower()}{list(held.shape.numpy())}"
    if isinstance(held, list | tuple):
        cut = ", ..." if len(held) > MAX_SHOWN_ELEMENTS else ""
        return f"[{', '.join(_scalar(v) for v in held[:MAX_SHOWN_ELEMENTS])}{cut}]"
    return _scalar(held)


def _scalar(value: object) -> str:
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= MAX_SHOWN_TEXT else f"{text[:MAX_SHOWN_TEXT]}..."


def _changes(old: NodeView, new: NodeView) -> tuple[str, ...]:
    fields = [name for name in ("operator", "inputs", "outputs", "shape") if getattr(old, name) != getattr(new, name)]
    names = {**old.attributes, **new.attributes}
    return (*fields, *(n for n in names if old.attributes.get(n) != new.attributes.get(n)))


def _line(view: NodeView) -> str:
    attributes = ", ".join(f"{k}={v}" for k, v in view.attributes.items())
    text = f"{view.name}: {view.operator}({', '.join(view.inputs)}) -> {', '.join(view.outputs)} [{view.shape}]"
    return f"{text} {{{attributes}}}" if attributes else text


def _rewrite_line(item: Rewrite) -> str:
    parts = [_change(item, name) for name in item.changed]
    return f"{item.after.name}: {item.after.operator}; {'; '.join(parts)}"


def _change(item: Rewrite, name: str) -> str:
    if name in ("inputs", "outputs"):
        old, new = (f"({', '.join(getattr(side, name))})" for side in (item.before, item.after))
    elif name in ("operator", "shape"):
        old, new = getattr(item.before, name), getattr(item.after, name)
    else:
        old, new = (side.attributes.get(name, "absent") for side in (item.before, item.after))
    return f"{name} {old} -> {new}"


def _origin(view: NodeView) -> str:
    return f"  (made by {view.made_by})" if view.made_by else ""


def _cut(lines: Iterable[str], limit: int) -> list[str]:
    every = list(lines)
    if not limit or len(every) <= limit:
        return every
    return [*every[:limit], f"{every[limit][0]} ... and {len(every) - limit} more"]
