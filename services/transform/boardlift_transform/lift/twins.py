"""4-D twins of lower-rank values.

A layout says on which of the four axes each axis of a value lies; the others have length 1:

    rank 1 `[C]`          -> axes (1,)       `[1, C, 1, 1]`
    rank 2 `[N, C]`       -> axes (0, 1)     `[N, C, 1, 1]`
    rank 2 `[T, C]`       -> axes (2, 3)     `[1, 1, T, C]`  where axis 0 is no batch of 1
    rank 3 `[N, C, T]`    -> axes (0, 1, 3)  `[N, C, 1, T]`  around convolutions
    rank 3 `[N, T, C]`    -> axes (0, 2, 3)  `[N, 1, T, C]`  else (tokens)
    rank 3 `[S, T, C]`    -> axes (1, 2, 3)  `[1, S, T, C]`  where axis 0 is no batch of 1
    rank 4                -> itself
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, constant_of, is_constant, shape_of

CHANNELS_TIME = (0, 1, 3)
TOKENS = (0, 2, 3)
BATCHLESS = {2: (2, 3), 3: (1, 2, 3)}
Axes = tuple[int, ...]
_DEFAULT: dict[int, Axes] = {1: (1,), 2: (0, 1), 3: TOKENS, 4: (0, 1, 2, 3)}


class Twins:
    """Layouts of values, and the 4-D values that stand for them."""

    def __init__(self, editor: Editor, layouts: dict[ir.Value, Axes]) -> None:
        """Keep the editor and the layouts chosen for values of rank 2 and 3."""
        self.editor = editor
        self._layouts = layouts
        self._twins: dict[ir.Value, ir.Value] = {}
        self._turned: dict[tuple[ir.Value, tuple[int, ...]], ir.Value] = {}
        self._shared: dict[tuple[object, ...], ir.Value] = {}

    def axes(self, value: ir.Value) -> Axes:
        """The value's layout."""
        rank = len(value.shape) if value.shape is not None else -1
        return self._layouts.get(value, _DEFAULT[rank])

    def shape4(self, value: ir.Value) -> list[int]:
        """The shape of the value's twin."""
        shape = shape_of(value)
        if shape is None:
            raise ValueError(f"{value.name} has no static shape")
        return spread(shape, self.axes(value))

    def set(self, value: ir.Value, twin: ir.Value) -> None:
        """Record the twin of a lifted node's output."""
        self._twins[value] = twin

    def get(self, value: ir.Value) -> ir.Value | None:
        """The recorded twin, if any."""
        return self._twins.get(value)

    def twin(self, value: ir.Value, anchor: ir.Node) -> ir.Value:
        """The value's twin; made before `anchor` when it does not exist yet."""
        found = self._twins.get(value)
        if found is not None:
            return found
        if len(value.shape or ()) == 4:
            return value
        producer = value.producer()
        source = producer.inputs[0] if producer is not None and producer.op_type == "Reshape" else None
        if source is not None and len(source.shape or ()) == 4 and shape_of(source) is not None:
            twin = self.move(source, self.shape4(value), anchor, f"{value.name}_4d")
        else:
            twin = self.editor.reshape(anchor, value, self.shape4(value), hint=f"{value.name}_4d")
        self._twins[value] = twin
        return twin

    def constant(self, value: ir.Value, like: ir.Value, anchor: ir.Node) -> ir.Value | None:
        """A constant that broadcasts against `like`, reshaped to broadcast against the twin of `like`."""
        array = constant_of(value)
        if array is None or like.shape is None or array.ndim > len(like.shape):
            return None
        if array.size == 1:
            return value if array.ndim == 0 else self.editor.constant(array.reshape(()), f"{value.name}_scalar")
        aligned = array.reshape([1] * (len(like.shape) - array.ndim) + list(array.shape))
        return self.editor.constant(aligned.reshape(spread(aligned.shape, self.axes(like))), f"{value.name}_4d")

    def turned(self, source: ir.Value, perm: Sequence[int], anchor: ir.Node, hint: str) -> ir.Value:
        """A Transpose of the value, made once for all that read it in this order."""
        key = (source, tuple(perm))
        if key not in self._turned:
            self._turned[key] = self.editor.transpose(anchor, source, perm, hint=hint)
        return self._turned[key]

    def shared(self, key: tuple[object, ...], make: Callable[[], Array], hint: str) -> ir.Value:
        """A constant that is made once per key: layers that share a weight go on sharing it."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self.editor.constant(make(), hint)
        return found

    def operand(self, value: ir.Value, like: ir.Value, anchor: ir.Node) -> ir.Value | None:
        """Twin or constant of one side of a broadcasting operator; None when the ranks do not fit."""
        if is_constant(value):
            return self.constant(value, like, anchor)
        if value.shape is None or like.shape is None or self.axes(value) != self.axes(like):
            return None
        return self.twin(value, anchor)

    def move(self, source: ir.Value, shape: Sequence[int], anchor: ir.Node | None, hint: str) -> ir.Value:
        """The same elements in another 4-D shape: nothing, a Transpose of length-1 axes, or a Reshape."""
        have = shape_of(source)
        want = list(shape)
        if have is not None and list(have) == want:
            return source
        perm = unit_permutation(have, want) if have is not None else None
        if perm is not None:
            return self.editor.transpose(anchor, source, perm, hint=hint)
        return self.editor.reshape(anchor, source, want, hint=hint)


def spread(shape: Sequence[int], axes: Axes) -> list[int]:
    """Place `shape` on the given axes of a 4-D shape."""
    out = [1, 1, 1, 1]
    for dim, axis in zip(shape, axes, strict=False):
        out[axis] = int(dim)
    return out


def spread_array(array: Array, axes: Axes) -> Array:
    """Reshape an array to its 4-D layout."""
    return np.asarray(array).reshape(spread(array.shape, axes))


def unit_permutation(have: Sequence[int], want: Sequence[int]) -> list[int] | None:
    """The permutation that moves length-1 axes only, keeps axis 0 and gives `want`; None if impossible."""
    if len(have) != 4 or len(want) != 4 or have[0] != want[0]:
        return None
    long_have = [i for i in range(1, 4) if have[i] != 1]
    if [have[i] for i in long_have] != [d for d in want[1:] if d != 1]:
        return None
    ones = [i for i in range(1, 4) if have[i] == 1]
    perm = [0]
    for dim in want[1:]:
        perm.append(ones.pop(0) if dim == 1 else long_have.pop(0))
    return perm
