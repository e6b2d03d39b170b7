"""Protobuf messages -> models."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from boardlift import models
from boardlift.v1 import board_agent_pb2, job_pb2, toolchain_pb2
from boardlift.v1.artifact_pb2 import ArtifactRef


def word(enum: Any, number: int, prefix: str) -> str:
    """Return the plain word of an enum value; numbers of newer servers become "unknown"."""
    try:
        name: str = enum.Name(number)
    except ValueError:
        return "unknown"
    text = name.removeprefix(prefix).lower()
    return "" if text == "unspecified" else text


def to_time(message: Any, field: str) -> datetime | None:
    """Return a Timestamp field as an aware UTC datetime; None when absent."""
    if not message.HasField(field):
        return None
    value: datetime = getattr(message, field).ToDatetime(tzinfo=timezone.utc)
    return value


def to_artifact(ref: ArtifactRef, name: str = "") -> models.Artifact:
    """Convert an artifact reference."""
    return models.Artifact(ref.sha256, ref.size_bytes, ref.media_type, name)


def to_figure(figure: toolchain_pb2.Figure) -> models.Figure:
    """Convert a figure."""
    kind = word(toolchain_pb2.FigureKind, figure.kind, "FIGURE_KIND_")
    return models.Figure(figure.name, figure.value, figure.unit, kind, figure.source)


def to_failure(failure: toolchain_pb2.StageFailure) -> models.Failure:
    """Convert a failure."""
    return models.Failure(
        code=failure.code,
        message=failure.message,
        subject=failure.subject,
        remedy=failure.remedy,
        evidence=tuple(failure.evidence),
        user_fault=failure.user_fault,
        exit_code=failure.exit_code,
        transform_pass=failure.transform_pass,
        log=to_artifact(failure.log, "log") if failure.HasField("log") else None,
    )


def to_finding(finding: toolchain_pb2.Finding) -> models.Finding:
    """Convert a finding."""
    severity = word(toolchain_pb2.Finding.Severity, finding.severity, "SEVERITY_")
    return models.Finding(finding.code, severity, finding.message, finding.subject, finding.remedy)


def to_gate(gate: job_pb2.Gate) -> models.Gate:
    """Convert a gate."""
    return models.Gate(
        gate.metric,
        gate.minimum if gate.HasField("minimum") else None,
        gate.maximum if gate.HasField("maximum") else None,
        gate.output,
    )


def to_verdict(verdict: job_pb2.Verdict) -> models.Verdict:
    """Convert a verdict."""
    return models.Verdict(
        outcome=_outcome(verdict.outcome),
        reasons=tuple(verdict.reasons),
        best_variant=verdict.best_variant,
        variants=tuple(_to_variant(variant) for variant in verdict.variants),
        next_steps=tuple(verdict.next_steps),
    )


def to_stage(record: job_pb2.StageRecord) -> models.Stage:
    """Convert a stage record."""
    return models.Stage(
        stage=record.stage,
        variant=record.variant,
        state=word(job_pb2.StageRecord.State, record.state, "STATE_"),
        attempt=record.attempt,
        worker=record.worker,
        started=to_time(record, "start_time"),
        begun=to_time(record, "begin_time"),
        ended=to_time(record, "end_time"),
        cached=record.cached,
        failure=to_failure(record.failure) if record.HasField("failure") else None,
        result=to_artifact(record.result, record.stage) if record.HasField("result") else None,
        note=record.note,
    )


def to_job(job: job_pb2.Job) -> models.JobInfo:
    """Convert a job."""
    return models.JobInfo(
        id=job.id,
        state=word(job_pb2.Job.State, job.state, "STATE_"),
        name=job.spec.display_name,
        model_name=job.spec.model_name,
        target=job.spec.target,
        variants=tuple(variant.name for variant in job.spec.variants),
        stages=tuple(to_stage(record) for record in job.stages),
        verdict=to_verdict(job.verdict) if job.HasField("verdict") else None,
        error=to_failure(job.error) if job.HasField("error") else None,
        created=to_time(job, "create_time"),
        started=to_time(job, "start_time"),
        ended=to_time(job, "end_time"),
        artifacts=tuple(to_artifact(item.artifact, item.name) for item in job.artifacts),
        owner=job.owner,
        command=tuple(job.spec.command),
        submitter=job.submitter,
        waiting_turn=job.waiting_turn,
        model=to_artifact(job.spec.model.artifact, job.spec.model_name) if job.spec.HasField("model") else None,
        dataset=to_artifact(job.spec.dataset, "dataset") if job.spec.HasField("dataset") else None,
    )


def to_plan(plan: job_pb2.PlanJobResponse) -> models.JobPlan:
    """Convert the plan of a job."""
    return models.JobPlan(
        stages=tuple(_to_stage_plan(stage) for stage in plan.stages),
        boards_online=plan.boards_online,
        boards_free=plan.boards_free,
        board_stages_queued=plan.board_stages_queued,
        active_jobs=plan.active_jobs,
        waiting_jobs=plan.waiting_jobs,
        own_waiting_jobs=plan.own_waiting_jobs,
    )


def _to_stage_plan(stage: job_pb2.StagePlan) -> models.StagePlan:
    return models.StagePlan(
        stage=stage.stage,
        variant=stage.variant,
        answer=word(job_pb2.StagePlan.Answer, stage.answer, "ANSWER_"),
        duration=to_figure(stage.duration) if stage.HasField("duration") else None,
        past_runs=stage.past_runs,
        basis=stage.basis,
        failure=to_failure(stage.failure) if stage.HasField("failure") else None,
    )


def to_progress(progress: toolchain_pb2.Progress) -> models.Progress:
    """Convert a progress event."""
    remaining = progress.remaining_duration.ToTimedelta().total_seconds()
    return models.Progress(
        step=progress.step,
        fraction=progress.fraction,
        done=progress.done,
        total=progress.total,
        elapsed_s=progress.elapsed_duration.ToTimedelta().total_seconds(),
        remaining_s=remaining if progress.HasField("remaining_duration") else None,
    )


def to_event(event: job_pb2.WatchJobResponse) -> models.JobEvent:
    """Convert a job's event."""
    kind = event.WhichOneof("event")
    return models.JobEvent(
        sequence=event.sequence,
        time=to_time(event, "event_time"),
        stage=event.stage,
        variant=event.variant,
        job=to_job(event.job) if kind == "job" else None,
        progress=to_progress(event.progress) if kind == "progress" else None,
        log=models.LogLine(event.log.text, event.log.source) if kind == "log" else None,
    )


