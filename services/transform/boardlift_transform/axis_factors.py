"""Chains of Reshape and Transpose, followed axis by axis: where the factors of the source's axes lie in the end.

An axis longer than 1 is a list of factors, outermost first; a Reshape that cuts an axis splits factors on both sides. A
chain without an axis cut unevenly is again at most one Reshape, one Transpose and one Reshape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, is_constant, shape_of

MOVES = frozenset(["Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"])
RANK = 4


@dataclass(eq=False)
class Factor:
    """A run of equally spaced entries of one source axis; compared by identity."""

    length: int
    """Entries, more than 1."""


Axes = list[list[Factor]]


@dataclass
class Layout:
    """The axes of a source, and of a value that moves made from it, over the same factors."""

    source: Axes
    """Factors per source axis, outermost first; none for an axis of length 1."""
    value: Axes
    """Factors per axis of the value."""

    @classmethod
    def of(cls, shape: Sequence[int]) -> Layout:
        """The layout of a value that nothing has moved."""
        axes = [[Factor(d)] if d != 1 else [] for d in shape]
        return cls([list(a) for a in axes], axes)

    def copy(self) -> Layout:
        """The same layout with factors of its own, to be split apart from this one."""
        new = {id(f): Factor(f.length) for axis in self.source for f in axis}
        return Layout(*([[new[id(f)] for f in a] for a in axes] for axes in (self.source, self.value)))

    def follow(self, node: ir.Node) -> bool:
        """Apply a move; False (and a layout of no further use) where it cuts an axis unevenly or is not static."""
        after = shape_of(node.outputs[0])
        if after is None or 0 in after:
            return False
        if node.op_type != "Transpose":
            return self._reshape(after)
        perm = attribute(node, "perm") or list(range(len(self.value)))[::-1]
        self.value = [self.value[p] for p in perm]
        return True

    def _reshape(self, shape: Sequence[int]) -> bool:
        flat = [f for axis in self.value for f in axis]
        value: Axes = []
        for dim in shape:
            axis: list[Factor] = []
            need = dim
            while need > 1:
                if not flat:
                    return False
                if need % flat[0].length:
                    if flat[0].length % need:
                        return False
                    flat[:1] = self._split(flat[0], need)
                need //= flat[0].length
                axis.append(flat.pop(0))
            value.append(axis)
        self.value = value
        return not flat

    def _split(self, factor: Factor, outer: int) -> list[Factor]:
        """Cut a factor into an outer one of this length and the rest, wherever it stands."""
        parts = [Factor(outer), Factor(factor.length // outer)]
        for axes in (self.source, self.value):
            for axis in axes:
                if factor in axis:
                    at = axis.index(factor)
                    axis[at : at + 1] = parts
        return parts

    def steps(self) -> Steps | None:
        """The shortest moves from source to value; None where more than four axes are needed."""
        return shortest(self.source, self.value)


@dataclass(frozen=True)
class Steps:
    """Reshape to `cut`, Transpose by `perm`, Reshape to `out`; what changes nothing is left out."""

    cut: list[int]
    """Shape before the Transpose."""
    perm: list[int]
    """Permutation."""
    before: list[int]
    """Shape of the source."""
    out: list[int]
    """Shape of the result."""

    @property
    def count(self) -> int:
        """Nodes that `emit` makes."""
        if self.perm == sorted(self.perm):
            return int(self.before != self.out)
        return 1 + (self.cut != self.before) + ([self.cut[p] for p in self.perm] != self.out)

    def emit(self, editor: Editor, anchor: ir.Node, source: ir.Value, hint: str) -> ir.Value:
        """Insert the moves of `source` before `anchor`."""
        if self.perm == sorted(self.perm):
            return source if self.before == self.out else editor.reshape(anchor, source, self.out, hint=hint)
        if self.cut != self.before:
            source = editor.reshape(anchor, source, self.cut, hint=f"{hint}_cut")
        source = editor.transpose(anchor, source, self.perm, hint=hint)
        return source if shape_of(source) == tuple(self.out) else editor.reshape(anchor, source, self.out, hint=hint)


def shortest(source: Axes, value: Axes) -> Steps | None:
    """See `Layout.steps`; axes of length 1 take the place that saves a Reshape."""
    before, out = ([math.prod(f.length for f in axis) for axis in axes] for axes in (source, value))
    flat, wanted = ([f for axis in axes for f in axis] for axes in (source, value))
    if flat == wanted and (len(before) != len(out) or any(len(axis) > 1 for axis in (*source, *value))):
        return Steps(before, list(range(len(before))), before, out)
    lead = [None] if before[:1] == out[:1] == [1] else []
    cuts, merges = (any(len(axis) > 1 for axis in axes) for axes in (source, value))
    slots: list[Factor | None] = [*lead, *flat]
    rank = max(len(slots), len(before), len(out))
    if not cuts and len(before) == rank:
        slots = [axis[0] if axis else None for axis in source]
    slots += [None] * (rank - len(slots))
    order: list[Factor | None] = [*lead, *wanted]
    if not merges and len(out) == rank:
        order = [axis[0] if axis else None for axis in value]
    order += [None] * (rank - len(order))
    if rank > RANK:
        return None
    ones = [i for i, s in enumerate(slots) if s is None]
    perm = [ones.pop(0) if factor is None else slots.index(factor) for factor in order]
    return Steps([1 if s is None else s.length for s in slots], perm, before, out)


def chain_of(value: ir.Value) -> tuple[ir.Value, list[ir.Node]]:
    """The computed value that moves alone made `value` from, and these moves in order."""
    chain: list[ir.Node] = []
    node = value.producer()
    while node is not None and node.op_type in MOVES and node.domain in ("", "ai.onnx"):
        source = node.inputs[0]
        if source is None or is_constant(source) or shape_of(source) is None or shape_of(node.outputs[0]) is None:
            break
        chain.append(node)
        value, node = source, source.producer()
    return value, chain[::-1]
