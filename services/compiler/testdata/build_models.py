"""Seeded models for the compiler's tests: small, real in form, made with onnx only."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def _weight(rng, name, *shape, dtype=np.float32):
    fan = max(int(np.prod(shape[1:])), 1)
    return numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(fan)).astype(dtype), name)


def _model(nodes, inputs, outputs, weights, *, opset=11, ir=7, graph="g", domain=None):
    def infos(pairs, element):
        return [helper.make_tensor_value_info(n, element, s) for n, s in pairs]

    element = TensorProto.FLOAT
    if weights and weights[0].data_type in (TensorProto.DOUBLE, TensorProto.FLOAT16):
        element = weights[0].data_type
    built = helper.make_graph(nodes, graph, infos(inputs, element), infos(outputs, element), weights)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(built, opset_imports=imports, ir_version=ir)


def policy(widths=(225, 512, 256, 12), seed=0, graph="policy"):
    """A policy as transform leaves it: obs_4d [1, 1, 1, N] -> actions [1, M, 1, 1], 1x1 convolutions and Elu."""
    rng = np.random.default_rng(seed)
    nodes = [helper.make_node("Transpose", ["obs_4d"], ["t0"], name="to_channels", perm=[0, 3, 1, 2])]
    weights, at = [], "t0"
    for k, (a, b) in enumerate(itertools.pairwise(widths)):
        weights += [_weight(rng, f"w{k}", b, a, 1, 1), _weight(rng, f"b{k}", b)]
        last = k == len(widths) - 2
        out = "actions" if last else f"h{k}"
        nodes.append(helper.make_node("Conv", [at, f"w{k}", f"b{k}"], [out], name=f"fc{k}"))
        at = out
        if not last:
            nodes.append(helper.make_node("Elu", [at], [f"e{k}"], name=f"elu{k}"))
            at = f"e{k}"
    return _model(nodes, [("obs_4d", [1, 1, 1, widths[0]])], [("actions", [1, widths[-1], 1, 1])], weights, graph=graph)


def small(
    op="Relu", shape=(1, 3, 32, 32), *, dims=None, opset=11, ir=7, dtype=np.float32, names=("c1", "op", "c2"),
    domain=None, inputs=("x",), attributes=None, graph="g",
):  # fmt: skip
    """Conv, one operator, Conv: what the tool says about the operator in the middle."""
    rng = np.random.default_rng(1)
    weights = [_weight(rng, "w1", 8, shape[1], 3, 3, dtype=dtype), _weight(rng, "w2", 4, 8, 1, 1, dtype=dtype)]
    x = inputs[0]
    nodes = [
        helper.make_node("Conv", [x, "w1"], ["a"], name=names[0], pads=[1, 1, 1, 1]),
        helper.make_node(op, ["a"], ["b"], name=names[1], domain=domain or "", **(attributes or {})),
        helper.make_node("Conv", ["b", "w2"], ["y"], name=names[2]),
    ]
    dims = list(dims or shape)
    return _model(nodes, [(x, dims)], [("y", [dims[0], 4, *dims[2:]])], weights, opset=opset, ir=ir, domain=domain,
                  graph=graph)  # fmt: skip


def two_islands(seed=3):
    """Two inputs, two outputs, a Softmax on the CPU between two BPU subgraphs."""
    rng = np.random.default_rng(seed)
    weights = [_weight(rng, "wa", 6, 4, 3, 3), _weight(rng, "wb", 6, 3, 3, 3), _weight(rng, "wc", 5, 6, 1, 1)]
    nodes = [
        helper.make_node("Conv", ["xa", "wa"], ["a"], name="ca", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["xb", "wb"], ["b"], name="cb", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["a", "b"], ["s"], name="add"),
        helper.make_node("Softmax", ["s"], ["p"], name="sm", axis=1),
        helper.make_node("Conv", ["p", "wc"], ["y2"], name="cc"),
        helper.make_node("Relu", ["s"], ["y1"], name="relu"),
    ]
    return _model(nodes, [("xa", [1, 4, 20, 20]), ("xb", [1, 3, 20, 20])],
                  [("y1", [1, 6, 20, 20]), ("y2", [1, 5, 20, 20])], weights)  # fmt: skip


def attention(seed=3):
    """A MatMul of two computed tensors between convolutions."""
    rng = np.random.default_rng(seed)
    weights = [_weight(rng, name, 4, 4, 1, 1) for name in ("wa", "wb", "wc")]
    nodes = [
        helper.make_node("Conv", ["x", "wa"], ["a"], name="ca"),
        helper.make_node("Conv", ["x", "wb"], ["b"], name="cb"),
        helper.make_node("Transpose", ["b"], ["t"], name="tr", perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["a", "t"], ["m"], name="mm"),
        helper.make_node("Conv", ["m", "wc"], ["y"], name="cc"),
    ]
    return _model(nodes, [("x", [1, 4, 8, 16])], [("y", [1, 4, 8, 8])], weights)


def camera(channels=3, size=(32, 48), seed=4):
    """An image model: [1, C, H, W] -> [1, 4, H/2, W/2]; works on raw 0 to 255 pixels scaled by the preprocess node."""
    rng = np.random.default_rng(seed)
    weights = [_weight(rng, "w1", 8, channels, 3, 3), _weight(rng, "w2", 4, 8, 1, 1)]
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["a"], name="c1", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"], name="r1"),
        helper.make_node("Conv", ["b", "w2"], ["y"], name="c2"),
    ]
    height, width = size
    return _model(nodes, [("image", [1, channels, height, width])], [("y", [1, 4, height // 2, width // 2])], weights)


def vector(width=61):
    """A bare Gemm on [1, N]."""
    rng = np.random.default_rng(5)
    weights = [_weight(rng, "w", 12, width), _weight(rng, "b", 12)]
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="fc", transB=1)]
    return _model(nodes, [("x", [1, width])], [("y", [1, 12])], weights)


def volume():
    """A 5-D convolution."""
    rng = np.random.default_rng(6)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="c3", pads=[1] * 6)]
    return _model(nodes, [("x", [1, 3, 4, 8, 8])], [("y", [1, 4, 4, 8, 8])], [_weight(rng, "w", 4, 3, 3, 3, 3)])


def empty():
    """A graph without nodes."""
    return _model([], [("x", [1, 3, 32, 32])], [("x", [1, 3, 32, 32])], [])


def relu_only():
    """A graph of one Relu."""
    node = helper.make_node("Relu", ["x"], ["y"], name="r")
    return _model([node], [("x", [1, 3, 32, 32])], [("y", [1, 3, 32, 32])], [])


def with_weight(model, name, change):
    """Return the model with one weight changed in place by ``change(array)``."""
    for index, weight in enumerate(model.graph.initializer):
        if weight.name == name:
            array = numpy_helper.to_array(weight).copy()
            change(array)
            model.graph.initializer[index].CopyFrom(numpy_helper.from_array(array, name))
    return model


def huge_constant():
    """A factor of 1e30 in the middle."""
    model = small()
    factor = numpy_helper.from_array(np.full((1, 8, 1, 1), 1e30, np.float32), "big")
    model.graph.initializer.append(factor)
    model.graph.node.insert(1, helper.make_node("Mul", ["a", "big"], ["ab"], name="mulbig"))
    model.graph.node[2].input[0] = "ab"
    return model


def samples(model, count=16, seed=9, image=False):
    """Return per input ``[N, ...]`` samples."""
    rng = np.random.default_rng(seed)
    found = {}
    for tensor in model.graph.input:
        shape = [d.dim_value or 1 for d in tensor.type.tensor_type.shape.dim]
        if image:
            found[tensor.name] = rng.integers(0, 256, (count, *shape[1:])).astype(np.uint8)
        else:
            found[tensor.name] = rng.standard_normal((count, *shape[1:])).astype(np.float32)
    return found


def float_outputs(model, inputs):
    """Return per output ``[N, ...]`` what stock onnxruntime computes, sample by sample."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    count = len(next(iter(inputs.values())))
    rows = [session.run(None, {k: v[i][None] for k, v in inputs.items()}) for i in range(count)]
    return {o.name: np.stack([r[k] for r in rows]) for k, o in enumerate(session.get_outputs())}


