"""How to feed and read the transformed model: old tensor -> new tensor, as data and as a Python snippet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import ORIGIN, Array
from boardlift_transform.inspect import TensorSpec, spec_of
from boardlift_transform.refusal import Refusal

INPUT, OUTPUT = "input", "output"


@dataclass(frozen=True)
class IoEntry:
    """One tensor before and after."""

    direction: str
    """`input` or `output`."""
    before: TensorSpec
    """In the user's model, with the shape that was fixed."""
    after: TensorSpec | None
    """In the transformed model; None for an input that is no longer fed."""
    rule: str
    """What turns the old array into the new one (inputs) or the new into the old (outputs), in words."""


def io_map(before: Sequence[TensorSpec], model: ir.Model, outputs: Sequence[TensorSpec]) -> list[IoEntry]:
    """Pair the user's inputs and outputs with those of `model` by origin."""
    made = {v.metadata_props.get(ORIGIN, v.name): v for v in model.graph.inputs}
    entries = []
    for spec in before:
        value = made.get(spec.name)
        after = _spec(value) if value is not None else None
        entries.append(IoEntry(INPUT, spec, after, _rule(spec, after)))
    results = {v.name: v for v in model.graph.outputs}
    for spec in outputs:
        after = _spec(results[spec.name])
        entries.append(IoEntry(OUTPUT, spec, after, _rule(after, spec)))
    return entries


def _spec(value: ir.Value) -> TensorSpec:
    plain = spec_of(value)
    layout = "NCHW" if len(plain.shape) == 4 else ""
    return TensorSpec(plain.name, plain.dtype, plain.shape, layout)


def _rule(old: TensorSpec, new: TensorSpec | None) -> str:
    if new is None:
        return "not fed any more: constant or unused"
    steps = []
    if old.dtype != new.dtype:
        steps.append(f"astype({new.dtype})")
    if old.shape != new.shape:
        steps.append(f"reshape({list(new.shape)}), same element order")
    return ", ".join(steps) or "unchanged"


def feed_new(entries: Sequence[IoEntry], sample: Mapping[str, Array]) -> dict[str, Array]:
    """One sample of the user's inputs as inputs of the transformed model."""
    feeds = {}
    for entry in entries:
        if entry.direction == INPUT and entry.after is not None:
            array = np.asarray(sample[entry.before.name])
            feeds[entry.after.name] = np.ascontiguousarray(array.astype(entry.after.dtype).reshape(entry.after.shape))
    return feeds


def old_outputs(entries: Sequence[IoEntry], outputs: Mapping[str, Array]) -> dict[str, Array]:
    """Outputs of the transformed model in the user's own shapes and types."""
    found = {}
    for entry in entries:
        if entry.direction == OUTPUT and entry.after is not None:
            array = np.asarray(outputs[entry.after.name])
            found[entry.before.name] = array.reshape(entry.before.shape).astype(entry.before.dtype)
    return found


def per_sample(arrays: Mapping[str, Array], specs: Sequence[TensorSpec], index: int) -> dict[str, Array]:
    """Sample `index` of a dataset `[N, ...]` as one feed; accepts samples with or without the batch axis of 1.

    Raises:
        Refusal: DATASET_SHAPE when an array fits neither way.
    """
    feed = {}
    for spec in specs:
        if spec.name not in arrays:
            raise Refusal(
                "DATASET_INPUT_MISSING",
                f"the dataset has no array for input {spec.name}",
                metadata={"input": spec.name},
            )
        item = np.asarray(arrays[spec.name][index])
        if not fits(item.shape, spec.shape):
            raise Refusal(
                "DATASET_SHAPE",
                f"samples of {spec.name} have shape {list(item.shape)}, the model takes {list(spec.shape)}",
                metadata={"input": spec.name, "shape": list(item.shape), "wanted": list(spec.shape)},
            )
        feed[spec.name] = np.ascontiguousarray(item.reshape(spec.shape).astype(spec.dtype))
    return feed


def fits(item: Sequence[int], shape: Sequence[int]) -> bool:
    """True when a sample has the input's shape, or that shape without a leading 1."""
    item, shape = tuple(item), tuple(shape)
    return item == shape or (shape[:1] == (1,) and item == shape[1:])


def snippet(entries: Sequence[IoEntry]) -> str:
    """Python that feeds and reads the transformed model with any session-like `run(feeds) -> dict`."""
    lines = ["import numpy as np", "", "", "def run_policy(run, inputs):"]
    lines.append('    """`inputs`: arrays by the old names; `run`: dict of new inputs -> dict of new outputs."""')
    lines.append("    feeds = {")
    for entry in entries:
        if entry.direction == INPUT and entry.after is not None:
            shape = ", ".join(str(d) for d in entry.after.shape)
            lines.append(
                f"        {entry.after.name!r}: np.asarray(inputs[{entry.before.name!r}], np.{entry.after.dtype})"
                f".reshape([{shape}]),"
            )
    lines += ["    }", "    results = run(feeds)", "    return {"]
    for entry in entries:
        if entry.direction == OUTPUT and entry.after is not None:
            shape = ", ".join(str(d) for d in entry.before.shape)
            lines.append(
                f"        {entry.before.name!r}: np.asarray(results[{entry.after.name!r}]).reshape([{shape}])"
                f".astype(np.{entry.before.dtype}),"
            )
    return "\n".join([*lines, "    }", ""])
