"""Build the report of a job as one JSON value: the truth that the HTML and the JUnit file are made from. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Final

from boardlift.v1 import artifact_pb2, job_pb2, toolchain_pb2

from boardlift_orchestrator.convert import failure_message
from boardlift_orchestrator.facts import VariantFacts
from boardlift_orchestrator.record import JobRecord, Stage
from boardlift_orchestrator.report.plain import plain

SCHEMA: Final = "boardlift.report/1"
KINDS: Final = {
    "measured": "taken on the real thing: the real file, the real runtime, the real board",
    "estimated": "computed by the vendor's static model or a published relation; nothing ran",
    "simulated": "taken on a stand-in: the vendor's simulator or a simulated board",
}


def build_report(
    job: JobRecord, spec: job_pb2.JobSpec, variants: Sequence[VariantFacts], verdict: job_pb2.Verdict, now: float
) -> dict[str, Any]:
    """Return the report.

    Args:
        job: The job's record.
        spec: What it was to do.
        variants: What was found out about each variant.
        verdict: The verdict.
        now: When the report is made, in seconds since the epoch.
    """
    first = variants[0]
    judged = {item.variant: item for item in verdict.variants}
    return {
        "schema": SCHEMA,
        "made": _time(now),
        "kinds": KINDS,
        "job": _job(job, spec),
        "verdict": plain(verdict, leave_out=("variants",)),
        "model": plain(first.ingest.model_summary) if first.ingest is not None else None,
        "dataset": _dataset(spec, first),
        "variants": [_variant(facts, judged[facts.name], spec) for facts in variants],
        "stages": [_stage(stage) for stage in job.stages if stage.stage != "verdict"],
        "tools": _tools(variants),
        "reproduce": shlex.join(list(spec.command) or ["boardlift", "jobs", "clone", job.id]),
    }


def name_compiled(spec: job_pb2.JobSpec, variant: str) -> str:
    """Return the file name of a variant's compiled model."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", spec.model_name.rpartition("/")[2].removesuffix(".onnx")).strip("_")
    return f"{stem[:60] or 'model'}_{variant}.bin"


def _job(job: JobRecord, spec: job_pb2.JobSpec) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "owner": job.owner,
        "created": _time(job.created),
        "started": _time(job.started),
        "target": spec.target,
        "goal": spec.goal or "latency",
        "model_name": spec.model_name,
        "model": plain(spec.model.artifact),
        "dataset": plain(spec.dataset),
        "spec": plain(spec, leave_out=("model", "dataset", "command")),
        "spec_sha256": job.spec.sha256,
        "board_left_out": spec.skip_board,
    }


def _dataset(spec: job_pb2.JobSpec, facts: VariantFacts) -> dict[str, Any]:
    ingest = facts.ingest
    if ingest is None:
        return {"sha256": spec.dataset.sha256}
    try:
        provenance = json.loads(ingest.provenance_json or "null", parse_constant=str)
    except ValueError:
        provenance = ingest.provenance_json
    return {
        "sha256": spec.dataset.sha256,
        "calibration_samples": ingest.calibration_samples,
        "heldout_samples": ingest.heldout_samples,
        "provenance": provenance,
        "findings": [plain(finding) for finding in ingest.findings],
    }


def _variant(facts: VariantFacts, judged: job_pb2.VariantVerdict, spec: job_pb2.JobSpec) -> dict[str, Any]:
    failed = facts.failed
    return {
        "name": facts.name,
        "preset": facts.spec.preset,
        "spec": plain(facts.spec),
        "outcome": plain(judged)["outcome"],
        "reasons": list(judged.reasons),
        "gates": [plain(gate) for gate in judged.gates],
        "figures": [plain(figure) for figure in judged.figures],
        "failure": {"stage": failed[0].stage, **plain(failure_message(failed[1]))} if failed else None,
        "findings": [{"stage": stage, **plain(finding)} for stage, finding in facts.findings()],
        "transform": _transform(facts),
        "check": plain(facts.check, leave_out=("findings", "failure")),
        "compile": _compile(facts, spec),
        "simulate": plain(facts.simulated, leave_out=("findings", "failure")),
        "board": _board(facts),
    }


def _transform(facts: VariantFacts) -> dict[str, Any] | None:
    return plain(facts.transform, leave_out=("findings", "failure"))  # type: ignore[no-any-return]


def _compile(facts: VariantFacts, spec: job_pb2.JobSpec) -> dict[str, Any] | None:
    compiled = facts.compiled
    if compiled is None:
        return None
    values: dict[str, Any] = plain(compiled, leave_out=("findings", "failure"))
    values["bpu_subgraphs"] = count_subgraphs(compiled)
    values["command"] = shlex.join(compiled.command)
    if compiled.HasField("compiled_model"):
        values["compiled_model"] = _named(name_compiled(spec, facts.name), compiled.compiled_model)
    return values


def count_subgraphs(compiled: Any) -> int:
    """Return the number of BPU subgraphs of a compiled model: from the node table, else from the static estimate."""
    numbers = {node.subgraph for node in compiled.nodes if node.device == "BPU" and node.subgraph >= 0}
    return max(len(numbers), len(compiled.subgraphs))


def _board(facts: VariantFacts) -> dict[str, Any] | None:
    if facts.board is None:
        return None
    values: dict[str, Any] = plain(facts.board, leave_out=("findings", "failure"))
    values["simulated"] = facts.board.board.simulated
    return values


def _named(name: str, artifact: artifact_pb2.ArtifactRef) -> dict[str, Any]:
    return {"name": name, **plain(artifact)}


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "stage": stage.stage,
        "variant": stage.variant,
        "state": stage.state.value,
        "attempt": stage.attempt,
        "worker": stage.worker,
        "cached": stage.cached,
        "start": _time(stage.start),
        "end": _time(stage.end),
        "start_s": stage.start,
        "end_s": stage.end,
        "result_sha256": stage.result.sha256 if stage.result else None,
        "failure": plain(failure_message(stage.failure)) if stage.failure else None,
    }


def _tools(variants: Sequence[VariantFacts]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for facts in variants:
        for result in (facts.transform, facts.check, facts.compiled, facts.simulated, facts.board):
            tools: Sequence[toolchain_pb2.ToolchainInfo] = result.execution.tools if result is not None else ()
            for tool in tools:
                found.setdefault((tool.name, tool.version), plain(tool))
    return [dict(found[key]) for key in sorted(found)]


def _time(seconds: float) -> str | None:
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