def save(model, path):
    """Write a model."""
    onnx.save(model, str(path))


def deep(layers=14, channels=64, size=56, seed=10):
    """A chain of 3x3 convolutions whose O3 compile takes several seconds."""
    rng = np.random.default_rng(seed)
    nodes, weights, at, width = [], [], "x", 3
    for k in range(layers):
        weights.append(_weight(rng, f"w{k}", channels, width, 3, 3))
        nodes.append(helper.make_node("Conv", [at, f"w{k}"], [f"c{k}"], name=f"conv{k}", pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{k}"], [f"r{k}"], name=f"relu{k}"))
        at, width = f"r{k}", channels
    nodes[-1].output[0] = "y"
    return _model(nodes, [("x", [1, 3, size, size])], [("y", [1, channels, size, size])], weights)


def recurrent(steps=4, width=8, seed=11):
    """A GRU of which only Y is used: the tool crashes on it."""
    rng = np.random.default_rng(seed)
    weights = [
        _weight(rng, "w1", 8, 16, 1, 1), _weight(rng, "w", 1, 3 * width, width), _weight(rng, "r", 1, 3 * width, width),
        _weight(rng, "b", 1, 6 * width), numpy_helper.from_array(np.zeros((1, 1, width), np.float32), "h0"),
        numpy_helper.from_array(np.array([steps * 4, 1, width], np.int64), "flat"),
        numpy_helper.from_array(np.array([1, width, 1, steps * 4], np.int64), "back"), _weight(rng, "w2", 8, width, 1, 1),
    ]  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["in0", "w1"], ["a"], name="c1", strides=[2, 2]),
        helper.make_node("Transpose", ["a"], ["t"], name="t1", perm=[2, 3, 0, 1]),
        helper.make_node("Reshape", ["t", "flat"], ["s"], name="r1"),
        helper.make_node("GRU", ["s", "w", "r", "b", "", "h0"], ["g"], name="gru", hidden_size=width,
                         linear_before_reset=1),
        helper.make_node("Squeeze", ["g"], ["q"], name="sq", axes=[1]),
        helper.make_node("Transpose", ["q"], ["u"], name="t2", perm=[1, 2, 0]),
        helper.make_node("Reshape", ["u", "back"], ["v"], name="r2"),
        helper.make_node("Conv", ["v", "w2"], ["out"], name="c2"),
    ]  # fmt: skip
    return _model(nodes, [("in0", [1, 16, 8, 8])], [("out", [1, 8, 1, steps * 4])], weights)
