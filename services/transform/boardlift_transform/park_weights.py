"""Keep large weights out of conversions that need a ModelProto.

Before the conversion every large initialiser becomes a graph input of the same name, type and shape; afterwards it is
put back. The conversion then costs memory and time for the graph only, not for the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx_ir as ir

PARK_BYTES = 1 << 16


class ParkedWeights:
    """The weights taken out, by name."""

    def __init__(self) -> None:
        """Start empty."""
        self.tensors: dict[str, ir.TensorProtocol] = {}

    def take(self, graph: ir.Graph) -> None:
        """Turn large initialisers into inputs."""
        for name, value in list(graph.initializers.items()):
            tensor = value.const_value
            if tensor is None or tensor.nbytes < PARK_BYTES or value.is_graph_input():
                continue
            if not value.dtype or value.dtype not in _FLOATS:
                continue
            self.tensors[name] = tensor
            del graph.initializers[name]
            value.const_value = None
            value.shape = ir.Shape(list(tensor.shape.numpy()))
            graph.inputs.append(value)

    def restore(self, model: ir.Model) -> None:
        """Turn the inputs back into initialisers; weights that became unused are dropped."""
        graph = model.graph
        outputs = set(graph.outputs)
        for value in list(graph.inputs):
            tensor = self.tensors.get(value.name or "")
            if tensor is None:
                continue
            graph.inputs.remove(value)
            value.const_value = tensor
            if value.uses() or value in outputs:
                graph.register_initializer(value)
        self.tensors.clear()


_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16})


@contextmanager
def park_weights(model: ir.Model) -> Iterator[ParkedWeights]:
    """Take large float weights out of `model` for the length of the block; restores them even on error."""
    parked = ParkedWeights()
    parked.take(model.graph)
    try:
        yield parked
    finally:
        if parked.tensors:
            parked.restore(model)
