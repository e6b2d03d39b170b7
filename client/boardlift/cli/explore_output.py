"""Print what the compiler found out about a model: estimates, layers, candidates, remedies."""

from __future__ import annotations

from collections.abc import Iterable

from boardlift import _convert
from boardlift._render import figure_text
from boardlift.cli.output import Output, seconds_text
from boardlift.cli.stage_output import print_findings
from boardlift.v1 import explore_pb2, toolchain_pb2

LATENCY = ("BPU us", "handover us", "board ms")
"""Headers of `latency_cells`; every one is an estimate."""


def figure_of(figures: Iterable[toolchain_pb2.Figure], name: str) -> toolchain_pb2.Figure | None:
    """Return a figure by name."""
    return next((f for f in figures if f.name == name), None)


def number(figures: Iterable[toolchain_pb2.Figure], name: str, digits: int) -> str:
    """Return a figure's value as text; empty when absent."""
    found = figure_of(figures, name)
    return f"{found.value:.{digits}f}" if found is not None else ""


def latency_cells(latency: explore_pb2.LatencySummary) -> tuple[str, str, str]:
    """Return the cells of LATENCY."""
    figures = latency.figures
    return number(figures, "bpu_us", 1), number(figures, "handover_us", 1), number(figures, "board_ms", 3)


def print_estimate(output: Output, answer: explore_pb2.EstimateLatencyResponse) -> None:
    """Print an estimate with the relation and where it ends."""
    rows = [
        (s.name, number(s.figures, "estimated_latency_us", 1), number(s.figures, "ddr_bytes", 0))
        for s in answer.subgraphs
    ]
    output.table(("BPU subgraph", "us, estimated", "DDR bytes per frame, estimated"), rows)
    output.line()
    for figure in answer.figures:
        output.line(f"{figure.name}: {figure_text(_convert.to_figure(figure))} ({figure.source})")
    print_islands(output, answer.islands)
    output.line(f"relation: {answer.relation}")
    print_findings(output, answer.findings)


def print_sensitivity(output: Output, result: explore_pb2.SensitivityResult, most: int) -> None:
    """Print layers, most sensitive first, and the plans."""
    rows = [
        (
            layer.node,
            layer.type,
            number(layer.single_int8, "rmse", 6),
            number(layer.single_int16, "rmse", 6),
            number(layer.cumulative, "cosine", 6),
            f"{layer.int16_cost_us:.1f}" if layer.HasField("int16_cost_us") else "",
            "int16" if layer.suggested_int16 else "",
        )
        for layer in list(result.layers)[: most or None]
    ]
    output.line(f"Simulated on {result.samples} held-out samples; costs are estimated.")
    headers = ("layer", "type", "rmse alone, int8", "rmse alone, int16", "cosine here, all int8", "int16 costs us")
    output.table((*headers, "plan"), rows)
    if most and len(result.layers) > most:
        output.line(f"{len(result.layers) - most} more layers; --all lists them")
    output.line()
    names = ("int8", "int16", "mixed")
    plans = [
        (name, *_plan_cells(plan), *latency_cells(plan.latency), str(plan.latency.bpu_subgraphs or ""))
        for name, plan in zip(names, result.plans)  # noqa: B905  # the third is absent when no plan reaches the target
    ]
    # Without a target nothing can be reached; plans are then judged by how near they come to int16 (a finding says it).
    judged = "near int16" if result.target_implied else "reaches target"
    output.table(("plan", "emulated", "proven", judged, *LATENCY, "subgraphs"), plans)
    if result.HasField("suggested"):
        words = " ".join(result.suggested.variant.calibration.optimization)
        output.line(f"suggested, in int16: {', '.join(result.suggested.int16_nodes) or words or 'nothing'}")
        _print_variant(output, result.suggested)
    print_findings(output, result.findings)


def _print_variant(output: Output, plan: explore_pb2.MixedPlan) -> None:
    """Print a mixed plan as `boardlift run` and `boardlift compile` take it."""
    nodes = list(plan.int16_nodes)
    if nodes and not any(set(name) & set(",;='") for name in nodes):
        method = plan.variant.calibration.method or "max"
        output.line(f"to build it: --variant 'mixed-plan=int8,calibration={method},int16={';'.join(nodes)}'")


