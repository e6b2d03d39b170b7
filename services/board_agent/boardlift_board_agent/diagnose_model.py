"""A diagnosis on the board: run the model, make the known mistakes on purpose, let the tree name the cause."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from boardlift.errors import InvalidInputError
from boardlift.v1 import artifact_pb2, board_agent_pb2
from boardlift_servicekit.executions import Emitter

from boardlift_board_agent.bench import Desk, Parts, open_desk
from boardlift_board_agent.colour_tensors import colour_tensors
from boardlift_board_agent.compare_outputs import compare_all
from boardlift_board_agent.convert import comparison_message, in_range, refusal_message
from boardlift_board_agent.diagnosis.evidence import Diagnosis, Evidence, NodeFact
from boardlift_board_agent.diagnosis.mistakes import mistaken_inputs
from boardlift_board_agent.diagnosis.tree import diagnose, same
from boardlift_board_agent.failures import ModelRefused, ToolRun, check_run
from boardlift_board_agent.hrt_model_exec import infer_command, model_info_command
from boardlift_board_agent.load_samples import load_arrays
from boardlift_board_agent.orient_samples import orient_samples
from boardlift_board_agent.parse_report import parse_header, parse_model_info
from boardlift_board_agent.run_inference import Inference, run_samples
from boardlift_board_agent.tensor_spec import TensorSpec

Request = board_agent_pb2.DiagnoseModelRequest
_CALIBRATION_SAMPLES = 512
_FEW = 2


async def diagnose_model(request: Request, parts: Parts, emit: Emitter) -> board_agent_pb2.DiagnoseResult:
    """Finds the cause.

    Args:
        request: the model, samples, and whatever outputs are known.
        parts: artifacts, the board's programs, the board.
        emit: progress and log lines.

    Raises:
        BoardliftError: the board takes no work, artifacts are missing, a tool died.
    """
    async with open_desk(parts, emit, request.job_id) as desk:
        result = board_agent_pb2.DiagnoseResult()
        try:
            evidence = await _gather(request, desk)
        except ModelRefused as refused:
            result.failure.CopyFrom(refusal_message(refused))
            return result
        result.engine = desk.engine
        result.diagnoses.extend(_message(item) for item in diagnose(evidence))
        _add_comparisons(result, evidence, desk.simulated)
        return result


async def _gather(request: Request, desk: Desk) -> Evidence:
    in_range("sample_limit", request.sample_limit, 0, 64)
    for field, most in (("other_outputs", 16), ("nodes", 10_000)):
        in_range(field, len(getattr(request, field)), 0, most)
    if not request.compiled_model.sha256 or not request.samples.sha256:
        raise InvalidInputError(
            "A diagnosis needs the compiled model and samples.",
            reason="DIAGNOSIS_INPUT_MISSING",
            remedy="Give both; `boardlift pull` and `boardlift samples` fetch them from a job.",
        )
    shutil.copyfile(await desk.store.fetch(request.compiled_model), desk.model)
    if request.quantized_model.sha256 and desk.simulated:
        source = await desk.store.fetch(request.quantized_model)
        shutil.copyfile(source, desk.folder / "model_quantized_model.onnx")
    run = await desk.call(model_info_command(desk.tool.program, desk.model), desk.limits.infer_s)
    check_run(run)
    specs = colour_tensors(parse_model_info(run.text), request.sample_pictures)
    count = request.sample_limit or 4
    samples = orient_samples(await _load(desk, request.samples, "samples", count), specs, request.sample_layouts)
    desk.emit.progress("run", 0.1)
    right = await _infer(desk, specs, samples)
    again = await _infer(desk, specs, {name: array[:1] for name, array in samples.items()})
    user = await _load(desk, request.user_outputs, "user's outputs", count)
    mistaken = await _make_mistakes(desk, specs, samples, right, user)
    return Evidence(
        specs=specs,
        samples=samples,
        board=right.outputs,
        board_raw=right.raw,
        memory=right.memory,
        repeated=again.outputs,
        reference=await _load(desk, request.reference_outputs, "float outputs", count),
        quantized=await _load(desk, request.quantized_outputs, "quantised outputs", count),
        user_outputs=user,
        user_inputs=await _load(desk, request.user_inputs, "user's inputs", count),
        mistaken=mistaken,
        others={o.name: await _load(desk, o.artifact, o.name, count) for o in request.other_outputs},
        calibration=await _load(desk, request.calibration, "calibration samples", _CALIBRATION_SAMPLES),
        nodes=tuple(NodeFact(n.name, n.on_cpu, n.precision, n.cosine) for n in request.nodes),
        plain_copies=right.plain_copies,
        skew=parse_header(run.text).skew,
        bit_equal_code=_bit_check(request),
        compiled_code_ran=desk.ran_compiled_code,
    )


def _bit_check(request: Request) -> bool | None:
    if request.bit_check == Request.BIT_CHECK_OUTCOME_UNSPECIFIED:
        return None
    return bool(request.bit_check == Request.BIT_CHECK_OUTCOME_EQUAL)


async def _load(desk: Desk, artifact: artifact_pb2.ArtifactRef, what: str, count: int) -> dict[str, Any]:
    return load_arrays(await desk.store.fetch(artifact), what, count) if artifact.sha256 else {}


async def _make_mistakes(
    desk: Desk, specs: tuple[TensorSpec, ...], samples: dict[str, Any], right: Inference, user: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Run the board on mistaken inputs, but only when the user's outputs need an explanation."""
    if same(user, right.outputs) in (None, True):
        return {}
    found = {}
    wrong = mistaken_inputs({name: array[:_FEW] for name, array in samples.items()}, specs)
    for index, (mistake, inputs) in enumerate(wrong.items()):
        desk.emit.progress(f"try {mistake}", 0.2 + 0.7 * index / len(wrong), index, len(wrong))
        found[mistake] = (await _infer(desk, specs, inputs)).outputs
    return found


async def _infer(desk: Desk, specs: tuple[TensorSpec, ...], samples: dict[str, Any]) -> Inference:
    async def run(paths: list[Path], dump: Path) -> ToolRun:
        command = infer_command(desk.tool.program, desk.model, paths, dump)
        return await desk.call(command, desk.limits.infer_s, quiet=True)

    return await run_samples({k: np.asarray(v) for k, v in samples.items()}, specs, desk.folder, run, lambda done: None)


def _message(item: Diagnosis) -> board_agent_pb2.Diagnosis:
    return board_agent_pb2.Diagnosis(
        cause=item.cause,
        stage=item.stage,
        confidence=item.confidence,
        message=item.message,
        subject=item.subject,
        evidence=item.evidence,
        next_step=item.next_step,
    )


def _add_comparisons(result: board_agent_pb2.DiagnoseResult, e: Evidence, simulated: bool) -> None:
    pairs = (
        (result.board_vs_float, e.board, e.reference),
        (result.board_vs_quantized, e.board, e.quantized),
        (result.user_vs_board, e.user_outputs, e.board),
    )
    for field, left, right in pairs:
        if not left or not right:
            continue
        samples = min(len(a) for a in (*left.values(), *right.values()))
        differences, _ = compare_all({n: a[:samples] for n, a in left.items()}, dict(right), samples)
        field.extend(comparison_message(d, simulated, "diagnosis") for d in differences)
