"""Our types <-> protobuf messages. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from boardlift.errors import InvalidInputError
from boardlift.v1 import artifact_pb2, board_agent_pb2, toolchain_pb2

from boardlift_board_agent import __version__
from boardlift_board_agent.compare_outputs import OutputDifference
from boardlift_board_agent.failures import ModelRefused
from boardlift_board_agent.health import Fact
from boardlift_board_agent.hrt_model_exec import MAX_THREADS
from boardlift_board_agent.measure_latency import LatencyPlan, Measurement
from boardlift_board_agent.parse_report import Header
from boardlift_board_agent.probe import BoardFacts
from boardlift_board_agent.statistics import LatencyStatistics
from boardlift_board_agent.tensor_spec import TensorSpec
from boardlift_board_agent.three_way import Divergence
from boardlift_board_agent.watch_board import Snapshot

MEASURED = toolchain_pb2.FIGURE_KIND_MEASURED
ESTIMATED = toolchain_pb2.FIGURE_KIND_ESTIMATED
SIMULATED = toolchain_pb2.FIGURE_KIND_SIMULATED
_SEVERITY = {
    "note": toolchain_pb2.Finding.SEVERITY_NOTE,
    "warning": toolchain_pb2.Finding.SEVERITY_WARNING,
    "error": toolchain_pb2.Finding.SEVERITY_ERROR,
}
_READINGS = (
    ("cpu_temperature", "cpu_c", "C"),
    ("bpu_temperature", "bpu_c", "C"),
    ("ddr_temperature", "ddr_c", "C"),
    ("cpu_clock", "cpu_mhz", "MHz"),
    ("cpu_clock_max", "cpu_max_mhz", "MHz"),
    ("bpu_clock", "bpu_mhz", "MHz"),
    ("bpu_clock_max", "bpu_max_mhz", "MHz"),
    ("bpu_load", "bpu_ratio", "%"),
    ("load1", "load1", "1"),
    ("memory_free_bytes", "memory_free_bytes", "bytes"),
    ("cma_free_bytes", "cma_free_bytes", "bytes"),
    ("disk_free_bytes", "disk_free_bytes", "bytes"),
)


def figure(name: str, value: float, unit: str, simulated: bool, source: str) -> toolchain_pb2.Figure:
    """One number that a board gave."""
    kind = SIMULATED if simulated else MEASURED
    return toolchain_pb2.Figure(name=name, value=value, unit=unit, kind=kind, source=source)


def finding(code: str, severity: str, message: str, subject: str = "", remedy: str = "") -> toolchain_pb2.Finding:
    """One finding."""
    return toolchain_pb2.Finding(
        code=code, severity=_SEVERITY[severity], message=message, subject=subject, remedy=remedy
    )


def fact_to_finding(fact: Fact) -> toolchain_pb2.Finding:
    """A health fact; blocking ones are errors."""
    return finding(fact.code, "error" if fact.blocking else "note", fact.message, "board", fact.remedy)


def divergence_to_finding(item: Divergence) -> toolchain_pb2.Finding:
    """Where the answers part."""
    return finding(item.code, item.severity, item.message, item.subject, item.remedy)


def state_message(snapshot: Snapshot, busy_job: str, simulated: bool) -> board_agent_pb2.BoardState:
    """How the board is; readings that are absent are left out."""
    state = board_agent_pb2.BoardState(
        in_rotation=snapshot.in_rotation,
        findings=[fact_to_finding(fact) for fact in snapshot.facts],
        busy_job=busy_job,
        governor=snapshot.reading.governor or "",
        bpu_governor=snapshot.reading.bpu_governor or "",
    )
    state.observe_time.GetCurrentTime()
    for name, field, unit in _READINGS:
        value = getattr(snapshot.reading, field)
        if value is not None:
            state.figures.append(figure(name, float(value), unit, simulated, "board"))
    return state


def info_message(
    facts: BoardFacts,
    version: Header | None,
    board_id: str,
    target: str,
    labels: Mapping[str, str],
    boot_id: str,
    capabilities: tuple[str, ...],
) -> board_agent_pb2.BoardInfo:
    """What the board is."""
    info = board_agent_pb2.BoardInfo(
        id=board_id,
        target=target,
        simulated=facts.simulated or (version is not None and version.simulated),
        model=facts.model or "",
        soc=facts.soc or "",
        serial_hash=facts.serial_hash or "",
        os_version=facts.os_version or "",
        labels=dict(labels),
        memory_bytes=facts.memory_bytes or 0,
        capabilities=capabilities,
        absent=facts.absent,
        boot_id=boot_id,
        agent_version=__version__,
    )
    if version is not None:
        for name, value in (("dnn", version.dnn), ("hbrt", version.hbrt), ("bpu_platform", version.bpu_platform)):
            if value:
                info.versions[name] = value
        info.versions["hrt_model_exec"] = version.dnn or "present"
    return info


def tensor_message(spec: TensorSpec) -> board_agent_pb2.BoardTensor:
    """Facts about a tensor."""
    return board_agent_pb2.BoardTensor(
        name=spec.name,
        input=spec.input,
        source=spec.source.replace("HB_DNN_INPUT_FROM_", ""),
        valid_shape=spec.valid,
        aligned_shape=spec.aligned,
        aligned_size_bytes=spec.size_bytes,
        type=spec.type,
        layout=spec.layout,
        quantization=spec.quantization,
        stride_bytes=spec.stride,
        scale=spec.scale,
        quantize_axis=spec.axis,
    )


def comparison_message(item: OutputDifference, simulated: bool, source: str) -> toolchain_pb2.OutputComparison:
    """Figures of one output; only the infinite sqnr_db of equal outputs is left out, as it is no error."""
    units = {"sqnr_db": "dB"}
    figures = [
        figure(name, value, units.get(name, "1"), simulated, source)
        for name, value in item.figures.items()
        if (name, value) != ("sqnr_db", math.inf)
    ]
    return toolchain_pb2.OutputComparison(
        output=item.output, samples=item.samples, figures=figures, worst_sample=item.worst_sample
    )


def statistics_figures(s: LatencyStatistics, simulated: bool, source: str) -> list[toolchain_pb2.Figure]:
    """Percentiles and the rest."""
    values = {
        "p50_ms": s.p50_ms,
        "p90_ms": s.p90_ms,
        "p99_ms": s.p99_ms,
        "p999_ms": s.p999_ms,
        "mean_ms": s.mean_ms,
        "min_ms": s.min_ms,
        "max_ms": s.max_ms,
        "jitter_ms": s.jitter_ms,
        "deviation_ms": s.deviation_ms,
        "ci_low_ms": s.ci_low_ms,
        "ci_high_ms": s.ci_high_ms,
    }
    found = [figure(name, value, "ms", simulated, source) for name, value in values.items()]
    return [*found, figure("drift", s.drift, "1", simulated, source)]


def latency_message(
    item: Measurement, simulated: bool, raw: artifact_pb2.ArtifactRef | None
) -> board_agent_pb2.LatencyResult:
    """One thread count; percentiles only where single frames were timed."""
    tool = "hrt_model_exec perf"
    figures = [figure("fps", item.report.fps, "fps", simulated, tool)]
    frames = item.report.frames
    if item.statistics is not None:
        frames = item.statistics.count
        figures += statistics_figures(item.statistics, simulated, "per-frame sampler")
        figures.append(figure("tool_mean_ms", item.report.mean_ms, "ms", simulated, tool))
    else:
        figures.append(figure("mean_ms", item.report.mean_ms, "ms", simulated, tool))
        for name, value in (("min_ms", item.report.min_ms), ("max_ms", item.report.max_ms)):
            if value is not None:
                figures.append(figure(name, value, "ms", simulated, tool))
    return board_agent_pb2.LatencyResult(
        threads=item.threads,
        frames=frames,
        figures=figures,
        stable=item.statistics is not None and item.statistics.stable,
        raw_samples=raw,
    )


def refusal_message(refused: ModelRefused) -> toolchain_pb2.StageFailure:
    """The runtime said no."""
    return toolchain_pb2.StageFailure(
        code=refused.code,
        message=refused.message,
        remedy=refused.remedy,
        evidence=refused.evidence,
        user_fault=True,
        exit_code=refused.exit_code,
    )


def in_range(field: str, value: float, low: float, high: float, unit: str = "") -> None:
    """Pass a number of a request that lies within its bounds; never trim it, or the result would be of another request.

    Args:
        field: its name in the request.
        value: as given, or the default when it was left at 0.
        low: smallest that is taken.
        high: largest.
        unit: for the message.

    Raises:
        InvalidInputError: REQUEST_OUT_OF_RANGE with the field; for what is no number, too.
    """
    if not low <= value <= high:
        raise InvalidInputError(
            f"{field} is {value:g}; it must lie between {low:g} and {high:g}{unit and ' ' + unit}.",
            reason="REQUEST_OUT_OF_RANGE",
            remedy=f"Correct {field}, or leave it out for the default.",
            metadata={"field": field},
        )


def plan_from(spec: board_agent_pb2.PerfSpec) -> LatencyPlan:
    """How to measure, defaults filled in.

    Raises:
        InvalidInputError: REQUEST_OUT_OF_RANGE.
    """
    limit = spec.limit_duration.ToNanoseconds() / 1e9 if spec.HasField("limit_duration") else 60.0
    sustained = spec.sustained_duration.ToNanoseconds() / 1e9 if spec.HasField("sustained_duration") else 0.0
    plan = LatencyPlan(
        warmup_frames=spec.warmup_frames or 50,
        frames=spec.frames or 1000,
        threads=tuple(sorted(set(spec.threads))) or (1, 2),
        limit_s=limit,
        sustained_s=sustained,
    )
    in_range("perf.warmup_frames", plan.warmup_frames, 1, 100_000)
    in_range("perf.frames", plan.frames, 1, 1_000_000)
    for threads in plan.threads:
        in_range("perf.threads", threads, 1, MAX_THREADS)
    in_range("perf.limit_duration", limit, 1, 3600, "s")
    in_range("perf.sustained_duration", sustained, 0, 3600, "s")
    return plan
