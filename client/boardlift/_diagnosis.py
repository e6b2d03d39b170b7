"""A finished job -> the request that has a board find out why a variant's outputs are wrong. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from boardlift.errors import NotFoundError, PreconditionError
from boardlift.v1 import board_agent_pb2, compiler_pb2, job_pb2, transform_pb2

_Request = board_agent_pb2.DiagnoseModelRequest
Read = Callable[[str], bytes]
"""Returns the bytes of an artifact by its SHA-256."""


def choose_variant(job: job_pb2.Job, wanted: str) -> str:
    """The variant to look at: the wanted one, else the verdict's best, else the first that was compiled.

    Raises:
        NotFoundError: VARIANT_NOT_FOUND.
        PreconditionError: NOTHING_COMPILED.
    """
    compiled = [s.variant for s in job.stages if s.stage == "compile" and s.result.sha256]
    if wanted and wanted not in compiled:
        raise NotFoundError(
            f"Job {job.id} has no compiled variant {wanted}.",
            reason="VARIANT_NOT_FOUND",
            remedy=f"Take one of: {', '.join(compiled) or 'none'}.",
        )
    if not compiled:
        raise PreconditionError(
            f"Job {job.id} has compiled nothing.",
            reason="NOTHING_COMPILED",
            remedy=f"See what it said: boardlift jobs show {job.id}",
        )
    best = job.verdict.best_variant
    return wanted or (best if best in compiled else compiled[0])


def build_request(job: job_pb2.Job, variant: str, read: Read, run_id: str) -> _Request:
    """Collects what the job knows about a variant.

    Args:
        job: with its spec and stage records.
        variant: from `choose_variant`.
        read: fetches stage results.
        run_id: name of this diagnosis.

    Returns:
        The request; the user's own outputs and inputs are still to be added.
    """
    transform = _parse(transform_pb2.TransformResult(), _transform_stage(job, variant), read)
    compiled = _parse(compiler_pb2.CompileResult(), _stage(job, "compile", variant), read)
    simulated = _parse(compiler_pb2.SimulateResult(), _stage(job, "simulate", variant), read)
    request = _Request(
        run_id=run_id,
        job_id=job.id,
        compiled_model=compiled.compiled_model,
        quantized_model=compiled.quantized_model,
        samples=transform.heldout,
        reference_outputs=transform.reference_outputs,
        quantized_outputs=simulated.quantized_outputs,
        calibration=transform.calibration,
        nodes=[_node(node) for node in compiled.nodes],
        sample_layouts=_layouts(job, variant),
    )
    unequal = [check for check in simulated.bit_checks if not check.equal]
    if simulated.bit_exact:
        request.bit_check = _Request.BIT_CHECK_OUTCOME_EQUAL
    elif any(not check.not_compared for check in unequal):
        request.bit_check = _Request.BIT_CHECK_OUTCOME_DIFFERENT
    for stage in job.stages:
        if stage.stage == "simulate" and stage.variant != variant and stage.result.sha256:
            other = _parse(compiler_pb2.SimulateResult(), stage, read)
            if other.quantized_outputs.sha256:
                request.other_outputs.add(name=stage.variant, artifact=other.quantized_outputs)
    return request


def _layouts(job: job_pb2.Job, variant: str) -> dict[str, str]:
    """Layout of the samples per input that the variant names: the compiled input may have the other one."""
    inputs = next((v.inputs for v in job.spec.variants if v.name == variant), ())
    return {item.name: item.layout_train or "NCHW" for item in inputs if item.name}


def _stage(job: job_pb2.Job, name: str, variant: str) -> job_pb2.StageRecord | None:
    return next((s for s in job.stages if (s.stage, s.variant) == (name, variant) and s.result.sha256), None)


def _transform_stage(job: job_pb2.Job, variant: str) -> job_pb2.StageRecord | None:
    """The transform the variant was compiled from: one for all, or one per precision."""
    found = [s for s in job.stages if s.stage == "transform" and s.result.sha256]
    preset = next((v.preset for v in job.spec.variants if v.name == variant), "")
    return next((s for s in found if len(found) == 1 or s.variant == preset), found[0] if found else None)


def _parse(message: Any, stage: job_pb2.StageRecord | None, read: Read) -> Any:
    if stage is not None:
        message.ParseFromString(read(stage.result.sha256))
    return message


def _node(node: compiler_pb2.NodePlacement) -> board_agent_pb2.DiagnosedNode:
    return board_agent_pb2.DiagnosedNode(
        name=node.node, on_cpu=node.device == "CPU", precision=node.dtype, cosine=node.cosine
    )
