"""Give an adapter its node, the facts about it and the means to write the nodes that replace it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.schemas import schema_at, type_name
from boardlift_transform.opset.scope import Array, Scope, Shape

FLOATS: tuple[int, ...] = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)
SIGNED: tuple[int, ...] = (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64)
UNSIGNED: tuple[int, ...] = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)
INTS = SIGNED + UNSIGNED
BITS: dict[int, int] = {t: 8 << (i % 4) for i, t in enumerate(INTS)}
"""Width of the integer types."""


@dataclass
class Names:
    """Makes names that nothing in the model uses yet."""

    taken: set[str]
    counts: dict[str, int] = field(default_factory=dict)

    def fresh(self, stem: str) -> str:
        """A new name that starts with `stem`."""
        while True:
            n = self.counts.get(stem, 0)
            self.counts[stem] = n + 1
            name = f"{stem}_{n}" if n else stem
            if name not in self.taken:
                self.taken.add(name)
                return name


class Step:
    """One node stepped below one version of its operator."""

    def __init__(self, node: onnx.NodeProto, since: int, target: int, scope: Scope, names: Names) -> None:
        """Prepare the rewrite of one node.

        Args:
            node: The node, written at an opset where version `since` of its operator rules.
            since: The version to step below.
            target: The opset that the model shall end at, below `since`.
            scope: Facts of the graph that holds the node.
            names: Makes new names.
        """
        self.node = node
        self.since = since
        self.target = target
        self.scope = scope
        self.names = names
        self.made: list[tuple[onnx.NodeProto, int]] = []
        """Replacement nodes in order, each with the opset it is written at."""
        self.attrs = {a.name: a for a in node.attribute}

    # ---- the node

    def x(self, index: int) -> str:
        """Name of an input, empty when it is left out."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def y(self, index: int = 0) -> str:
        """Name of an output, empty when nobody wants it."""
        return self.node.output[index] if index < len(self.node.output) else ""

    def attr(self, name: str, default: Any = None) -> Any:
        """Value of an attribute, strings decoded."""
        if name not in self.attrs:
            return default
        value = helper.get_attribute_value(self.attrs[name])
        if isinstance(value, bytes):
            return value.decode()
        return list(value) if self.attrs[name].type in (AttributeProto.INTS, AttributeProto.FLOATS) else value

    def refuse(self, reason: str, remedy: str) -> NoForm:
        """The exception to raise when there is no form below."""
        return NoForm(reason, remedy)

    # ---- facts

    def elem(self, name: str) -> int:
        """Element type of a value, 0 when unknown."""
        return self.scope.elem(name)

    def need_elem(self, name: str) -> int:
        """Element type of a value; refuses where it is unknown."""
        found = self.scope.elem(name)
        if not found:
            raise NoForm(f"needs the element type of {name!r}, which can't be inferred", "declare it in value_info")
        return found

    def shape(self, name: str) -> Shape | None:
        """Shape with None for unknown sizes; None when the rank is unknown."""
        return self.scope.shape(name)

    def rank(self, name: str) -> int:
        """Rank of a value; refuses where it is unknown."""
        shape = self.scope.shape(name)
        if shape is None:
            raise NoForm(f"needs the rank of {name!r}, which can't be inferred", "give input_shapes")
        return len(shape)

    def static_shape(self, name: str) -> tuple[int, ...]:
        """Fully known shape; refuses where a size is unknown."""
        shape = self.scope.shape(name)
        if shape is None or any(d is None for d in shape):
            known = "unknown" if shape is None else str(tuple("?" if d is None else d for d in shape))
            raise NoForm(f"needs the static shape of {name!r}, which is {known}", "give input_shapes")
        return tuple(d for d in shape if d is not None)

    def static_shape_from(self, name: str, first: int) -> tuple[int, ...]:
        """Known sizes from axis `first` on; refuses where one is unknown."""
        shape = self.scope.shape(name)
        if shape is None or any(d is None for d in shape[first:]):
            raise NoForm(f"needs the static sizes of {name!r} from axis {first} on", "give input_shapes")
        return tuple(d for d in shape[first:] if d is not None)

    def const(self, name: str) -> Array | None:
        """Constant value of a name, None when it is made at run time."""
        return self.scope.const(name)

    def need_const(self, name: str, what: str) -> Array:
        """Constant value; refuses where the value is made at run time."""
        value = self.scope.const(name)
        if value is None:
            raise NoForm(
                f"takes {what} as the run-time input {name!r}, which opset {self.target} can't",
                f"make {what} a constant of the model",
            )
        return value

    # ---- writing

    def fresh(self, hint: str) -> str:
        """A new value name that tells which node it comes from."""
        stem = self.node.name or next((o for o in self.node.output if o), self.node.op_type)
        return self.names.fresh(f"{stem}/{hint}")

    def op(
        self, kind: str, inputs: Sequence[str], out: str = "", *, at: int = 0, outputs: int = 1, **attrs: Any
    ) -> str:
        """Write one node.

        Args:
            kind: Operator of ai.onnx.
            inputs: Value names; trailing empty ones are dropped.
            out: Name of the first output; a new one if empty.
            at: Opset that the node is written at; just below the version in hand if 0.
            outputs: Number of outputs, all new names but the first.
            **attrs: Attributes; None leaves one out.

        Returns:
            Name of the first output.
        """
        return self.multi(kind, inputs, [out] + [""] * (outputs - 1), at=at, **attrs)[0]

    def multi(self, kind: str, inputs: Sequence[str], outs: Sequence[str], *, at: int = 0, **attrs: Any) -> list[str]:
        """Write one node with several outputs; an empty name in `outs` gets a new one.

        Args:
            kind: Operator of ai.onnx.
            inputs: Value names; trailing empty ones are dropped.
            outs: Output names.
            at: Opset that the node is written at; just below the version in hand if 0.
            **attrs: Attributes; None leaves one out.

        Returns:
            The output names.
        """
        names = [t or self.fresh(kind) for t in outs]
        used = list(inputs)
        while used and not used[-1]:
            used.pop()
        given = {k: v for k, v in attrs.items() if v is not None}
        node = helper.make_node(kind, used, names, name=self.names.fresh(f"{names[0]}/node"), **given)
        level = at or self.since - 1
        self.made.append((node, level))
        for name in names:
            self.scope.producers.setdefault(name, (node, level))
        return names

    def same(self, inputs: Sequence[str] | None = None, *, at: int = 0, drop: Sequence[str] = (), **attrs: Any) -> None:
        """Write the node again in a lower form: same operator, outputs and attributes but for the changes.

        Args:
            inputs: New inputs; the old ones if None.
            at: Opset that the node is written at; just below the version in hand if 0.
            drop: Attributes to leave out.
            **attrs: Attributes to set.
        """
        node = onnx.NodeProto()
        node.CopyFrom(self.node)
        if inputs is not None:
            used = list(inputs)
            while used and not used[-1]:
                used.pop()
            del node.input[:]
            node.input.extend(used)
        gone = set(drop) | set(attrs)
        kept = [a for a in self.node.attribute if a.name not in gone]
        if len(kept) != len(node.attribute):
            del node.attribute[:]
            node.attribute.extend(kept)
        node.attribute.extend(helper.make_attribute(k, v) for k, v in attrs.items() if v is not None)
        self.made.append((node, at or self.since - 1))

    def constant(self, value: Any, dtype: Any = None, hint: str = "const") -> str:
        """Name of a constant of this graph; equal ones are stored once.

        Args:
            value: Array, number or list.
            dtype: numpy type or TensorProto.DataType; that of `value` if None (lists of int are int64).
            hint: Word for the name.

        Returns:
            The name.
        """
        if isinstance(dtype, int):
            dtype = helper.tensor_dtype_to_np_dtype(dtype)
        array = np.asarray(value, dtype)
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self.scope.known:
            tensor = numpy_helper.from_array(array, self.fresh(hint))
            self.scope.known[key] = tensor.name
            self.scope.new_tensors.append(tensor)
            self.scope.tensors[tensor.name] = tensor
        return self.scope.known[key]

    def like(self, value: float, reference: str, shape: Sequence[int] = ()) -> str:
        """Constant in the element type of another value."""
        return self.constant(np.full(shape, value, helper.tensor_dtype_to_np_dtype(self.need_elem(reference))))

    # ---- forms that differ between the targets

    def with_axes(self, kind: str, data: str, axes: Sequence[int] | None, out: str = "", **attrs: Any) -> str:
        """Squeeze, Unsqueeze or a Reduce in the form of the target (axes as attribute or as input)."""
        schema = schema_at(kind, self.target)
        if schema is None:
            raise NoForm(f"would need {kind}", f"target an opset above {self.target}")
        if "axes" in schema.attributes:
            return self.op(kind, [data], out, at=self.target, axes=None if axes is None else list(axes), **attrs)
        name = "" if axes is None else self.constant(list(axes), np.int64)
        return self.op(kind, [data, name], out, at=self.target, **attrs)

    def unsqueeze(self, data: str, axes: Sequence[int], out: str = "") -> str:
        """Insert axes of size 1."""
        return self.with_axes("Unsqueeze", data, axes, out)

    def squeeze(self, data: str, axes: Sequence[int], out: str = "") -> str:
        """Remove axes of size 1."""
        return self.with_axes("Squeeze", data, axes, out)

    def reduce(self, kind: str, data: str, axes: Sequence[int] | None, out: str = "", keepdims: int = 1) -> str:
        """Reduce over constant axes, over all if None."""
        return self.with_axes(kind, data, axes, out, keepdims=keepdims)

    def split(self, data: str, sizes: Sequence[int], axis: int, outs: Sequence[str] = ()) -> list[str]:
        """Split into parts of constant sizes."""
        names = list(outs) or [""] * len(sizes)
        if self.target < 13:
            return self.multi("Split", [data], names, at=self.target, axis=axis, split=list(sizes))
        return self.multi("Split", [data, self.constant(list(sizes), np.int64)], names, at=self.target, axis=axis)

    def slice(self, data: str, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int], out: str = "",
              steps: Sequence[int] | None = None) -> str:  # fmt: skip
        """Slice by constants."""
        ints = [self.constant(list(v), np.int64) for v in (starts, ends, axes)]
        return self.op("Slice", [data, *ints, self.constant(list(steps), np.int64) if steps else ""], out)

    def cast(self, data: str, to: int, out: str = "") -> str:
        """Cast to an element type, nothing if it has that type already and no output name is asked for."""
        if not out and self.elem(data) == to:
            return data
        return self.op("Cast", [data], out, to=to)

    def reshape(self, data: str, dims: Sequence[int], out: str = "") -> str:
        """Reshape to constant sizes (0 copies a size, -1 is worked out)."""
        return self.op("Reshape", [data, self.constant(list(dims), np.int64)], out, at=self.target)

    def dim(self, data: str, axis: int) -> str:
        """Size of one axis as int64 [1]: a constant when known, Shape and Gather else."""
        shape = self.shape(data)
        if shape is not None and shape[axis] is not None:
            return self.constant([shape[axis]], np.int64)
        if shape is not None or self.target < 11:
            axis %= self.rank(data)
        return self.op("Gather", [self.op("Shape", [data], at=self.target), self.constant([axis])])

    def type_name(self, name: str) -> str:
        """Readable element type of a value."""
        return type_name(self.elem(name))
