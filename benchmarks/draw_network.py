"""Draw small random valid ONNX networks of the operators that exporters write; same seed, same network.

Three families: maps ``[1, C, H, W]``, sequences ``[1, T, D]`` and vectors ``[1, D]``. A layer is drawn from its
family's list and may turn a map into a sequence or either into a vector. Weights are scaled by fan-in, so that values
keep their size; operators of a limited domain (Sqrt, Log, Div, Pow) get their input made positive first. ``wide`` draws
from longer lists as well: several inputs and outputs, state, whole numbers, what policies and detectors end with, and
values of very different size.
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
WIDE_SHARE = 0.6
"""Share of the layers that are drawn from the longer lists, where these are asked for."""
HEADED = 0.4
"""Share of the networks with a head that others do not have in the middle."""


@dataclass(frozen=True)
class Given:
    """An input of a network."""

    shape: tuple[int, ...]
    most: int = 0
    """Above 0: whole numbers, int64, below this."""


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
    inputs: dict[str, Given] = field(default_factory=dict)
    """What is fed, by name."""
    ends: list[str] = field(default_factory=list)
    """Outputs beside the last layer's, as a state that goes round."""

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

    def feed(self, name: str, shape: tuple[int, ...], most: int = 0) -> str:
        """Add an input and return its name."""
        self.inputs[name] = Given(shape, most)
        return name

    def positive(self, x: str) -> str:
        """Return ``0.3 + |x|``."""
        return str(self.op("Add", self.op("Abs", x), self.const(0.3)))


Layer = Callable[[Network], None]


def infer(net: Network, outputs: Sequence[str]) -> onnx.ModelProto:
    """Return the model with the shapes that onnx infers."""
    graph = helper.make_graph(
        net.nodes,
        "random",
        [
            helper.make_tensor_value_info(n, TensorProto.INT64 if g.most else TensorProto.FLOAT, g.shape)
            for n, g in net.inputs.items()
        ],
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
    samples: dict[str, Array]
    """``[N, *shape]`` float32 or int64, per input."""
    outputs: dict[str, Array]
    """``[N, ...]`` per output; measured with onnxruntime."""


def draw_network(seed: int, samples: int, layers: tuple[int, int] = (3, 12), *, wide: bool = False) -> Drawn:
    """Draw a network and samples of its inputs; drawn anew where an output says nothing: constant, or no number.

    Args:
        seed: Same seed, same network and samples.
        samples: Number of samples.
        layers: Fewest and most layers.
        wide: Draws from the longer lists.
    """
    for attempt in range(100):
        drawn = _draw(np.random.default_rng([seed, attempt]), samples, layers, wide)
        if all(np.isfinite(o).all() and np.ptp(o) > 0 and np.abs(o).max() < LARGEST for o in drawn.outputs.values()):
            return drawn
    raise RuntimeError(f"seed {seed} draws no network")


def _draw(rng: np.random.Generator, samples: int, layers: tuple[int, int], wide: bool) -> Drawn:
    from draw_layers import FAMILIES, HEADS, SHARES, WIDE, WIDE_HEADS  # they build on this module

    start, _ = FAMILIES[str(rng.choice(list(FAMILIES), p=SHARES))]
    net = Network(rng, shape=start(rng))
    net.feed("x", net.shape)
    wanted = int(rng.integers(layers[0], layers[1] + 1))
    for _ in range(4 * wanted):
        if len(net.layers) == wanted:
            break
        family = {4: "map", 3: "sequence", 2: "vector"}[len(net.shape)]
        choices = WIDE[family] if wide and rng.random() < WIDE_SHARE else FAMILIES[family][1]
        _try_layer(net, net.pick(choices))
    outputs = [net.x]
    if rng.random() < HEADED:
        before = net.x
        _try_layer(net, net.pick((*HEADS, *WIDE_HEADS) if wide else HEADS))
        outputs = [before, net.x] if rng.random() < 0.5 and before != net.x else [net.x]
    if not net.nodes:
        net.then("Relu")
        outputs = [net.x]
    model = infer(net, list(dict.fromkeys(o for o in [*outputs, *net.ends] if o not in net.inputs)))
    fed = {n: _draw_samples(rng, (samples, *g.shape)) if not g.most else rng.integers(0, g.most, (samples, *g.shape))
           for n, g in net.inputs.items()}  # fmt: skip
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [o.name for o in model.graph.output]
    rows = [session.run(names, {n: v[k] for n, v in fed.items()}) for k in range(samples)]
    return Drawn(
        model, tuple(net.layers), fed, {n: np.stack(v) for n, v in zip(names, zip(*rows, strict=True), strict=True)}
    )


def _try_layer(net: Network, layer: Layer) -> None:
    """Add a layer; one that does not fit the shape, or makes it too large, leaves the network as it was."""
    before = (net.x, net.shape, dict(net.inputs), len(net.nodes), len(net.weights), len(net.ends))
    try:
        layer(net)
        net.shape = shape_of(infer(net, [net.x]), net.x)
        fits = (
            len(net.nodes) <= MOST_NODES and 0 < math.prod(net.shape) <= MOST_ELEMENTS and len(net.shape) in (2, 3, 4)
        )
    except (shape_inference.InferenceError, DoesNotFitError):
        fits = False
    if not fits:
        net.x, net.shape, net.inputs = before[:3]
        del net.nodes[before[3] :], net.weights[before[4] :], net.ends[before[5] :]
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
