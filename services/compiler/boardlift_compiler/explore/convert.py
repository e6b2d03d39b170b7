"""Between the wire's messages and the data of this package; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boardlift.errors import InvalidInputError
from boardlift.v1 import compiler_pb2, explore_pb2, toolchain_pb2

from boardlift_compiler.convert import ESTIMATED, SIMULATED, figure
from boardlift_compiler.explore.choose_plan import Layer
from boardlift_compiler.explore.estimate import Island, LatencyEstimate
from boardlift_compiler.explore.judge import METRICS, Errors, Goal, GoalError, check_goal

RELATION_SOURCE = "boardlift estimate"
EMULATION, INTEGER_MODEL = "vendor calibrated model", "vendor quantised model"


def goal_from_wire(message: explore_pb2.Goal) -> Goal:
    """Read a goal.

    Raises:
        InvalidInputError: GOAL_INVALID.
    """
    goal = Goal(message.metric or "cosine", message.output, message.target if message.HasField("target") else None)
    try:
        check_goal(goal)
    except GoalError as error:
        raise InvalidInputError(
            f"The goal means nothing: {error}.",
            reason="GOAL_INVALID",
            remedy=f"Use one of {', '.join(METRICS)} with a target in its range.",
            metadata={"field": "goal"},
        ) from error
    return goal


def latency_figures(estimate: LatencyEstimate, source: str) -> list[toolchain_pb2.Figure]:
    """Write an estimate; the BPU's own time is the vendor's, the rest follows from the published relation."""
    return [
        figure("bpu_us", round(estimate.bpu_us, 1), "us", ESTIMATED, source),
        figure("handover_us", round(estimate.handover_us, 1), "us", ESTIMATED, RELATION_SOURCE),
        figure("board_ms", round(estimate.board_ms, 4), "ms", ESTIMATED, RELATION_SOURCE),
        figure("board_low_ms", round(estimate.low_ms, 4), "ms", ESTIMATED, RELATION_SOURCE),
        figure("board_high_ms", round(estimate.high_ms, 4), "ms", ESTIMATED, RELATION_SOURCE),
    ]


def latency_to_wire(estimate: LatencyEstimate, cpu_nodes: int, level: str, source: str) -> explore_pb2.LatencySummary:
    """Write the summary of one build."""
    return explore_pb2.LatencySummary(
        figures=latency_figures(estimate, source),
        bpu_subgraphs=estimate.bpu_subgraphs,
        cpu_nodes=cpu_nodes,
        optimize_level=level,
    )


def island_to_wire(island: Island) -> explore_pb2.CpuIsland:
    """Write a CPU island."""
    names = ("handover_us", "handover_low_us", "handover_high_us")
    values = island.handover_us
    return explore_pb2.CpuIsland(
        nodes=island.names,
        splits=island.splits,
        elements=island.elements,
        figures=[figure(n, round(v, 1), "us", ESTIMATED, RELATION_SOURCE) for n, v in zip(names, values, strict=True)],
    )


def metric_figure(goal: Goal, value: float, source: str) -> toolchain_pb2.Figure:
    """Write a value of the goal's metric."""
    return figure(goal.metric, value, "1", SIMULATED, source)


def error_figures(errors: Mapping[str, float], source: str) -> list[toolchain_pb2.Figure]:
    """Write all metrics of one tensor; one that is no number stays none."""
    return [figure(m, errors[m], "1", SIMULATED, source) for m in METRICS if m in errors]


def worst_output(errors: Errors, goal: Goal) -> Mapping[str, float]:
    """Return the figures of the goal's output, else of the worst one."""
    if goal.output in errors:
        return errors[goal.output]
    return max(errors.values(), key=lambda e: goal.loss(e[goal.metric]), default={})


def layer_to_wire(layer: Layer, goal: Goal, suggested: bool) -> explore_pb2.LayerSensitivity:
    """Write a layer's sensitivity."""
    message = explore_pb2.LayerSensitivity(
        node=layer.node,
        type=layer.type,
        model_node=layer.model_node,
        single_int8=error_figures(worst_output(layer.single_int8, goal), EMULATION),
        single_int16=error_figures(worst_output(layer.single_int16, goal), EMULATION),
        cumulative=error_figures(layer.cumulative, EMULATION),
        suggested_int16=suggested,
    )
    if layer.cost_us is not None:
        message.int16_cost_us = round(layer.cost_us, 2)
    return message


def layer_times(result: compiler_pb2.CompileResult) -> dict[str, float]:
    """Return microseconds per layer of a build's debug rows: the longer of compute and transfer, which overlap."""
    times: dict[str, float] = {}
    for subgraph in result.subgraphs:
        for layer in subgraph.layers:
            times[layer.layer] = times.get(layer.layer, 0.0) + max(layer.compute_us, layer.transfer_us)
    return times


class EstimateMissingError(ValueError):
    """A subgraph has no estimated latency; the message is its name."""


def subgraph_times(subgraphs: Sequence[compiler_pb2.SubgraphEstimate]) -> list[float]:
    """Return the estimated microseconds per BPU subgraph.

    Raises:
        EstimateMissingError: when one has none: without it every sum would be too small.
    """
    times = []
    for subgraph in subgraphs:
        found = [f.value for f in subgraph.figures if f.name == "estimated_latency_us"]
        if not found:
            raise EstimateMissingError(subgraph.name)
        times.append(found[0])
    return times
