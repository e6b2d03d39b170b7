"""Random inputs for a proof without data: right dtype and shape, within the ranges that the graph shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, attribute, constant_of, input_at, shape_of
from boardlift_transform.inspect import TensorSpec

RANDOM_SAMPLES = 4


Bounds = Mapping[str, "tuple[float, float] | None"]
"""Lowest and highest number of an input by its name, where the graph shows them."""


def input_bounds(model: ir.Model) -> Bounds:
    """What the user's own graph shows about its inputs: ask before it is edited."""
    return {v.name or "": _range(v) for v in model.graph.inputs}


def random_samples(
    bounds: Bounds, specs: Sequence[TensorSpec], count: int = RANDOM_SAMPLES, seed: int = 0
) -> list[dict[str, Array]]:
    """`count` feeds for the original model; float inputs normal, integers below the bound of the Gather they index."""
    rng = np.random.default_rng(seed)
    return [{spec.name: _draw(rng, spec, bounds.get(spec.name)) for spec in specs} for _ in range(count)]


def _draw(rng: np.random.Generator, spec: TensorSpec, bounds: tuple[float, float] | None) -> Array:
    dtype = np.dtype(spec.dtype)
    if dtype == np.bool_:
        return np.asarray(rng.random(spec.shape) > 0.5)
    if np.issubdtype(dtype, np.integer):
        low, high = bounds or (0.0, 2.0)
        return np.asarray(rng.integers(int(low), max(int(low) + 1, int(high)), spec.shape), dtype)
    if bounds is not None:
        return np.asarray(rng.uniform(*bounds, spec.shape), dtype)
    return np.asarray(rng.standard_normal(spec.shape), dtype)


def _range(value: ir.Value) -> tuple[float, float] | None:
    for use in value.uses():
        node = use.node
        if node.op_type == "Gather" and use.idx == 1:
            shape = shape_of(node.inputs[0])
            if shape:
                return 0.0, float(shape[int(attribute(node, "axis", 0))])
        if node.op_type == "Clip" and use.idx == 0:
            low, high = _bound(node, 1, "min"), _bound(node, 2, "max")
            if low is not None and high is not None and low < high:
                return low, high
        if node.op_type in ("Cast", "Identity"):
            found = _range(node.outputs[0])
            if found is not None:
                return found
    return None


def _bound(node: ir.Node, index: int, name: str) -> float | None:
    array = constant_of(input_at(node, index))
    if array is not None:
        return float(array.reshape(-1)[0])
    value = attribute(node, name)
    return None if value is None else float(value)
