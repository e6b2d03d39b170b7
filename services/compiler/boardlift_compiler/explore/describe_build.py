"""Describe a build for comparison: its estimated latency, its islands, and what the tool built otherwise than asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from boardlift.v1 import compiler_pb2, explore_pb2, toolchain_pb2
from boardlift_servicekit.artifacts import ArtifactStore

from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.explore.convert import EstimateMissingError, latency_to_wire, subgraph_times
from boardlift_compiler.explore.estimate import (
    Island,
    LatencyEstimate,
    estimate_compiled,
    find_islands,
)
from boardlift_compiler.read_bin import BinUnreadableError, CompiledModel, read_bin

ASKED_OTHERWISE = ("INT16_FELL_BACK", "BPU_FELL_BACK", "CPU_NOT_HONOURED")


@dataclass(frozen=True)
class BuildDescription:
    """One build."""

    estimate: LatencyEstimate
    """Its estimated latency."""
    islands: tuple[Island, ...]
    """CPU islands, those at the ends too."""
    cpu_nodes: int
    """Nodes on the CPU as the tool counts them."""
    level: str
    """Optimise level."""

    def to_wire(self, source: str) -> explore_pb2.LatencySummary:
        """Write it."""
        return latency_to_wire(self.estimate, self.cpu_nodes, self.level, source)


async def describe_build(result: compiler_pb2.CompileResult, store: ArtifactStore) -> BuildDescription | StageFailure:
    """Describe a successful build, or say why it can't be: a damaged compiled model, a subgraph without an estimate."""
    path = await store.fetch(result.compiled_model)
    try:
        model: CompiledModel = await asyncio.to_thread(lambda: read_bin(path.read_bytes()))
        times = subgraph_times(result.subgraphs)
    except BinUnreadableError as error:
        return make_failure("COMPILED_MODEL_UNREADABLE", "", (str(error),))
    except EstimateMissingError as error:
        return make_failure("ESTIMATE_MISSING", str(error))
    if len(times) < len(model.bpu_nodes):
        return make_failure("ESTIMATE_MISSING", f"{len(model.bpu_nodes) - len(times)} of its BPU subgraphs")
    estimate = estimate_compiled(model, times)
    return BuildDescription(estimate, tuple(find_islands(model)), result.cpu_nodes, result.optimize_level)


def describe_check(result: compiler_pb2.CheckResult) -> explore_pb2.LatencySummary:
    """Describe what the checker said, without its figures: its build is not optimised, they predict nothing."""
    return explore_pb2.LatencySummary(
        bpu_subgraphs=result.bpu_subgraphs, cpu_nodes=result.cpu_nodes, optimize_level="checker"
    )


def otherwise_than_asked(result: compiler_pb2.CompileResult) -> list[toolchain_pb2.Finding]:
    """Return the findings that say that a node was built in another type or place than asked."""
    return [f for f in result.findings if f.code in ASKED_OTHERWISE]
