"""Play one job: stages one after the other, then the verdict and the report."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from boardlift.message_json import message_to_plain
from boardlift.testing.artifacts import ArtifactServicer
from boardlift.testing.scenario import SOURCE, Scenario
from boardlift.v1 import job_pb2, toolchain_pb2

if TYPE_CHECKING:
    from boardlift.testing.jobs import FakeJob

_STAGE = job_pb2.StageRecord
_OUTCOME = job_pb2.Verdict
_UNITS = {"estimated_latency_us": "us", "board_p99_ms": "ms"}


class Player:
    """Moves one job through a scenario."""

    def __init__(self, fake: FakeJob, scenario: Scenario, artifacts: ArtifactServicer) -> None:
        """Play `scenario` on a job."""
        self._fake = fake
        self._job = fake.job
        self._scenario = scenario
        self._artifacts = artifacts

    def run(self) -> None:
        """Play to the end."""
        variants = [variant.name for variant in self._job.spec.variants]
        plan = [(stage, "") for stage in ("ingest", "transform", "check")]
        per_variant = ["compile", "simulate"] + ([] if self._job.spec.skip_board else ["board"])
        plan += [(stage, variant) for variant in variants for stage in per_variant] + [("verdict", "")]
        self._job.stages.extend(_STAGE(stage=s, variant=v, state=_STAGE.STATE_WAITING, attempt=1) for s, v in plan)
        self._job.state = job_pb2.Job.STATE_RUNNING
        self._job.start_time.GetCurrentTime()
        self._fake.emit(job=self._job)
        for record in self._job.stages:
            if not self._play_stage(record):
                return
        self._job.verdict.CopyFrom(self._judge())
        self._add_files()
        self._end(job_pb2.Job.STATE_SUCCEEDED)

    def _play_stage(self, record: job_pb2.StageRecord) -> bool:
        script = self._scenario.script(record.stage, record.variant)
        record.state = _STAGE.STATE_RUNNING
        record.worker = SOURCE
        record.start_time.GetCurrentTime()
        where = {"stage": record.stage, "variant": record.variant}
        self._fake.emit(job=self._job, **where)
        for line in script.lines:
            self._fake.emit(log=toolchain_pb2.LogLine(text=line, source="stdout"), **where)
        for position, step in enumerate(script.steps):
            progress = toolchain_pb2.Progress(step=step, fraction=position / len(script.steps))
            progress.remaining_duration.FromMilliseconds(
                int(1000 * self._scenario.step_s * (len(script.steps) - position))
            )
            self._fake.emit(progress=progress, **where)
            if self._fake.stop.wait(self._scenario.step_s) or self._fake.stop.is_set():
                record.state = _STAGE.STATE_CANCELLED
                self._end(job_pb2.Job.STATE_CANCELLED)
                return False
        record.cached = script.cached
        record.end_time.GetCurrentTime()
        if not script.failure_code:
            record.state = _STAGE.STATE_SUCCEEDED
            self._fake.emit(job=self._job, **where)
            return True
        record.state = _STAGE.STATE_FAILED
        record.failure.CopyFrom(
            toolchain_pb2.StageFailure(
                code=script.failure_code,
                message=script.failure_message,
                subject="node_1",
                remedy="Change the scenario.",
                user_fault=script.user_fault,
            )
        )
        self._job.error.CopyFrom(record.failure)
        self._end(job_pb2.Job.STATE_FAILED)
        return False

    def _judge(self) -> job_pb2.Verdict:
        verdicts = [self._judge_variant(variant.name) for variant in self._job.spec.variants]
        passing = [verdict.variant for verdict in verdicts if verdict.outcome == _OUTCOME.OUTCOME_PASS]
        worst = _OUTCOME.OUTCOME_PASS if passing else max(verdict.outcome for verdict in verdicts)
        reasons = [f"{verdict.variant}: {reason}" for verdict in verdicts for reason in verdict.reasons]
        return job_pb2.Verdict(
            outcome=worst, reasons=reasons, best_variant=passing[0] if passing else "", variants=verdicts
        )

    def _judge_variant(self, name: str) -> job_pb2.VariantVerdict:
        results = [self._judge_gate(name, gate) for gate in self._job.spec.gates]
        outcomes = [result.outcome for result in results] or [_OUTCOME.OUTCOME_PASS]
        figures = [self._figure(metric, value) for metric, value in self._values(name).items()]
        reasons = [result.reason for result in results if result.outcome != _OUTCOME.OUTCOME_PASS]
        return job_pb2.VariantVerdict(
            variant=name, outcome=max(outcomes, key=_badness), gates=results, figures=figures, reasons=reasons
        )

    def _judge_gate(self, variant: str, gate: job_pb2.Gate) -> job_pb2.GateResult:
        value = self._scenario.value(variant, gate.metric)
        if value is None:
            return job_pb2.GateResult(
                gate=gate, outcome=_OUTCOME.OUTCOME_UNDECIDED, reason=f"there is no {gate.metric}"
            )
        low = not gate.HasField("minimum") or value >= gate.minimum
        high = not gate.HasField("maximum") or value <= gate.maximum
        outcome = _OUTCOME.OUTCOME_PASS if low and high else _OUTCOME.OUTCOME_FAIL
        reason = f"{gate.metric} {value:g} {'holds' if low and high else 'breaks'} its limit"
        figure = self._figure(gate.metric, value)
        return job_pb2.GateResult(gate=gate, figure=figure, outcome=outcome, reason=reason, subject=gate.output)

    def _values(self, variant: str) -> dict[str, float]:
        return dict(self._scenario.figures.get(variant, self._scenario.default_figures))

    def _figure(self, metric: str, value: float) -> toolchain_pb2.Figure:
        kind = toolchain_pb2.FIGURE_KIND_SIMULATED
        return toolchain_pb2.Figure(name=metric, value=value, unit=_UNITS.get(metric, "1"), kind=kind, source=SOURCE)

    def _add_files(self) -> None:
        report = {"job": self._job.id, "source": SOURCE, "verdict": message_to_plain(self._job.verdict)}
        files = {
            "report.json": (json.dumps(report).encode(), "application/json"),
            "report.html": (b"<!doctype html><title>made up</title>", "text/html"),
            "junit.xml": (b"<testsuites/>", "application/xml"),
        }
        files |= {f"{v.name}.bin": (f"made up {v.name}".encode(), "") for v in self._job.spec.variants}
        for name, (data, media_type) in files.items():
            self._job.artifacts.add(name=name, artifact=self._artifacts.put(data, media_type))

    def _end(self, state: job_pb2.Job.State) -> None:
        time.sleep(0)
        self._job.state = state
        self._job.end_time.GetCurrentTime()
        self._fake.emit(job=self._job)


def _badness(outcome: int) -> int:
    order = (_OUTCOME.OUTCOME_PASS, _OUTCOME.OUTCOME_UNDECIDED, _OUTCOME.OUTCOME_FAIL)
    return order.index(outcome)
