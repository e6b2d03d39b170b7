"""Name what stands in the way of a downgrade, all of it at once, each with a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boardlift_transform.refusal import Refusal


@dataclass(frozen=True)
class Offence:
    """One node that has no exact form at the target opset."""

    node: str
    """Name of the node; its first output where the node has no name."""
    op: str
    """Operator type, with its domain in front when that is not ai.onnx."""
    version: int
    """Version of the operator (the opset that introduced this form)."""
    reason: str
    """Why the target opset can't express it."""
    remedy: str
    """What the owner of the model can do about it."""

    def __str__(self) -> str:
        return f"node {self.node!r}: {self.op}-{self.version} {self.reason}; {self.remedy}"


class UnsupportedDowngrade(Refusal):
    """The model can't be expressed at the asked opset; nothing was converted.

    Attributes:
        offences: Every offending node, in graph order.
        opset: The opset that was asked for.
    """

    def __init__(self, offences: Sequence[Offence], opset: int) -> None:
        """Build the message from the offences.

        Args:
            offences: What was found; at least one.
            opset: The opset that was asked for.
        """
        self.offences = tuple(offences)
        self.opset = opset
        lines = "\n  ".join(str(o) for o in self.offences)
        super().__init__(
            "UNSUPPORTED_DOWNGRADE",
            f"{len(self.offences)} node(s) cannot be expressed at opset {opset}:\n  {lines}",
            metadata={
                "opset": opset,
                "count": len(self.offences),
                "operators": ",".join(sorted({o.op for o in self.offences})),
            },
        )
        self.remedy = "; ".join(dict.fromkeys(o.remedy for o in self.offences))


class InvalidModel(Refusal):
    """The model that came in is not a legal ONNX model, so there is nothing to convert."""

    def __init__(self, message: str, remedy: str) -> None:
        """State what is wrong.

        Args:
            message: What the checker or the reader found.
            remedy: What to do about it.
        """
        super().__init__("INVALID_MODEL", message, remedy=remedy)


class NoForm(Exception):
    """Raised by one adapter for the node in hand; the driver collects them."""

    def __init__(self, reason: str, remedy: str) -> None:
        """Keep reason and remedy apart.

        Args:
            reason: Why the node has no form below.
            remedy: What would help.
        """
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}; {remedy}")
