"""A finished job -> the request that has a board find out why a variant's outputs are wrong. Pure."""

from __future__ import annotations

from boardlift._stage_results import StageResults
from boardlift.errors import NotFoundError, PreconditionError
from boardlift.v1 import board_agent_pb2, compiler_pb2, job_pb2

_Request = board_agent_pb2.DiagnoseModelRequest


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


def build_request(job: job_pb2.Job, variant: str, results: StageResults, run_id: str) -> _Request:
    """Collects what the job knows about a variant.

    Args:
        job: with its spec and stage records.
        variant: from `choose_variant`.
        results: of the job.
        run_id: name of this diagnosis.

    Returns:
        The request; the user's own outputs and inputs are still to be added.
    """
    transform, compiled, simulated = results.transform(variant), results.compiled(variant), results.simulated(variant)
    inputs = [item for v in job.spec.variants if v.name == variant for item in v.inputs if item.name]
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
        sample_layouts={item.name: item.layout_train or "NCHW" for item in inputs},
        sample_pictures={
            item.name: board_agent_pb2.PictureForm(colour=item.type_train, space_and_range=item.space_and_range)
            for item in inputs
            if item.type_train not in ("", "featuremap")
        },
    )
    unequal = [check for check in simulated.bit_checks if not check.equal]
    if simulated.bit_exact:
        request.bit_check = _Request.BIT_CHECK_OUTCOME_EQUAL
    elif any(not check.not_compared for check in unequal):
        request.bit_check = _Request.BIT_CHECK_OUTCOME_DIFFERENT
    for other in (v.name for v in job.spec.variants if v.name != variant):
        outputs = results.simulated(other).quantized_outputs
        if outputs.sha256:
            request.other_outputs.add(name=other, artifact=outputs)
    return request


def _node(node: compiler_pb2.NodePlacement) -> board_agent_pb2.DiagnosedNode:
    return board_agent_pb2.DiagnosedNode(
        name=node.node, on_cpu=node.device == "CPU", precision=node.dtype, cosine=node.cosine
    )
