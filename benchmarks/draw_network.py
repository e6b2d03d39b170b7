"""Draw small random valid ONNX networks of the operators that exporters write; same seed, same network.

Three families: maps ``[1, C, H, W]``, sequences ``[1, T, D]`` and vectors ``[1, D]``. A layer is drawn from its
family's list and may turn a map into a sequence or either into a vector. Weights are scaled by fan-in, so that values
keep their size; operators of a limited domain (Sqrt, Log, Div, Pow) get their input made positive first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, shape_inference

Array = npt.NDArray[Any]
OPSET = 17
MOST_ELEMENTS = 20_000
"""Elements of the largest tensor."""
MOST_NODES = 60
LARGEST = 1e4
"""Largest output."""
HEADED = 0.4
"""Share of the networks with a head that others do not have in the middle."""


@dataclass
class Network:
    """A graph that grows; ``x`` is the tensor that the next layer reads."""

    rng: np.random.Generator
    x: str = "x"
    shape: tuple[int, ...] = ()
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    seen: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    """Tensors that a later layer may read once more."""
    layers: list[str] = field(default_factory=list)
    """Names of what was drawn, in order."""

    def pick(self, values: Sequence[Any]) -> Any:
        """Return one of them, each as likely."""
        return values[int(self.rng.integers(len(values)))]

    def const(self, value: Any, dtype: Any = np.float32) -> str:
        """Add a constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int, fan_in: int) -> str:
        """Add normal weights; ``fan_in`` inputs are summed up."""
        return self.const(self.rng.normal(0, 1 / math.sqrt(fan_in), shape))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node and return its output, or all of them."""
        number = len(self.nodes)
        names = [f"t{number}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"{kind}_{number}", **attributes))
        return names[0] if outputs == 1 else names

    def then(self, kind: str, *more: str, **attributes: Any) -> None:
        """Add a node behind ``x`` that keeps or changes its shape."""
        self.x = self.op(kind, self.x, *more, **attributes)

    def positive(self, x: str) -> str:
        """Return ``0.3 + |x|``."""
        return str(self.op("Add", self.op("Abs", x), self.const(0.3)))


Layer = Callable[[Network], None]


def infer(net: Network, inputs: Sequence[tuple[str, tuple[int, ...]]], outputs: Sequence[str]) -> onnx.ModelProto:
    """Return the model with the shapes that onnx infers."""
    graph = helper.make_graph(
        net.nodes,
        "random",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs],
        [onnx.ValueInfoProto(name=n) for n in outputs],
        net.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    types = {v.name: v for v in [*inferred.graph.value_info, *inferred.graph.output]}
    del inferred.graph.output[:]
    inferred.graph.output.extend(types[n] for n in outputs)
    del inferred.graph.value_info[:]
    return inferred


def shape_of(model: onnx.ModelProto, name: str) -> tuple[int, ...]:
    """Return the shape of an output."""
    (info,) = [o for o in model.graph.output if o.name == name]
    return tuple(d.dim_value for d in info.type.tensor_type.shape.dim)


@dataclass(frozen=True)
class Drawn:
    """A network with what is fed to it."""

    model: onnx.ModelProto
    layers: tuple[str, ...]
    x: Array
    """``[N, 1, ...]`` float32, the input named ``x``."""
    outputs: dict[str, Array]
    """``[N, ...]`` per output; measured with onnxruntime."""


def draw_network(seed: int, samples: int, layers: tuple[int, int] = (3, 12)) -> Drawn:
    """Draw a network and samples of its input; drawn anew where an output says nothing: constant, or no number.

    Args:
        seed: Same seed, same network and samples.
        samples: Number of samples.
        layers: Fewest and most layers.
    """
    for attempt in range(100):
        drawn = _draw(np.random.default_rng([seed, attempt]), samples, layers)
        if all(np.isfinite(o).all() and np.ptp(o) > 0 and np.abs(o).max() < LARGEST for o in drawn.outputs.values()):
            return drawn
    raise RuntimeError(f"seed {seed} draws no network")


def _draw(rng: np.random.Generator, samples: int, layers: tuple[int, int]) -> Drawn:
    from draw_layers import FAMILIES, HEADS, SHARES  # they build on this module

    start, _ = FAMILIES[str(rng.choice(list(FAMILIES), p=SHARES))]
    net = Network(rng, shape=start(rng))
    given = net.shape
    wanted = int(rng.integers(layers[0], layers[1] + 1))
    for _ in range(4 * wanted):
        if len(net.layers) == wanted:
            break
        choices = FAMILIES[{4: "map", 3: "sequence", 2: "vector"}[len(net.shape)]][1]
        _try_layer(net, net.pick(choices), given)
    outputs = [net.x]
    if rng.random() < HEADED:
        before = net.x
        _try_layer(net, net.pick(HEADS), given)
        outputs = [before, net.x] if rng.random() < 0.5 and before != net.x else [net.x]
    if not net.nodes:
        net.then("Relu")
        outputs = [net.x]
    model = infer(net, [("x", given)], [o for o in outputs if o != "x"])
    x = _draw_samples(rng, (samples, *given))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [o.name for o in model.graph.output]
    rows = [session.run(names, {"x": one}) for one in x]
    return Drawn(
        model, tuple(net.layers), x, {n: np.stack(v) for n, v in zip(names, zip(*rows, strict=True), strict=True)}
    )


def _try_layer(net: Network, layer: Layer, given: tuple[int, ...]) -> None:
    """Add a layer; one that does not fit the shape, or makes it too large, leaves the network as it was."""
    before = (net.x, net.shape, len(net.nodes), len(net.weights))
    try:
        layer(net)
        net.shape = shape_of(infer(net, [("x", given)], [net.x]), net.x)
        fits = (
            len(net.nodes) <= MOST_NODES and 0 < math.prod(net.shape) <= MOST_ELEMENTS and len(net.shape) in (2, 3, 4)
        )
    except (shape_inference.InferenceError, DoesNotFitError):
        fits = False
    if not fits:
        net.x, net.shape = before[:2]
        del net.nodes[before[2] :], net.weights[before[3] :]
        return
    net.seen.append((net.x, net.shape))
    net.layers.append(layer.__name__)


class DoesNotFitError(Exception):
    """A layer has no form for this shape."""


def need(fits: bool) -> None:
    """Leave a layer that has no form for this shape.

    Raises:
        DoesNotFitError: it does not fit.
    """
    if not fits:
        raise DoesNotFitError


def _draw_samples(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw what a robot's inputs look like: normal, 0 to 1, or channels of very different size."""
    kind = rng.random()
    if kind < 0.25:
        return rng.uniform(0, 1, shape).astype(np.float32)
    values = rng.normal(0, 1, shape)
    if kind > 0.75:  # as in observations: radians beside metres beside contact forces
        axis = 2 if len(shape) == 5 else len(shape) - 1
        wide = [1] * len(shape)
        wide[axis] = shape[axis]
        values = values * np.exp(rng.normal(0, 1, wide))
    return values.astype(np.float32)
