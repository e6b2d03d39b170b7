"""Seeded twins of image classifiers whose compile figures the vendor published: same graph, random weights.

Graphs are those of the public YOLOv8n-cls and YOLO11n-cls exports for 224 x 224 (opset 11, IR 6, batch norm folded, no
final Softmax). Weights are Laplace-distributed: the vendor's compiler packs weights, and trained ones pack like that.
The last convolution of each bottleneck gets a larger gain, so that it sets the range of the Concat behind it and the
other branches are requantised, as in the published logs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

GAIN = 1.7
DOMINANT = 6.0
CLASSES = 1000
SIDE = 224


class Network:
    """Nodes and weights of one network; values are named by their node."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op: str, name: str, inputs: list[str], **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_output_0"], name=name, **attributes))
        return f"{name}_output_0"

    def split(self, name: str, x: str, sizes: list[int], axis: int) -> list[str]:
        outputs = [f"{name}_output_{k}" for k in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [x], outputs, name=name, axis=axis, split=sizes))
        return outputs

    def laplace(self, shape: tuple[int, ...], gain: float | npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """Draw weights; the gain may differ by output channel."""
        scale = np.reshape(gain, (-1,) + (1,) * (len(shape) - 1)) / math.sqrt(2 * math.prod(shape[1:]))
        return self._rng.laplace(0, scale, shape).astype(np.float32)

    def bias(self, size: int) -> npt.NDArray[np.float32]:
        return self._rng.normal(0, 0.1, size).astype(np.float32)

    def conv(
        self, name: str, x: str, size: tuple[int, int], k: int = 1, stride: int = 1, *,
        gain: float | npt.NDArray[np.float64] = GAIN, activate: bool = True, groups: int = 1,
    ) -> str:  # fmt: skip
        """Add a convolution of ``(in, out)`` channels and, if wanted, its SiLU."""
        fan_in, out = size
        names = [
            x,
            self.constant(f"{name}.conv.weight", self.laplace((out, fan_in // groups, k, k), gain)),
            self.constant(f"{name}.conv.bias", self.bias(out)),
        ]
        y = self.node("Conv", f"{name}/conv/Conv", names, kernel_shape=[k, k], strides=[stride, stride],
                      pads=[k // 2] * 4, group=groups, dilations=[1, 1])  # fmt: skip
        if not activate:
            return y
        return self.node("Mul", f"{name}/act/Mul", [y, self.node("Sigmoid", f"{name}/act/Sigmoid", [y])])

    def bottleneck(
        self, name: str, x: str, width: int, hidden: int, gain: float = DOMINANT, *, residual: bool = True
    ) -> str:
        h = self.conv(f"{name}/cv1", x, (width, hidden), 3)
        h = self.conv(f"{name}/cv2", h, (hidden, width), 3, gain=gain)
        return self.node("Add", f"{name}/Add", [x, h]) if residual else h

    def c3k(self, name: str, x: str, width: int) -> str:
        half = width // 2
        h = self.conv(f"{name}/cv1", x, (width, half))
        for k in range(2):
            h = self.bottleneck(f"{name}/m/m.{k}", h, half, half, GAIN)
        joined = self.node("Concat", f"{name}/Concat", [h, self.conv(f"{name}/cv2", x, (width, half))], axis=1)
        return self.conv(f"{name}/cv3", joined, (2 * half, width), gain=DOMINANT)

    def c2f(self, name: str, x: str, size: tuple[int, int], repeats: int = 1, *, ratio: float = 0.5,
            hidden: float = 1.0, nested: bool = False, residual: bool = True) -> str:  # fmt: skip
        """Add a split, a chain of bottlenecks (or nested blocks) and the Concat of all its links."""
        width = int(size[1] * ratio)
        links = self.split(f"{name}/Split", self.conv(f"{name}/cv1", x, (size[0], 2 * width)), [width, width], 1)
        for k in range(repeats):
            inner = f"{name}/m.{k}"
            h = links[-1]
            if nested:
                links.append(self.c3k(inner, h, width))
            else:
                links.append(self.bottleneck(inner, h, width, int(width * hidden), residual=residual))
        joined = self.node("Concat", f"{name}/Concat", links, axis=1)
        return self.conv(f"{name}/cv2", joined, ((2 + repeats) * width, size[1]))

    def softmax(self, name: str, x: str) -> str:
        """Add a softmax over the channels, written out, which keeps it on the BPU."""
        top = self.node("ReduceMax", f"{name}/ReduceMax", [x], axes=[1], keepdims=1)
        raised = self.node("Exp", f"{name}/Exp", [self.node("Sub", f"{name}/Sub", [x, top])])
        total = self.node("ReduceSum", f"{name}/ReduceSum", [raised], axes=[1], keepdims=1)
        return self.node("Div", f"{name}/Div", [raised, total])

    def attention(self, name: str, x: str, width: int, cells: int) -> str:
        """Add attention over ``cells`` positions with heads of 64 channels and keys of 32; no residual."""
        heads, side = width // 64, math.isqrt(cells)
        shape = self.constant(f"{name}.heads", np.asarray([1, heads, 128, cells], np.int64))
        back = [self.constant(f"{name}.map{k}", np.asarray([1, width, side, side], np.int64)) for k in range(2)]
        qkv = self.conv(f"{name}/qkv", x, (width, 2 * width), activate=False)
        q, k, v = self.split(f"{name}/Split", self.node("Reshape", f"{name}/Reshape", [qkv, shape]), [32, 32, 64], 2)
        scores = self.node("MatMul", f"{name}/MatMul",
                           [self.node("Transpose", f"{name}/Transpose", [q], perm=[0, 1, 3, 2]), k])  # fmt: skip
        scale = self.constant(f"{name}.scale", np.asarray(32**-0.5, np.float32))
        scaled = self.node("Mul", f"{name}/Mul", [scores, scale])
        weights = self.softmax(name, self.node("Transpose", f"{name}/Transpose_1", [scaled], perm=[0, 3, 1, 2]))
        turned = self.node("Transpose", f"{name}/Transpose_2", [weights], perm=[0, 2, 1, 3])
        mixed = self.node(
            "Reshape", f"{name}/Reshape_1", [self.node("MatMul", f"{name}/MatMul_1", [v, turned]), back[0]]
        )
        flat = self.node("Reshape", f"{name}/Reshape_2", [v, back[1]])
        place = self.conv(f"{name}/pe", flat, (width, width), 3, activate=False, groups=width)
        added = self.node("Add", f"{name}/Add", [mixed, place])
        return self.conv(f"{name}/proj", added, (width, width), gain=0.5, activate=False)

    def c2psa(self, name: str, x: str, width: int, cells: int, *, kept: float = 4 * GAIN) -> str:
        half = width // 2
        gains = np.repeat([kept, GAIN], half)  # a large one for the kept half: it sets the range of the Concat
        a, b = self.split(f"{name}/Split", self.conv(f"{name}/cv1", x, (width, width), gain=gains), [half, half], 1)
        inner = f"{name}/m/m.0"
        b = self.node("Add", f"{inner}/Add", [b, self.attention(f"{inner}/attn", b, half, cells)])
        h = self.conv(f"{inner}/ffn/ffn.0", b, (half, width))
        h = self.conv(f"{inner}/ffn/ffn.1", h, (width, half), gain=0.5, activate=False)
        b = self.node("Add", f"{inner}/Add_1", [b, h])
        return self.conv(f"{name}/cv2", self.node("Concat", f"{name}/Concat", [a, b], axis=1), (width, width))

    def classify(self, name: str, x: str, width: int) -> onnx.ModelProto:
        """Add the head and return the model ``images [1, 3, 224, 224] -> output0 [1, 1000]``."""
        h = self.conv(f"{name}/conv", x, (width, 1280))
        h = self.node("GlobalAveragePool", f"{name}/pool/GlobalAveragePool", [h])
        h = self.node("Flatten", f"{name}/Flatten", [h], axis=1)
        weight = self.constant(f"{name}.linear.weight", self.laplace((CLASSES, 1280), GAIN))
        names = [h, weight, self.constant(f"{name}.linear.bias", self.bias(CLASSES))]
        self.nodes.append(helper.make_node("Gemm", names, ["output0"], name=f"{name}/linear/Gemm", transB=1))
        return self.model(SIDE, {"output0": [1, CLASSES]})

    def model(self, side: int, outputs: dict[str, list[int]]) -> onnx.ModelProto:
        """Return the checked model ``images [1, 3, side, side]`` -> float32 ``outputs`` (shape by name)."""
        graph = helper.make_graph(
            self.nodes,
            "main_graph",
            [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, side, side])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])
        model.ir_version = 6
        onnx.checker.check_model(model, full_check=True)
        return model


def yolov8n_cls(seed: int = 8) -> onnx.ModelProto:
    """Build the twin of YOLOv8n-cls."""
    net = Network(seed)
    x = net.conv("/model.0", "images", (3, 16), 3, 2)
    x = net.conv("/model.1", x, (16, 32), 3, 2)
    x = net.c2f("/model.2", x, (32, 32))
    for layer, (width, repeats) in ((3, (32, 2)), (5, (64, 2)), (7, (128, 1))):
        x = net.conv(f"/model.{layer}", x, (width, 2 * width), 3, 2)
        x = net.c2f(f"/model.{layer + 1}", x, (2 * width, 2 * width), repeats)
    return net.classify("/model.9", x, 256)


def yolo11n_cls(seed: int = 11) -> onnx.ModelProto:
    """Build the twin of YOLO11n-cls."""
    net = Network(seed)
    x = net.conv("/model.0", "images", (3, 16), 3, 2)
    x = net.conv("/model.1", x, (16, 32), 3, 2)
    x = net.c2f("/model.2", x, (32, 64), ratio=0.25, hidden=0.5)
    x = net.conv("/model.3", x, (64, 64), 3, 2)
    x = net.c2f("/model.4", x, (64, 128), ratio=0.25, hidden=0.5)
    x = net.conv("/model.5", x, (128, 128), 3, 2)
    x = net.c2f("/model.6", x, (128, 128), nested=True)
    x = net.conv("/model.7", x, (128, 256), 3, 2)
    x = net.c2f("/model.8", x, (256, 256), nested=True)
    x = net.c2psa("/model.9", x, 256, 49)
    return net.classify("/model.10", x, 256)


def photographs(count: int, seed: int, side: int = SIDE) -> npt.NDArray[np.uint8]:
    """Make ``[count, 3, side, side]`` uint8 pictures (side a multiple of 8): smooth fields with mild noise."""
    rng = np.random.default_rng(seed)
    pictures = []
    for _ in range(count):
        cells = rng.random((3, 8, 8)).repeat(side // 8, 1).repeat(side // 8, 2)
        spread = sum(np.roll(cells, (dy, dx), (1, 2)) for dy in range(0, 28, 7) for dx in range(0, 28, 7)) / 16
        pictures.append(np.clip(spread * 255 + rng.normal(0, 8, cells.shape), 0, 255))
    return np.asarray(pictures, np.uint8)