def to_board(board: job_pb2.Board) -> models.Board:
    """Convert a registered board."""
    info: board_agent_pb2.BoardInfo = board.info
    state: board_agent_pb2.BoardState = board.state
    return models.Board(
        id=info.id,
        target=info.target,
        simulated=info.simulated,
        online=board.online,
        in_rotation=state.in_rotation,
        mode="dial" if info.mode == board_agent_pb2.BoardInfo.MODE_DIAL else "pull",
        address=info.address,
        busy_job=state.busy_job,
        lease_holder=state.lease_holder,
        model=info.model,
        soc=info.soc,
        os_version=info.os_version,
        versions=dict(info.versions),
        labels=dict(info.labels),
        capabilities=tuple(info.capabilities),
        absent=tuple(info.absent),
        findings=tuple(to_finding(finding) for finding in state.findings),
        figures=tuple(to_figure(figure) for figure in state.figures),
        memory_bytes=info.memory_bytes,
        last_seen=to_time(board, "last_seen_time"),
    )


def to_server_info(info: toolchain_pb2.GetServerInfoResponse) -> models.ServerInfo:
    """Convert a server's description."""
    tools = (models.Tool(t.name, t.version, dict(t.parts), t.simulated, t.known) for t in info.tools)
    findings = tuple(to_finding(finding) for finding in info.findings)
    return models.ServerInfo(
        info.name,
        info.version,
        tuple(tools),
        info.slots,
        info.busy_slots,
        findings,
        store=_to_store(info.store) if info.HasField("store") else None,
        server_time=to_time(info, "server_time"),
    )


def _to_store(store: toolchain_pb2.StoreInfo) -> models.StoreInfo:
    return models.StoreInfo(
        objects=store.objects,
        size_bytes=store.size_bytes,
        limit_bytes=store.limit_bytes,
        swept=to_time(store, "sweep_time"),
        freed_objects=store.freed_objects,
        freed_bytes=store.freed_bytes,
        removed_jobs=store.removed_jobs,
    )


def _outcome(number: int) -> str:
    return word(job_pb2.Verdict.Outcome, number, "OUTCOME_")


def _to_variant(variant: job_pb2.VariantVerdict) -> models.VariantVerdict:
    return models.VariantVerdict(
        variant=variant.variant,
        outcome=_outcome(variant.outcome),
        gates=tuple(_to_gate_result(result) for result in variant.gates),
        figures=tuple(to_figure(figure) for figure in variant.figures),
        reasons=tuple(variant.reasons),
    )


def _to_gate_result(result: job_pb2.GateResult) -> models.GateResult:
    return models.GateResult(
        gate=to_gate(result.gate),
        outcome=_outcome(result.outcome),
        figure=to_figure(result.figure) if result.HasField("figure") else None,
        reason=result.reason,
        subject=result.subject,
    )
