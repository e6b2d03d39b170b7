"""Give every input a static shape.

Before -> After: `obs [batch, 225]` -> `obs [1, 225]`.
Why: the toolchain refuses any dynamic or zero dimension.
Exactness: bit-exact for inputs of that shape. Defaults are listed as assumptions: a leading symbolic dimension, and
every dimension of the same name, becomes 1; anything else must be given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import is_constant
from boardlift_transform.passes._base import BIT_EXACT, Parameter, Pass, PassResult
from boardlift_transform.refusal import Refusal

MAX_DIMENSION = 1 << 31
REMEDY = "pass input_shapes, for example {example}"


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Fix the inputs' shapes from `input_shapes`, else by the batch rule."""
    result = PassResult()
    graph = model.graph
    given: Mapping[str, Sequence[int]] = parameters.get("input_shapes") or {}
    _drop_initialised_inputs(graph, result)
    unknown = set(given) - {v.name for v in graph.inputs}
    if unknown:
        names = ", ".join(sorted(unknown))
        raise Refusal(
            "INPUT_NOT_FOUND",
            f"input_shapes names no input: {names}",
            remedy=f"inputs are {', '.join(str(v.name) for v in graph.inputs)}",
            metadata={"inputs": names},
        )
    bound: dict[str, int] = {}
    for value in graph.inputs:
        name = value.name or ""
        if name in given:
            _bind(value, given[name], bound)
    batch = {str(v.shape[0].value) for v in graph.inputs if v.shape and isinstance(v.shape[0], ir.SymbolicDim)}
    changed = False
    for value in graph.inputs:
        before = str(value.shape)
        dims = _fixed(value, given.get(value.name or ""), bound, batch, result)
        if dims is not None and before != str(ir.Shape(dims)):
            value.shape = ir.Shape(dims)
            result.apply(value.name or "", f"shape {before}", f"shape {dims}")
            changed = True
    if changed:
        _forget_shapes(graph)
    return result


def _drop_initialised_inputs(graph: ir.Graph, result: PassResult) -> None:
    """Old IR versions list initialisers among the inputs; they are constants."""
    for value in list(graph.inputs):
        if value.name in graph.initializers and value.const_value is not None:
            graph.inputs.remove(value)
            result.apply(value.name or "", "input with a default", "constant")


def _bind(value: ir.Value, shape: Sequence[int], bound: dict[str, int]) -> None:
    """Check a given shape against the model's and remember what its symbols stand for."""
    dims = [int(d) for d in shape]
    if any(d < 1 or d > MAX_DIMENSION for d in dims):
        raise _mismatch(value, dims, "dimensions must be positive")
    if value.shape is None:
        return
    if len(dims) != len(value.shape):
        raise _mismatch(value, dims, f"the model has {len(value.shape)} dimensions")
    for want, have in zip(dims, value.shape, strict=False):
        if isinstance(have, int):
            if have != want:
                raise _mismatch(value, dims, f"the model fixes a dimension to {have}")
        elif have.value is not None and bound.setdefault(have.value, want) != want:
            raise _mismatch(value, dims, f"{have.value} would be both {bound[have.value]} and {want}")


def _mismatch(value: ir.Value, dims: list[int], why: str) -> Refusal:
    return Refusal(
        "INPUT_SHAPE_MISMATCH",
        f"input {value.name} {value.shape} cannot have shape {dims}: {why}",
        remedy="give the shape that the model has, or export it with that dimension open",
        metadata={"input": value.name, "shape": dims},
    )


def _fixed(
    value: ir.Value, given: Sequence[int] | None, bound: dict[str, int], batch: set[str], result: PassResult
) -> list[int] | None:
    if given is not None:
        return [int(d) for d in given]
    if not isinstance(value.type, ir.TensorType):
        raise Refusal("INPUT_TYPE", f"input {value.name} is no tensor", metadata={"input": value.name})
    if value.shape is None:
        raise _required(value, "it has no shape at all")
    dims: list[int] = []
    for axis, dim in enumerate(value.shape):
        if isinstance(dim, int):
            if dim < 1:
                raise _required(value, f"dimension {axis} is {dim}")
            dims.append(dim)
        elif dim.value is not None and dim.value in bound:
            dims.append(bound[dim.value])
            result.assumptions.append(f"{value.name}: dimension {axis} ({dim.value}) = {dims[-1]}, as in a given shape")
        elif axis == 0 or (dim.value is not None and str(dim.value) in batch):
            dims.append(1)
            result.assumptions.append(
                f"{value.name}: dimension {axis} ({dim.value or 'unnamed'}) = 1, taken as the batch"
            )
        else:
            raise _required(value, f"dimension {axis} ({dim.value or 'unnamed'}) is dynamic and not the batch")
    return dims


def _required(value: ir.Value, why: str) -> Refusal:
    example = "{" + f"{value.name!r}: [1, ...]" + "}"
    return Refusal(
        "INPUT_SHAPE_REQUIRED",
        f"input {value.name} {value.shape} needs a shape: {why}",
        remedy=REMEDY.format(example=example),
        metadata={"input": value.name, "shape": value.shape},
    )


def _forget_shapes(graph: ir.Graph) -> None:
    """Inner shapes of the file may belong to other input shapes; inference makes them anew."""
    for node in graph.all_nodes():
        for output in node.outputs:
            if not is_constant(output):
                output.shape = None


PASS = Pass(
    id="fix-dynamic-dims",
    summary="give every input a static shape (given, else batch 1)",
    exactness=BIT_EXACT,
    apply=apply,
    parameters=(Parameter("input_shapes", "map of input name to its full static shape; default: batch 1"),),
)
