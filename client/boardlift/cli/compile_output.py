"""Print what a compile made: placement, the vendor's own comparison, the estimate, silent fallbacks."""

from __future__ import annotations

from boardlift import _convert
from boardlift._render import figure_text
from boardlift.cli.output import Output, seconds_text, size_text
from boardlift.cli.stage_output import print_findings
from boardlift.v1 import compiler_pb2, toolchain_pb2

MOST = 40
"""Nodes that are listed without being asked for all."""


def print_compile(output: Output, result: compiler_pb2.CompileResult, every_node: bool) -> None:
    """Print a compiled model."""
    subgraphs = len(result.subgraphs)
    output.line(
        f"{result.bpu_nodes} nodes on the BPU in {subgraphs} subgraph(s), {result.cpu_nodes} on the CPU;"
        f" level {result.optimize_level}, calibration {result.chosen_method or 'as asked'},"
        f" {result.samples_read} samples"
    )
    if result.batch_fallback:
        output.line("The calibrator fell back to single samples, which takes 4 to 6 times longer.", "yellow")
    output.line()
    _print_nodes(output, result, every_node)
    if result.vendor_outputs:
        output.line("The tool's comparison with its own float run, one calibration sample; reported, not believed:")
        rows = [(o.output, f.name, *_cells(f)) for o in result.vendor_outputs for f in o.figures]
        output.table(("output", "figure", "value", "kind"), rows)
        output.line()
    estimates = [(s.name, f.name, *_cells(f)) for s in result.subgraphs for f in s.figures]
    estimates += [("whole model", f.name, *_cells(f)) for f in result.figures]
    if estimates:
        output.table(("subgraph", "figure", "value", "kind"), estimates)
        output.line()
    print_findings(output, result.findings)
    output.line(_provenance(result))


def _print_nodes(output: Output, result: compiler_pb2.CompileResult, every_node: bool) -> None:
    listed = list(result.nodes)
    if not every_node and len(listed) > MOST:
        worst = sorted((n for n in listed if n.HasField("cosine")), key=lambda n: n.cosine)[: MOST // 2]
        telling = {n.node for n in worst} | {n.node for n in listed if n.device != "BPU" or n.reason}
        listed = [n for n in listed if n.node in telling]
    rows = [
        (
            n.node,
            n.type,
            n.device + (f" {n.subgraph}" if n.device == "BPU" else ""),
            n.dtype,
            f"{n.cosine:.6f}" if n.HasField("cosine") else "",
            n.threshold,
            n.reason,
        )
        for n in listed
    ]
    if rows:
        output.table(("node", "type", "on", "as", "cosine, simulated", "threshold", "why"), rows)
    if len(listed) < len(result.nodes):
        output.line(f"{len(result.nodes) - len(listed)} more nodes, all as asked; --all lists them")
    if result.nodes:
        output.line()


def _provenance(result: compiler_pb2.CompileResult) -> str:
    execution = result.execution
    tools = ", ".join(f"{tool.name} {tool.version}" for tool in execution.tools)
    if execution.cached:
        return f"From the store, nothing ran; built with {tools}"
    took = sum(v for k, v in execution.step_seconds.items() if k == "tool_wall")
    memory = f", at most {size_text(execution.peak_memory_bytes)}" if execution.peak_memory_bytes else ""
    return f"Built with {tools}" + (f" in {seconds_text(took)}{memory}, measured" if took else "")


def _cells(figure: toolchain_pb2.Figure) -> tuple[str, str]:
    value, _, kind = figure_text(_convert.to_figure(figure)).rpartition(" ")
    return value, kind
