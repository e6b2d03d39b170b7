"""Choose which layers run in int16, so that a target is reached at least cost; pure.

Errors of layers are taken as independent, so that squared errors add up. That is good enough to order layers by gain
per microsecond; how far to go down that order is decided by emulating whole plans, never by the sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from boardlift_compiler.explore.judge import Errors, Goal, judge

SUFFIX = "_FROM_QUANTIZED_SOFTMAX"
MIN_COST_US = 0.05
"""Cost below which a layer counts as free; keeps the order finite."""
WORTH = 1e-3
"""Share of the whole squared error below which a layer is not worth int16."""
IMPLIED_SHARE = 0.9
"""Without a target a plan must come this share of the way from int8 to int16."""
CLIPPED = 0.5
"""Share of a layer's error that int16 must take away, else its thresholds or weights are at fault."""


@dataclass(frozen=True)
class Layer:
    """What quantisation does to one layer. Simulated."""

    node: str
    """Name in the vendor's calibrated model."""
    type: str
    """Operator type."""
    model_node: str
    """Node of the user's model that carries it; empty when an override cannot name it."""
    single_int8: Errors
    """Only this layer in int8: error at the model's outputs."""
    single_int16: Errors
    """Only this layer, with int16 activations."""
    cumulative: Mapping[str, float]
    """All layers in int8: error at this layer's output, per metric."""
    cost_us: float | None = None
    """Estimated extra microseconds of int16; None when unknown."""

    def gain(self, goal: Goal) -> float:
        """Return the squared error that int16 takes away, never below 0."""
        return max(_square(self.single_int8, goal) - _square(self.single_int16, goal), 0.0)


@dataclass(frozen=True)
class Ladder:
    """Plans of growing cost."""

    order: tuple[str, ...] = ()
    """Model nodes, best gain per cost first."""
    layers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Model node -> layers that follow it."""

    def layers_of(self, count: int) -> list[str]:
        """Return the layers in int16 when the first `count` nodes are."""
        return [layer for node in self.order[:count] for layer in self.layers[node]]


def _square(errors: Errors, goal: Goal) -> float:
    names = [goal.output] if goal.output in errors else list(errors)
    return max((errors[name]["rmse"] ** 2 for name in names), default=0.0)


def model_node_of(layer: str, names: Iterable[str]) -> str:
    """Return the node of the user's model that a layer of the calibrated model comes from; empty when unknown."""
    known = set(names)
    if layer in known:
        return layer
    if layer.endswith(SUFFIX):
        base = layer[: -len(SUFFIX)].rpartition("_")[0]
        return base if base in known else ""
    return ""


def layer_costs(int8_us: Mapping[str, float], int16_us: Mapping[str, float]) -> dict[str, float]:
    """Return the extra microseconds of int16 per layer that both builds list, never below 0. Estimated."""
    return {name: max(int16_us[name] - us, 0.0) for name, us in int8_us.items() if name in int16_us}


def rank_layers(layers: Sequence[Layer], goal: Goal) -> list[Layer]:
    """Return layers by their error alone in int8, worst first."""
    return sorted(layers, key=lambda layer: -_square(layer.single_int8, goal))


def build_ladder(layers: Sequence[Layer], goal: Goal) -> Ladder:
    """Order the nodes that can be named by squared error taken away per microsecond."""
    groups: dict[str, list[Layer]] = {}
    for layer in layers:
        if layer.model_node:
            groups.setdefault(layer.model_node, []).append(layer)
    total = math.fsum(_square(layer.single_int8, goal) for layer in layers)
    known = [layer.cost_us for layer in layers if layer.cost_us is not None]
    typical = math.fsum(known) / len(known) if known else 1.0
    scores: dict[str, float] = {}
    for node, members in groups.items():
        gain = math.fsum(member.gain(goal) for member in members)
        cost = math.fsum(typical if m.cost_us is None else m.cost_us for m in members)
        if gain > WORTH * total:
            scores[node] = gain / max(cost, MIN_COST_US)
    order = tuple(sorted(scores, key=lambda node: -scores[node]))
    return Ladder(order, {node: tuple(m.node for m in groups[node]) for node in order})


def rungs(count: int, most: int = 16) -> list[int]:
    """Return the lengths of the plans to emulate: all up to `most`, else spread over the ladder, the whole last."""
    if count <= most:
        return list(range(1, count + 1))
    return sorted({max(1, round(count * (k + 1) / most)) for k in range(most)})


def implied_target(goal: Goal, all_int8: Errors, all_int16: Errors, share: float = IMPLIED_SHARE) -> Goal:
    """Return the goal with a target: the given one, else `share` of the way from int8 to int16."""
    if goal.target is not None:
        return goal
    low, high = goal.loss(judge(goal, all_int8)[0]), goal.loss(judge(goal, all_int16)[0])
    return Goal(goal.metric, goal.output, goal.value_of(high + (1.0 - share) * max(low - high, 0.0)))


def first_reaching(goal: Goal, emulated: Sequence[Errors]) -> int | None:
    """Return the position of the first plan that reaches the target; None when none does."""
    reached = (k for k, errors in enumerate(emulated) if goal.reached(judge(goal, errors)[0]))
    return next(reached, None)


def clipped_layers(layers: Sequence[Layer], goal: Goal, share_of_total: float = 0.1) -> list[Layer]:
    """Return layers whose error is large and stays under int16: clipping thresholds or int8 weights are the cause."""
    total = math.fsum(_square(layer.single_int8, goal) for layer in layers)
    return [
        layer
        for layer in layers
        if _square(layer.single_int8, goal) > share_of_total * total
        and _square(layer.single_int16, goal) > CLIPPED * _square(layer.single_int8, goal)
    ]
