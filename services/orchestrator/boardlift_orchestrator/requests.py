"""Build the call for a stage from the job's specification and the results of the stages before it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from boardlift.errors import InternalError
from boardlift.v1 import board_agent_pb2, compiler_pb2, job_pb2, queue_pb2, transform_pb2

from boardlift_orchestrator.plan_stages import normalised_inputs, transform_precision
from boardlift_orchestrator.record import JobRecord, Stage

RESULT_TYPES: Final[Mapping[str, Any]] = {
    "ingest": transform_pb2.PrepareDatasetResponse,
    "transform": transform_pb2.TransformResult,
    "check": compiler_pb2.CheckResult,
    "compile": compiler_pb2.CompileResult,
    "simulate": compiler_pb2.SimulateResult,
    "board": board_agent_pb2.RunResult,
    "verdict": queue_pb2.MakeReportResult,
}
"""Type of each stage's whole result."""
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "ingest": (),
    "transform": ("ingest",),
    "check": ("transform",),
    "compile": ("transform",),
    "simulate": ("transform", "compile"),
    "board": ("transform", "compile", "simulate"),
    "verdict": (),
}


def needed_results(job: JobRecord, stage: Stage) -> dict[str, Stage]:
    """Return the stages whose results a stage's request is made from, by stage name."""
    found = {}
    for name in _NEEDS[stage.stage]:
        variant = stage.variant
        if name == "ingest":
            variant = ""
        elif name == "transform" and stage.stage not in ("transform", "check"):
            variant = job.classes[stage.variant]
        source = job.find(name, variant)
        if source is None or source.result is None:
            raise InternalError(f"The stage {stage.key} needs a result of {name}, and there is none.")
        found[name] = source
    return found


def build_task(job: JobRecord, stage: Stage, spec: job_pb2.JobSpec, results: Mapping[str, Any]) -> queue_pb2.StageTask:
    """Return the queue message for the current attempt of a stage.

    Args:
        job: The job's record.
        stage: The stage.
        spec: What the job is to do; the model must be an artifact.
        results: Parsed results of `needed_results`.
    """
    task = queue_pb2.StageTask(job_id=job.id, stage=stage.stage, variant=stage.variant, attempt=stage.attempt)
    task.deadline_time.FromNanoseconds(int(job.deadline * 1e9))
    build = _BUILDERS[stage.stage]
    getattr(task, stage.stage).CopyFrom(build(job, stage, spec, results))
    return task


def find_variant(spec: job_pb2.JobSpec, name: str) -> compiler_pb2.VariantSpec:
    """Return a variant of the specification by name."""
    return next(variant for variant in spec.variants if variant.name == name)


def _ingest(job: JobRecord, stage: Stage, spec: job_pb2.JobSpec, results: Mapping[str, Any]) -> Any:
    frozen = sorted(spec.transform.frozen_inputs)
    return transform_pb2.PrepareDatasetRequest(
        model=spec.model, dataset=spec.dataset, split=spec.split, frozen_inputs=frozen
    )


def _transform(job: JobRecord, stage: Stage, spec: job_pb2.JobSpec, results: Mapping[str, Any]) -> Any:
    wanted = transform_pb2.TransformSpec()
    wanted.CopyFrom(spec.transform)
    wanted.target = spec.target
    wanted.precision = transform_precision(spec, stage.variant)
    if not wanted.normalised_inputs:
        wanted.normalised_inputs.extend(normalised_inputs(spec))
    ingest = results["ingest"]
    return transform_pb2.TransformModelRequest(
        model=spec.model, spec=wanted, calibration=ingest.calibration, heldout=ingest.heldout
    )


def _check(job: JobRecord, stage: Stage, spec: job_pb2.JobSpec, results: Mapping[str, Any]) -> Any:
    return compiler_pb2.CheckModelRequest(model=results["transform"].model, target=spec.target)


def _compile(job: JobRecord, stage: Stage, spec: job_pb2.JobSpec, results: Mapping[str, Any]) -> Any:
    transform = results["transform"]
    return compiler_pb2.CompileModelRequest(
        model=transform.model,
        target=spec.target,
        variant=find_variant(spec, stage.variant),
        calibration=transform.calibration,
    )


def _simulate(job: JobRecord, stage: Stage, spec: job_pb2.JobSpec, results: Mapping[str, Any]) -> Any:
    transform, compiled = results["transform"], results["compile"]
    return compiler_pb2.SimulateModelRequest(
        quantized_model=compiled.quantized_model,
        compiled_model=compiled.compiled_model,
        heldout=transform.heldout,
        reference_outputs=transform.reference_outputs,
        bit_check_samples=spec.bit_check_samples,
        inputs=find_variant(spec, stage.variant).inputs,
    )


def _board(job: JobRecord, stage: Stage, spec: job_pb2.JobSpec, results: Mapping[str, Any]) -> Any:
    transform, compiled, simulated = results["transform"], results["compile"], results["simulate"]
    estimates = [figure.value for figure in compiled.figures if figure.name == "estimated_latency_us"]
    inputs = [item for item in find_variant(spec, stage.variant).inputs if item.name]
    return board_agent_pb2.RunModelRequest(
        run_id=f"{job.id}/{stage.variant}/{stage.attempt}",
        compiled_model=compiled.compiled_model,
        quantized_model=compiled.quantized_model,
        heldout=transform.heldout,
        reference_outputs=transform.reference_outputs,
        quantized_outputs=simulated.quantized_outputs,
        samples=spec.board_samples,
        perf=spec.perf,
        float_model=transform.model,
        job_id=job.id,
        estimated_latency_us=estimates[0] if estimates else 0.0,
        sample_layouts={i.name: i.layout_train or "NCHW" for i in inputs},
        sample_pictures={
            i.name: board_agent_pb2.PictureForm(colour=i.type_train, space_and_range=i.space_and_range)
            for i in inputs
            if i.type_train not in ("", "featuremap")
        },
    )


def _verdict(job: JobRecord, stage: Stage, spec: job_pb2.JobSpec, results: Mapping[str, Any]) -> Any:
    return queue_pb2.MakeReportRequest(job_id=job.id)


_BUILDERS: Final = {
    "ingest": _ingest,
    "transform": _transform,
    "check": _check,
    "compile": _compile,
    "simulate": _simulate,
    "board": _board,
    "verdict": _verdict,
}
