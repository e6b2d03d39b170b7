"""The verdict stage: judge the job, write the report, store both. Queued like any stage, run by the orchestrator."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from boardlift.errors import NotFoundError
from boardlift.v1 import queue_pb2, toolchain_pb2
from boardlift_servicekit.stage_calls import Emit
from google.protobuf.message import Message

from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.facts import gather_facts
from boardlift_orchestrator.report.build import build_report, name_compiled
from boardlift_orchestrator.report.junit import write_junit
from boardlift_orchestrator.report.render import render_html
from boardlift_orchestrator.results import Results
from boardlift_orchestrator.verdict import judge_job


class ReportRunner:
    """Runs verdict stages."""

    def __init__(self, engine: Engine, results: Results) -> None:
        """Read jobs from `engine` and what their stages left from `results`."""
        self._engine = engine
        self._results = results

    async def run(self, task: queue_pb2.StageTask, emit: Emit) -> Message:
        """Make verdict and report of a job.

        Raises:
            NotFoundError: There is no such job.
        """
        job = await self._engine.read(task.job_id)
        if job is None:
            raise NotFoundError(
                f"There is no job {task.job_id}.", reason="JOB_NOT_FOUND", remedy="`boardlift jobs ls` lists the jobs."
            )
        spec = await self._results.spec(job)
        facts = gather_facts(job, spec, await self._results.all(job))
        await emit(toolchain_pb2.Progress(step="judge", fraction=0.2))
        verdict = judge_job(spec, facts)
        report = build_report(job, spec, facts, verdict, time.time())
        await emit(toolchain_pb2.Progress(step="write the report", fraction=0.5))
        files = await asyncio.to_thread(_write, report)
        made = queue_pb2.MakeReportResult(verdict=verdict)
        for name, data, media_type in files:
            stored = await self._results.store.put_bytes(data, media_type)
            made.artifacts.add(name=name, artifact=stored)
        for item in facts:
            if item.compiled is not None and item.compiled.HasField("compiled_model"):
                made.artifacts.add(name=name_compiled(spec, item.name), artifact=item.compiled.compiled_model)
        return made

    async def stop(self, task: queue_pb2.StageTask) -> None:
        """Do nothing: a report takes less than the time a cancel may."""


def _write(report: dict[str, Any]) -> list[tuple[str, bytes, str]]:
    return [
        ("report.json", json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False).encode(), "application/json"),
        ("report.html", render_html(report).encode(), "text/html"),
        ("junit.xml", write_junit(report), "application/xml"),
    ]
