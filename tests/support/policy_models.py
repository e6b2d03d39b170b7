"""Seeded stand-ins for robot policies as they reach the compiler: opset 11, IR 7, fixed shapes.

Weights are Laplace-distributed like trained ones (the vendor's compiler packs weights, so their distribution moves the
estimate). Builders return the model; `calibration_data` makes samples that look like observations.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.float32]


class _Graph:
    """Collects nodes and weights."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def add(self, op: str, name: str, inputs: list[str], **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def linear(self, name: str, x: str, fan_in: int, fan_out: int, gain: float = 1.0) -> str:
        weight = self.rng.laplace(0, gain / math.sqrt(2 * fan_in), (fan_out, fan_in)).astype(np.float32)
        bias = self.rng.normal(0, 0.05, fan_out).astype(np.float32)
        names = [x, self.constant(f"{name}_w", weight), self.constant(f"{name}_b", bias)]
        return self.add("Gemm", name, names, transB=1)

    def mlp(self, prefix: str, x: str, sizes: list[int]) -> str:
        for index, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
            x = self.add("Elu", f"{prefix}_elu{index}", [self.linear(f"{prefix}_fc{index}", x, fan_in, fan_out, 1.6)])
        return x

    def reshape(self, name: str, x: str, shape: list[int]) -> str:
        return self.add("Reshape", name, [x, self.constant(f"{name}_shape", np.asarray(shape, np.int64))])

    def finish(self, name: str, width: int, output: str) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, width])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, 12])],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])
        model.ir_version = 7
        onnx.checker.check_model(model, full_check=True)
        return model


def gated_policy(seed: int = 3, trunk: tuple[int, ...] = (225, 512, 256, 128), modes: int = 16) -> onnx.ModelProto:
    """Build a policy with a soft choice of mode in the middle: `obs [1, 225] -> actions [1, 12]`.

    The Softmax runs on the CPU when the model is int8 and on the BPU when it is int16, so int8 is split in two.
    """
    g = _Graph(seed)
    h = g.mlp("trunk", "obs", list(trunk))
    logits = g.reshape("to4d", g.linear("mode", h, trunk[-1], modes, 3.0), [-1, 1, 1, modes])
    chosen = g.reshape("to2d", g.add("Softmax", "mode_softmax", [logits], axis=3), [-1, modes])
    mixed = g.add("Elu", "mix_elu", [g.linear("mix", chosen, modes, trunk[-1], 3.0)])
    joined = g.add("Mul", "gated", [h, mixed])
    g.linear("actions", joined, trunk[-1], 12)
    g.nodes[-1].output[0] = "actions"
    return g.finish("gated_policy", trunk[0], "actions")


def moe_policy(
    grouped: bool,
    seed: int = 5,
    *,
    gate: tuple[int, ...] = (450, 768, 384),
    head: tuple[int, ...] = (512, 192),
    experts: int = 8,
    width: int = 2048,
    out: int = 256,
    shortcut: bool = False,
) -> onnx.ModelProto:
    """Build a mixture of experts: `obs [1, 450] -> actions [1, 12]`.

    Args:
        grouped: True ends the experts with Unsqueeze, grouped Conv1d, Squeeze, as exported; False with the equivalent
            block-diagonal Gemm.
        seed: Of the weights; both forms share them.
        gate: Widths of the gate network.
        head: Widths of the head.
        experts: Number of experts.
        width: Hidden width of all experts together.
        out: Output width of all experts together.
        shortcut: True feeds the observation to the head too, beside the mixture.
    """
    g = _Graph(seed)
    hidden = g.add("Elu", "experts.0/Elu", [g.linear("experts.0", "obs", gate[0], width, 1.6)])
    weight = g.rng.laplace(0, 1.6 / math.sqrt(2 * width / experts), (out, width // experts)).astype(np.float32)
    bias = g.rng.normal(0, 0.05, out).astype(np.float32)
    if grouped:
        x = g.add("Unsqueeze", "unsqueeze", [hidden], axes=[2])
        names = [x, g.constant("experts.2_w", weight[:, :, None]), g.constant("experts.2_b", bias)]
        x = g.add("Conv", "experts.2", names, group=experts, kernel_shape=[1])
        x = g.add("Squeeze", "squeeze", [x], axes=[2])
    else:
        names = [hidden, g.constant("experts.2_w", block_diagonal(weight, experts)), g.constant("experts.2_b", bias)]
        x = g.add("Gemm", "experts.2", names, transB=1)
    values = g.reshape("per_expert", g.add("Elu", "experts.2/Elu", [x]), [-1, experts, out // experts])
    logits = g.reshape("gate4d", g.linear("gate", g.mlp("gate", "obs", list(gate)), gate[-1], experts, 3.0),
                       [-1, 1, 1, experts])  # fmt: skip
    weights = g.reshape("gate3d", g.add("Softmax", "gate_softmax", [logits], axis=3), [-1, experts, 1])
    mixed = g.add("ReduceSum", "mixture", [g.add("Mul", "weighted", [values, weights])], axes=[1], keepdims=0)
    features = out // experts
    if shortcut:
        mixed, features = g.add("Concat", "state", ["obs", mixed], axis=1), features + gate[0]
    h = g.mlp("head", mixed, [features, *head])
    g.linear("actions", h, head[-1], 12)
    g.nodes[-1].output[0] = "actions"
    return g.finish("moe_policy", gate[0], "actions")


def block_diagonal(weight: Array, groups: int) -> Array:
    """Return a grouped weight `[O, I/g]` as a dense `[O, I]` one."""
    rows, columns = weight.shape[0] // groups, weight.shape[1]
    dense = np.zeros((weight.shape[0], columns * groups), np.float32)
    for group in range(groups):
        here = slice(group * rows, (group + 1) * rows)
        dense[here, group * columns : (group + 1) * columns] = weight[here]
    return dense


def observations(width: int, count: int, seed: int) -> Array:
    """Make `[count, width]` float32 observations: smooth, correlated, of unit scale."""
    basis = np.random.default_rng(width).normal(size=(24, width)) / math.sqrt(24)
    rng = np.random.default_rng(seed)
    state = rng.normal(size=24)
    rows = []
    for _ in range(count):
        state = 0.8 * state + 0.6 * rng.normal(size=24)
        rows.append(np.tanh(state) @ basis * 2 + rng.normal(0, 0.1, width))
    return np.asarray(rows, np.float32)


def float_outputs(model: onnx.ModelProto, rows: Array) -> Array:
    """Return `[N, 1, ...]` float32: what stock onnxruntime says to samples `[N, ...]` of the only input, one by one."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    name = session.get_inputs()[0].name
    return np.stack([session.run(None, {name: row[None]})[0] for row in rows])
