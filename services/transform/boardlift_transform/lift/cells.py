"""One step of GRU, LSTM and RNN cells on `[N, H]` tensors, as Gemm and element-wise operators.

Gate order and formulas are those of the ONNX operators (github.com/onnx/onnx, docs/Operators.md): GRU z, r, h; LSTM
i, o, f, c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, shape_of

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
ACTIVATIONS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
"""Default activations of one direction, by operator (ONNX)."""


@dataclass
class Cell:
    """One direction of one recurrent node, and what writes its steps."""

    editor: Editor
    """Of the graph."""
    node: ir.Node
    """The recurrent node; new nodes go before it."""
    recurrence: Array
    """`[gates * H, H]`."""
    recurrent_bias: Array
    """`[gates * H]`, added to the state's product."""
    hidden: int
    """H."""
    resets_after: bool
    """GRU: the reset gate multiplies the product of the state, not the state (linear_before_reset)."""
    activation: str
    """RNN: Tanh or Relu."""

    def __post_init__(self) -> None:
        """Steps share their weights."""
        self._products: dict[tuple[int, int], tuple[ir.Value, ir.Value]] = {}

    def step(self, fed: ir.Value, state: ir.Value | None, memory: ir.Value | None) -> tuple[ir.Value, ir.Value | None]:
        """The next state and memory.

        Args:
            fed: Product of the input, its bias added, `[N, gates * H]`.
            state: `[N, H]`; None is zero.
            memory: LSTM only, `[N, H]`; None is zero.
        """
        if self.node.op_type == "GRU":
            return self._gru(fed, state), None
        if self.node.op_type == "LSTM":
            return self._lstm(fed, state, memory)
        return self._op(self.activation, self._op("Add", fed, self._product(state, 0, 1))), None

    def _gru(self, fed: ir.Value, state: ir.Value | None) -> ir.Value:
        update_in, reset_in, new_in = self._split(fed, 3)
        if self.resets_after:
            products = self._product(state, 0, 3)
            gates = self._split(products, 3) if state is not None else [self._part(i, i + 1) for i in range(3)]
            update = self._op("Sigmoid", self._op("Add", update_in, gates[0]))
            reset = self._op("Sigmoid", self._op("Add", reset_in, gates[1]))
            new = self._op("Tanh", self._op("Add", new_in, self._op("Mul", reset, gates[2])))
        else:
            update = self._op("Sigmoid", self._op("Add", update_in, self._product(state, 0, 1)))
            kept = None
            if state is not None:
                reset = self._op("Sigmoid", self._op("Add", reset_in, self._product(state, 1, 2)))
                kept = self._op("Mul", reset, state)
            new = self._op("Tanh", self._op("Add", new_in, self._product(kept, 2, 3)))
        change = self._op("Sub", state, new) if state is not None else None
        if change is None:
            return self._op("Sub", new, self._op("Mul", update, new))
        return self._op("Add", new, self._op("Mul", update, change))

    def _lstm(self, fed: ir.Value, state: ir.Value | None, memory: ir.Value | None) -> tuple[ir.Value, ir.Value]:
        taken, given, kept, new = self._split(self._op("Add", fed, self._product(state, 0, 4)), 4)
        made = self._op("Mul", self._op("Sigmoid", taken), self._op("Tanh", new))
        if memory is not None:
            made = self._op("Add", self._op("Mul", self._op("Sigmoid", kept), memory), made)
        return self._op("Mul", self._op("Sigmoid", given), self._op("Tanh", made)), made

    def _product(self, state: ir.Value | None, first: int, last: int) -> ir.Value:
        """`state @ R[first:last].T + bias`, the bias alone without a state."""
        if state is None:
            return self._part(first, last)
        rows = slice(first * self.hidden, last * self.hidden)
        if (first, last) not in self._products:
            self._products[first, last] = (
                self.editor.constant(np.ascontiguousarray(self.recurrence[rows]), f"{self.node.name}_recurrence"),
                self.editor.constant(self.recurrent_bias[rows], f"{self.node.name}_recurrent_bias"),
            )
        weight_value, bias = self._products[first, last]
        shape = [(shape_of(state) or (1,))[0], (last - first) * self.hidden]
        return self.editor.node(
            self.node, "Gemm", [state, weight_value, bias], shape, {"transB": 1}, hint=f"{self.node.name}_state"
        )

    def _part(self, first: int, last: int) -> ir.Value:
        rows = slice(first * self.hidden, last * self.hidden)
        return self.editor.constant(self.recurrent_bias[rows], f"{self.node.name}_recurrent_bias")

    def _split(self, value: ir.Value, count: int) -> list[ir.Value]:
        shape = [(shape_of(value) or (1,))[0], self.hidden]
        attributes = {"axis": 1, "split": [self.hidden] * count}
        return self.editor.node_outputs(
            self.node, "Split", [value], [shape] * count, attributes, hint=f"{self.node.name}_gates"
        )

    def _op(self, op_type: str, *inputs: ir.Value) -> ir.Value:
        shape = next((s for s in map(shape_of, inputs) if s is not None and len(s) == 2), None)
        return self.editor.node(self.node, op_type, list(inputs), shape, hint=f"{self.node.name}_{op_type}")
