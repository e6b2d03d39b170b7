"""Names that a graph uses, so that every new one is unique."""

from __future__ import annotations

import functools

import onnx_ir as ir


class NamesInUse:
    """Names in a graph and in those inside it, collected when the first new one is asked for.

    Most passes change nothing in most models and never ask.
    """

    def __init__(self, graph: ir.Graph) -> None:
        """Nothing is read yet."""
        self._graph = graph
        self._next: dict[str, int] = {}
        self.released: set[str] = set()
        """Names of nodes that are about to go: one new node may take each."""

    @functools.cached_property
    def _taken(self) -> tuple[set[str], set[str]]:
        """Names of values, names of nodes."""
        values: set[str] = set()
        nodes: set[str] = set()
        graphs: list[ir.Graph] = [self._graph]
        while graphs:
            graph = graphs.pop()
            values.update(v.name for v in (*graph.inputs, *graph.initializers.values()) if v.name)
            for node in graph:
                values.update(o.name for o in node.outputs if o.name)
                if node.name:
                    nodes.add(node.name)
                for attr in node.attributes.values():
                    if attr.type == ir.AttributeType.GRAPH:
                        graphs.append(attr.value)
                    elif attr.type == ir.AttributeType.GRAPHS:
                        graphs.extend(attr.value)
        return values, nodes

    def for_value(self, hint: str) -> str:
        """A value name that nobody uses; it is taken from now on."""
        return self._unique(hint, self._taken[0])

    def for_node(self, hint: str) -> str:
        """A node name that nobody uses; it is taken from now on."""
        taken = self._taken[1]
        if hint in self.released:
            self.released.discard(hint)
            taken.add(hint)
            return hint
        return self._unique(hint, taken)

    def _unique(self, hint: str, taken: set[str]) -> str:
        name = hint
        while name in taken:
            self._next[hint] = self._next.get(hint, 0) + 1
            name = f"{hint}_{self._next[hint]}"
        taken.add(name)
        return name
