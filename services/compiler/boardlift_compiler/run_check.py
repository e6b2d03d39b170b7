"""Run the vendor's checker on a model: node placement, reasons, and what would help."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from boardlift_compiler.apply_preset import apply_preset
from boardlift_compiler.detect_fallbacks import placement_reasons
from boardlift_compiler.explain_failure import StageFailure, explain_run, make_failure
from boardlift_compiler.findings import Finding
from boardlift_compiler.foresee import foresee
from boardlift_compiler.name_crash import name_crash
from boardlift_compiler.name_graph import neutral_graph_name
from boardlift_compiler.parse_log import LogFacts, ParseError
from boardlift_compiler.preflight import check_model
from boardlift_compiler.read_model import ModelSummary, ModelUnreadableError, read_model
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.run_mapper import Hooks, Limits, MapperRun, run_mapper
from boardlift_compiler.spec import MARCH, CompileSpec
from boardlift_compiler.toolchain import Toolchain
from boardlift_compiler.track_progress import ProgressTracker
from boardlift_compiler.write_config import MODEL_FILE

ARGUMENTS = ("checker", "--model-type", "onnx", "--march", MARCH, "--model", MODEL_FILE)


@dataclass
class CheckOutcome:
    """What the checker said."""

    failure: StageFailure | None = None
    """Why the model is refused."""
    facts: LogFacts = field(default_factory=LogFacts)
    """What the log says."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Per node why it is on the CPU."""
    findings: list[Finding] = field(default_factory=list)
    """Things worth knowing, with remedies."""
    console: Path | None = None
    """The whole log."""
    run: MapperRun | None = None
    """How the tool ended; None when it was not started."""


async def check_placement(
    toolchain: Toolchain, model_file: Path, spec: CompileSpec, folder: RunFolder, limits: Limits, hooks: Hooks
) -> CheckOutcome:
    """Check; a refusal is an outcome, not an exception.

    Args:
        toolchain: The installed toolchain.
        model_file: ONNX file.
        spec: How it will be compiled; sharpens the findings.
        folder: Run folder.
        limits: Time and memory.
        hooks: Lines and progress.
    """
    outcome = CheckOutcome()
    raw = await asyncio.to_thread(model_file.read_bytes)
    try:
        model = read_model(raw)
    except ModelUnreadableError as error:
        outcome.failure = make_failure("MODEL_UNREADABLE", "", (str(error),))
        return outcome
    spec = apply_preset(spec, model)
    outcome.findings += foresee(spec, model)
    shapes = {i.name: i.shape for i in spec.inputs}
    outcome.failure = next(check_model(model, shapes), None)
    if outcome.failure is not None:
        return outcome
    (folder.path / MODEL_FILE).write_bytes(neutral_graph_name(raw))
    arguments = (*ARGUMENTS, *_shape_arguments(model, shapes))
    run = await run_mapper(toolchain, arguments, folder, limits=limits, hooks=hooks, tracker=ProgressTracker())
    outcome.run, outcome.facts, outcome.console = run, run.facts, run.console
    outcome.failure = name_crash(explain_run(run.end, run.facts, needs_model=False), model)
    if outcome.failure is None:
        try:
            run.facts.require_tables()
        except ParseError as error:
            outcome.failure = make_failure("LOG_NOT_UNDERSTOOD", str(error)[:200])
    outcome.reasons = placement_reasons(CompileSpec(), model, run.facts)
    return outcome


def _shape_arguments(model: ModelSummary, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Yield the options that fix what the model leaves open; a shape that it has already is the model's own affair."""
    for tensor in model.inputs:
        shape = shapes.get(tensor.name)
        if shape and any(not isinstance(d, int) or d <= 0 for d in tensor.shape):
            yield from ("--input-shape", tensor.name, "x".join(str(d) for d in shape))
