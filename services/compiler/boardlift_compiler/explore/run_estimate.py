"""Estimate a compiled model: ask the vendor's performance tool for its subgraphs and apply the published relation."""

from __future__ import annotations

import asyncio
import re

from boardlift.errors import InvalidInputError, UnavailableError
from boardlift.v1 import compiler_pb2, explore_pb2
from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.tool import ToolCommand, run_tool

from boardlift_compiler.convert import findings_to_wire, subgraph_to_wire
from boardlift_compiler.explore.convert import island_to_wire, latency_figures
from boardlift_compiler.explore.estimate import RELATION, estimate_compiled, find_islands, limits_of
from boardlift_compiler.parse_log import SubgraphLine
from boardlift_compiler.parse_reports import ReportError, SubgraphReport, parse_subgraph_report
from boardlift_compiler.read_bin import BinUnreadableError, CompiledModel, read_bin
from boardlift_compiler.run_folder import RunFolder, run_folder
from boardlift_compiler.run_stages import StageRunner
from boardlift_compiler.toolchain import tool_environment

TIMEOUT_S = 60.0
NODE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,200}")
"""Names of subgraphs: the vendor's tool makes files of them."""


def unreadable(why: str) -> InvalidInputError:
    """Return the refusal of a file that is no compiled model."""
    return InvalidInputError(
        f"This is not a compiled model: {why}.",
        reason="COMPILED_MODEL_UNREADABLE",
        remedy="Pass the .bin of a build.",
        metadata={"field": "compiled_model"},
    )


async def estimate_latency(
    request: explore_pb2.EstimateLatencyRequest, runner: StageRunner, store: ArtifactStore
) -> explore_pb2.EstimateLatencyResponse:
    """Estimate a compiled model.

    Raises:
        InvalidInputError: COMPILED_MODEL_UNREADABLE.
        UnavailableError: ESTIMATE_FAILED when the vendor's tool says nothing usable.
    """
    path = await store.fetch(request.compiled_model)
    try:
        model = await asyncio.to_thread(lambda: read_bin(path.read_bytes()))
    except BinUnreadableError as error:
        raise unreadable(str(error)) from error
    if not all(NODE_NAME.fullmatch(node.name) for node in model.bpu_nodes):
        raise unreadable("a subgraph has a name that no build makes")
    with run_folder(runner.work_root) as folder:
        reports = await _read_reports(model, runner, folder)
    source = f"hbdk-perf {runner.toolchain.parts.get('hbdk', '')}".strip()
    estimate = estimate_compiled(model, [r.latency_us for r in reports])
    response = explore_pb2.EstimateLatencyResponse(
        figures=latency_figures(estimate, source),
        islands=[island_to_wire(i) for i in find_islands(model)],
        relation=RELATION,
        findings=findings_to_wire([*limits_of(model, estimate), *runner.toolchain.findings]),
    )
    for report in reports:
        response.subgraphs.append(_report_to_wire(report, source))
    return response


def _report_to_wire(report: SubgraphReport, source: str) -> compiler_pb2.SubgraphEstimate:
    line = SubgraphLine(report.name, report.fps, report.latency_us, report.ddr_bytes, None)
    return subgraph_to_wire(line, report, source)


async def _read_reports(model: CompiledModel, runner: StageRunner, folder: RunFolder) -> list[SubgraphReport]:
    if not model.bpu_nodes:
        return []
    (folder.path / "code.hbm").write_bytes(model.code)
    (folder.path / "perf").mkdir()
    command = ToolCommand(
        [runner.toolchain.program("hbdk-perf"), "code.hbm", "-o", "perf"],
        cwd=folder.path,
        environment=tool_environment(runner.toolchain.root, folder),
        timeout_s=TIMEOUT_S,
    )
    ended = await run_tool(command)
    reports = {}
    for path in (folder.path / "perf").glob("*.json"):
        try:
            report = parse_subgraph_report(path.read_text(encoding="utf-8"))
        except (ReportError, OSError, UnicodeDecodeError):
            continue  # counted below: every subgraph must have a report
        reports[report.name] = report
    wanted = [n.name for n in model.bpu_nodes]
    if ended.exit_code or any(name not in reports for name in wanted):
        raise UnavailableError(
            "The vendor's performance tool gave no estimate for this model.",
            reason="ESTIMATE_FAILED",
            remedy="Compile it again; its performance report is made then too.",
            metadata={"exit_code": str(ended.exit_code), "last_line": (ended.last_lines or ("",))[-1][:200]},
        )
    return [reports[name] for name in wanted]
