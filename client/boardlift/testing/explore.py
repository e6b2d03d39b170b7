"""`ExploreService` of the fake server, with made-up answers that say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from boardlift.testing.scenario import SOURCE
from boardlift.v1 import compiler_pb2, explore_pb2, explore_pb2_grpc, toolchain_pb2


def _figure(name: str, value: float, unit: str = "1") -> toolchain_pb2.Figure:
    kind = toolchain_pb2.FIGURE_KIND_SIMULATED
    return toolchain_pb2.Figure(name=name, value=value, unit=unit, kind=kind, source=SOURCE)


def _latency(bpu_us: float, subgraphs: int) -> explore_pb2.LatencySummary:
    handover = 484.0 * (subgraphs - 1)
    figures = [_figure("bpu_us", bpu_us, "us"), _figure("handover_us", handover, "us")]
    figures.append(_figure("board_ms", (bpu_us + handover) / 1000 + 0.27, "ms"))
    return explore_pb2.LatencySummary(
        figures=figures, bpu_subgraphs=subgraphs, cpu_nodes=subgraphs - 1, optimize_level="O2"
    )


class ExploreServicer(explore_pb2_grpc.ExploreServiceServicer):
    """Finds int8 split and int16 whole, whatever the model; `requests` holds what was asked."""

    def __init__(self) -> None:
        """Start with nothing asked."""
        self.requests: list[Any] = []

    def EstimateLatency(self, request: explore_pb2.EstimateLatencyRequest, context: grpc.ServicerContext) -> Any:
        """Estimate one subgraph."""
        self.requests.append(request)
        subgraph = compiler_pb2.SubgraphEstimate(
            name="main_graph_subgraph_0", figures=[_figure("estimated_latency_us", 64, "us")]
        )
        finding = toolchain_pb2.Finding(
            code="ESTIMATE_RANGE", severity=toolchain_pb2.Finding.SEVERITY_NOTE, message="Made up."
        )
        return explore_pb2.EstimateLatencyResponse(
            subgraphs=[subgraph],
            figures=_latency(64, 1).figures,
            islands=[explore_pb2.CpuIsland(nodes=["shape (Reshape)"])],
            relation="made up",
            findings=[finding],
        )

    def MeasureSensitivity(
        self, request: explore_pb2.MeasureSensitivityRequest, context: grpc.ServicerContext
    ) -> Iterator[Any]:
        """Find one layer worse than the other."""
        self.requests.append(request)
        layers = [
            explore_pb2.LayerSensitivity(
                node=name,
                type="Conv",
                model_node=name,
                single_int8=[_figure("rmse", error)],
                single_int16=[_figure("rmse", error / 10)],
                cumulative=[_figure("cosine", 1 - error)],
                int16_cost_us=2.0,
                suggested_int16=name == "Gemm_1",
            )
            for name, error in (("Gemm_1", 0.03), ("Gemm_0", 0.01))
        ]
        plans = [
            explore_pb2.MixedPlan(emulated=_figure("cosine", value), reaches_target=value > 0.99, int16_nodes=nodes)
            for value, nodes in ((0.98, []), (0.999, []), (0.995, ["Gemm_1"]))
        ]
        result = explore_pb2.SensitivityResult(layers=layers, plans=plans, suggested=plans[2], samples=16)
        result.target_implied = not request.goal.HasField("target")
        progress = toolchain_pb2.Progress(step="measure layers", fraction=0.5)
        yield explore_pb2.MeasureSensitivityResponse(sequence=1, progress=progress)
        yield explore_pb2.MeasureSensitivityResponse(sequence=2, result=result)

    def SearchVariants(
        self, request: explore_pb2.SearchVariantsRequest, context: grpc.ServicerContext
    ) -> Iterator[Any]:
        """Let int16 of the last form win."""
        self.requests.append(request)
        row = explore_pb2.SearchRound(
            optimize_level="O2", candidates=2, calibration_samples=8, heldout_samples=8, predicted_seconds=90
        )
        result = explore_pb2.SearchResult(rounds=[row], predicted_seconds=90, dry_run=request.dry_run)
        for form in request.forms:
            for plan, value, latency in (("int16", 0.999, _latency(117, 1)), ("int8", 0.98, _latency(95, 2))):
                candidate = result.candidates.add(name=f"{form.name}/{plan}/max", form=form.name)
                if not request.dry_run:
                    candidate.metric.CopyFrom(_figure("cosine", value))
                    candidate.latency.CopyFrom(latency)
                    candidate.outcome, candidate.pareto, candidate.samples = "finalist", plan == "int16", 8
        reaches = not request.goal.HasField("target") or request.goal.target <= 0.999
        result.best = f"{request.forms[-1].name}/int16/max" if reaches and not request.dry_run else ""
        yield explore_pb2.SearchVariantsResponse(sequence=1, result=result)

    def TryRemedies(self, request: explore_pb2.TryRemediesRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        """Name int16 and a transform pass as remedies."""
        self.requests.append(request)
        node = explore_pb2.CpuNode(node="Softmax_2", type="Softmax", reason="made up", remedies=["int16"])
        rewrite = explore_pb2.Remedy(name="softmax-on-last-axis", kind="transform", message="Move the axis.")
        rewrite.transform_pass = rewrite.name
        remedy = explore_pb2.Remedy(name="int16", kind="precision", nodes=["Softmax_2"], message="Run it in int16.")
        if request.try_remedies:
            remedy.tried, remedy.gain_us = True, -461.0
            remedy.latency.CopyFrom(_latency(117, 1))
        island = explore_pb2.CpuIsland(
            nodes=["Softmax_2 (Softmax)"], splits=True, figures=[_figure("handover_us", 484)]
        )
        result = explore_pb2.RemedyResult(
            cpu_nodes=[node], remedies=[remedy, rewrite], islands=[island], baseline=_latency(95, 2)
        )
        yield explore_pb2.TryRemediesResponse(sequence=1, result=result)
