"""Activations that don't exist below: written with what does, in the float type of the graph.

Each form is free of overflow: exponentials only of values that are not positive, or inside Sigmoid, Tanh, Softplus.
"""

from __future__ import annotations

import math

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import FLOATS, Step


@adapter("Celu", 12, 28)
def celu(step: Step) -> None:
    """max(x, 0) + alpha * Elu(min(x, 0) / alpha)."""
    x, alpha = step.x(0), step.attr("alpha", 1.0)
    if alpha == 1.0:
        step.op("Elu", [x], step.y(), alpha=1.0)
        return
    positive = step.op("Relu", [x])
    scale = step.like(alpha, x)
    negative = step.op("Div", [step.op("Sub", [x, positive]), scale])
    step.op("Add", [positive, step.op("Mul", [step.op("Elu", [negative], alpha=1.0), scale])], step.y())


@adapter("Gelu", 20)
def gelu(step: Step) -> None:
    """x/2 * (1 + erf(x / sqrt 2)), or its tanh approximation when that is asked for."""
    x = step.x(0)
    if step.attr("approximate", "none") == "tanh":
        cube = step.op("Mul", [step.op("Mul", [x, x]), x])
        bent = step.op("Add", [x, step.op("Mul", [cube, step.like(0.044715, x)])])
        gate = step.op("Tanh", [step.op("Mul", [bent, step.like(math.sqrt(2 / math.pi), x)])])
    else:
        gate = step.op("Erf", [step.op("Mul", [x, step.like(math.sqrt(0.5), x)])])
    half = step.op("Mul", [x, step.like(0.5, x)])
    step.op("Mul", [half, step.op("Add", [gate, step.like(1.0, x)])], step.y())


@adapter("HardSwish", 14)
def hard_swish(step: Step) -> None:
    """X * HardSigmoid(x; 1/6, 1/2)."""
    x = step.x(0)
    step.op("Mul", [x, step.op("HardSigmoid", [x], alpha=1 / 6, beta=0.5)], step.y())


@adapter("Mish", 18)
def mish(step: Step) -> None:
    """X * tanh(softplus(x))."""
    x = step.x(0)
    step.op("Mul", [x, step.op("Tanh", [step.op("Softplus", [x])])], step.y())


def gated(step: Step, x: str, alpha: float) -> str:
    """Sigmoid(alpha * x)."""
    return step.op("Sigmoid", [x if alpha == 1.0 else step.op("Mul", [x, step.like(alpha, x)])])


@adapter("Swish", 24)
def swish(step: Step) -> None:
    """X * sigmoid(alpha x)."""
    x = step.x(0)
    step.op("Mul", [x, gated(step, x, step.attr("alpha", 1.0))], step.y())


@adapter("SwiGLU", 28)
def swiglu(step: Step) -> None:
    """A * sigmoid(alpha a) * b."""
    a = step.x(0)
    step.op("Mul", [step.op("Mul", [a, gated(step, a, step.attr("alpha", 1.0))]), step.x(1)], step.y())


@adapter("Relu", 14)
def integer_relu(step: Step) -> None:
    """Integers: the larger of x and 0."""
    x = step.x(0)
    if step.elem(x) in FLOATS or not step.elem(x):
        step.same()
    else:
        step.op("Max", [x, step.like(0, x)], step.y())
