"""Seeded models for tests, written the way people export them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from boardlift_transform.edit_graph import Array


class GraphBuilder:
    """A small writer of ONNX graphs with named nodes."""

    def __init__(self, opset: int = 17, ir_version: int = 8, seed: int = 0) -> None:
        """Start an empty graph."""
        self.rng = np.random.default_rng(seed)
        self.opset, self.ir_version = opset, ir_version
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.domains: tuple[str, ...] = ()

    def input(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> str:
        """Add a graph input."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, name: str, shape: Sequence[int | str] | None = None, dtype: int = TensorProto.FLOAT) -> None:
        """Add a graph output."""
        self.outputs.append(helper.make_tensor_value_info(name, dtype, None if shape is None else list(shape)))

    def constant(self, array: Array | Sequence[int], name: str = "") -> str:
        """Add an initialiser."""
        name = name or f"const{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape: int, scale: float | None = None) -> str:
        """Add a random float32 initialiser of about unit gain."""
        fan = int(np.prod(shape[1:])) or 1
        array = self.rng.standard_normal(shape) * (scale if scale is not None else 1 / np.sqrt(fan))
        return self.constant(array.astype(np.float32))

    def node(self, op: str, inputs: Sequence[str], out: str = "", outputs: int = 1, **attributes: Any) -> str:
        """Add a node; returns its first output."""
        out = out or f"t{len(self.nodes)}"
        outs = [out] if outputs == 1 else [f"{out}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), outs, name=f"/{op}_{len(self.nodes)}", **attributes))
        return outs[0]

    def model(self) -> onnx.ModelProto:
        """The checked model; the shapes of outputs that were given none are inferred."""
        graph = helper.make_graph(self.nodes, "test", self.inputs, self.outputs, self.weights)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in self.domains)],
            ir_version=self.ir_version,
        )
        if any(not o.type.tensor_type.HasField("shape") for o in model.graph.output):
            model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model)
        return model


def elu_policy(
    widths: Sequence[int] = (225, 512, 256, 128), actions: int = 12, opset: int = 17, batch: int | str = "batch"
) -> onnx.ModelProto:
    """An RL actor: Gemm and Elu, dynamic batch, outputs `actions`, `value` and the last hidden layer."""
    b = GraphBuilder(opset)
    x = b.input("obs", [batch, widths[0]])
    for size_in, size_out in itertools.pairwise(widths):
        x = b.node("Gemm", [x, b.weight(size_out, size_in), b.weight(size_out, scale=0.1)], transB=1)
        x = b.node("Elu", [x])
    b.node("Gemm", [x, b.weight(actions, widths[-1]), b.weight(actions, scale=0.1)], "actions", transB=1)
    b.node("Gemm", [x, b.weight(1, widths[-1]), b.weight(1, scale=0.1)], "value", transB=1)
    b.node("Identity", [x], "hidden")
    b.output("actions", [batch, actions])
    b.output("value", [batch, 1])
    b.output("hidden", [batch, widths[-1]])
    return b.model()


def conv_encoder() -> onnx.ModelProto:
    """A history encoder: Conv1d, pooling, BatchNormalization, opset 13, dynamic batch."""
    b = GraphBuilder(13)
    x = b.input("h", ["batch", 60])
    t = b.node("Reshape", [x, b.constant([-1, 6, 10], "history_shape")])
    t = b.node("Conv", [t, b.weight(8, 6, 3), b.weight(8)], strides=[2], pads=[1, 1], kernel_shape=[3])
    t = b.node("BatchNormalization", [t, *[b.constant(np.full(8, v, np.float32)) for v in (1.1, 0.1, 0.2, 0.9)]])
    t = b.node("MaxPool", [b.node("Relu", [t])], kernel_shape=[2], strides=[1])
    t = b.node("Flatten", [t])
    b.node("Gemm", [t, b.weight(5, 32), b.weight(5)], "latent", transB=1)
    b.output("latent", ["batch", 5])
    return b.model()


def every_operator() -> onnx.ModelProto:
    """Many operators on small tensors, opset 17: normalisation, attention, masks, shape arithmetic."""
    b = GraphBuilder(17)
    x = b.input("x", ["batch", 6, 8])
    shape = b.node("Shape", [x])
    n = b.node("Gather", [shape, b.constant(np.asarray(0), "first")], axis=0)
    dims = b.node("Concat", [b.node("Unsqueeze", [n, b.constant([0])]), b.constant([6, 8])], axis=0)
    t = b.node("LayerNormalization", [x, b.weight(8, scale=1.0), b.weight(8)], axis=-1)
    q, k = (b.node("MatMul", [t, b.weight(8, 8)]) for _ in range(2))
    scores = b.node("MatMul", [q, b.node("Transpose", [k], perm=[0, 2, 1])])
    mask = b.constant(np.triu(np.full((6, 6), -np.inf, np.float32), 1))
    t = b.node("MatMul", [b.node("Softmax", [b.node("Add", [scores, mask])], axis=-1), t])
    t = b.node("Reshape", [b.node("Neg", [t]), dims])
    t = b.node("Min", [t, b.node("ReduceMean", [t], axes=[1], keepdims=1)])
    t = b.node("Clip", [t, b.constant(np.float32(-3)), b.constant(np.float32(3))])
    t = b.node("Slice", [t, b.constant([-1]), b.constant([-100]), b.constant([1]), b.constant([-1])])
    b.node("ReduceSum", [t, b.constant([1])], "y", keepdims=0)
    b.output("y", ["batch", 8])
    return b.model()
