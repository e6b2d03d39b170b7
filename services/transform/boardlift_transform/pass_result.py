"""What a pass answers."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir


@dataclass(frozen=True)
class Applied:
    """One rewrite that was made."""

    node: str
    """Name of the node (or value) that was rewritten."""
    before: str
    """What stood there."""
    after: str
    """What stands there now."""


@dataclass(frozen=True)
class Skipped:
    """One place that looked like a case for the pass and was left alone."""

    node: str
    """Name of the node (or value)."""
    reason: str
    """Why it was left alone."""


@dataclass
class PassResult:
    """What one pass did to one model."""

    applied: list[Applied] = field(default_factory=list)
    """Rewrites made, in graph order."""
    skipped: list[Skipped] = field(default_factory=list)
    """Candidates left alone, with reasons."""
    assumptions: list[str] = field(default_factory=list)
    """What was assumed because the caller did not say (for example batch 1)."""

    def apply(self, node: ir.Node | str, before: str, after: str) -> None:
        """Record a rewrite."""
        self.applied.append(Applied(node_label(node), before, after))

    def skip(self, node: ir.Node | str, reason: str) -> None:
        """Record a refusal of one candidate."""
        self.skipped.append(Skipped(node_label(node), reason))


def node_label(node: ir.Node | str) -> str:
    """The node's name, or operator and first output when it has none."""
    if isinstance(node, str):
        return node
    first = node.outputs[0].name if node.outputs else ""
    return node.name or f"{node.op_type}({first})"