def _plan_cells(plan: explore_pb2.MixedPlan) -> tuple[str, str, str]:
    proven = f"{plan.proven.value:.6f}" if plan.HasField("proven") else ""
    return f"{plan.emulated.name} {plan.emulated.value:.6f}", proven, "yes" if plan.reaches_target else "no"


def print_search(output: Output, result: explore_pb2.SearchResult) -> None:
    """Print rounds and candidates; the Pareto front is marked with a star."""
    rounds = [
        (
            str(position + 1),
            r.optimize_level,
            str(r.candidates),
            str(r.calibration_samples),
            str(r.heldout_samples),
            seconds_text(r.predicted_seconds),
            "" if result.dry_run else seconds_text(r.seconds),
            str(r.reused),
        )
        for position, r in enumerate(result.rounds)
    ]
    headers = ("round", "level", "candidates", "calibration", "held out", "predicted", "took", "from store")
    output.table(headers, rounds)
    guess = "" if result.prediction_known else " (a guess: nothing of this size has run here yet)"
    output.line(f"Predicted: {seconds_text(result.predicted_seconds)}{guess}")
    output.line()
    if result.dry_run:
        output.table(("candidate",), [(c.name,) for c in result.candidates])
        return
    rows = [
        (
            "*" if c.pareto else "",
            c.name,
            f"{c.metric.value:.6f}" if c.HasField("metric") else "",
            str(c.samples or ""),
            *latency_cells(c.latency),
            str(c.latency.bpu_subgraphs or ""),
            c.latency.optimize_level,
            c.failure.code or c.outcome,
        )
        for c in result.candidates
    ]
    metric = next((c.metric.name for c in result.candidates if c.HasField("metric")), "metric")
    output.line("Latency is estimated, accuracy simulated on held-out samples. Pareto front: *")
    output.table(("", "candidate", metric, "samples", *LATENCY, "subgraphs", "level", "outcome"), rows)
    output.line(f"best: {result.best or 'none reaches the target'}")
    print_findings(output, result.findings)


def print_islands(output: Output, islands: Iterable[explore_pb2.CpuIsland]) -> None:
    """Print runs of CPU operators with what leaving the BPU for them costs."""
    for island in islands:
        cost, low, high = (
            number(island.figures, name, 0) for name in ("handover_us", "handover_low_us", "handover_high_us")
        )
        place = (
            f"splits the BPU, about {cost} us a frame ({low} to {high}, estimated)"
            if island.splits
            else "at an end of the model, no handover"
        )
        output.line(f"CPU island, {place}: {', '.join(island.nodes)}")


def print_remedies(output: Output, result: explore_pb2.RemedyResult) -> None:
    """Print CPU nodes with reasons, islands with their cost, and remedies, tried ones by gain."""
    if result.cpu_nodes:
        nodes = [(n.node, n.type, n.reason, ", ".join(n.remedies)) for n in result.cpu_nodes]
        output.table(("on the CPU", "type", "why", "remedies"), nodes)
        output.line()
        print_islands(output, result.islands)
    else:
        output.line("No node runs on the CPU.")
    if result.remedies:
        output.line()
        base = latency_cells(result.baseline)
        as_it_is = ("as it is", "", "", *base, str(result.baseline.bpu_subgraphs), "")
        rows = [as_it_is, *(_remedy_row(remedy, result) for remedy in result.remedies)]
        output.table(("remedy", "kind", "gain us, estimated", *LATENCY, "subgraphs", ""), rows)
        for remedy in result.remedies:
            if "+" not in remedy.name:  # the parts of a combination have lines of their own
                output.line(f"{remedy.name}: {remedy.message}")
    print_findings(output, result.findings)


def _remedy_row(remedy: explore_pb2.Remedy, result: explore_pb2.RemedyResult) -> tuple[str, ...]:
    gain = f"{remedy.gain_us:+.0f}" if remedy.HasField("gain_us") else ""
    idle = any(f.code == "PASS_CHANGES_NOTHING" and f.subject == remedy.transform_pass for f in result.findings)
    state = remedy.failure.code or ("" if remedy.tried else "changes nothing" if idle else "not tried")
    subgraphs = str(remedy.latency.bpu_subgraphs or "")
    return remedy.name, remedy.kind, gain, *latency_cells(remedy.latency), subgraphs, state
