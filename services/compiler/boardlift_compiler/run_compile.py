"""Compile one model: describe, refuse early, write inputs under our names, run the tool, check what it left."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from boardlift_compiler.apply_preset import complete_spec
from boardlift_compiler.collect_files import collect_files, collect_log
from boardlift_compiler.detect_fallbacks import find_fallbacks, placement_reasons
from boardlift_compiler.explain_failure import StageFailure, explain_run, make_failure
from boardlift_compiler.find_coarse_lookups import find_coarse_lookups
from boardlift_compiler.find_drowned_scores import find_drowned_scores
from boardlift_compiler.find_odd_thresholds import find_odd_thresholds
from boardlift_compiler.find_quantisation_loss import find_quantisation_loss
from boardlift_compiler.find_uncalibrated import find_uncalibrated
from boardlift_compiler.findings import Finding
from boardlift_compiler.foresee import BORDER_CODES, foresee
from boardlift_compiler.measure_parting import measure_parting, not_compared
from boardlift_compiler.name_crash import name_crash
from boardlift_compiler.name_graph import neutral_graph_name, sort_constants
from boardlift_compiler.parse_log import LogFacts, ParseError
from boardlift_compiler.parse_reports import (
    NodeQuantization,
    ReportError,
    SubgraphReport,
    parse_quant_info,
    parse_subgraph_report,
)
from boardlift_compiler.preflight import preflight
from boardlift_compiler.prepare_calibration import (
    CalibrationSet,
    RefusedError,
    first_md5_of,
    prepare_samples,
    read_samples,
    write_samples,
)
from boardlift_compiler.read_back import find_unused_settings
from boardlift_compiler.read_bin import BinUnreadableError, CompiledModel, read_bin, strip_paths
from boardlift_compiler.read_model import ModelSummary, ModelUnreadableError, read_model
from boardlift_compiler.report_warnings import named_warnings, printed_errors
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.run_mapper import Hooks, Limits, MapperRun, run_mapper
from boardlift_compiler.scrub_paths import Scrubber
from boardlift_compiler.spec import MARCH, CompileSpec
from boardlift_compiler.toolchain import Toolchain
from boardlift_compiler.track_progress import PastRun, ProgressTracker, RunSize, predict_steps
from boardlift_compiler.write_config import CONFIG_FILE, MODEL_FILE, OUTPUT_FOLDER, PREFIX, write_config

ARGUMENTS = ("makertbin", "-c", CONFIG_FILE, "--model-type", "onnx")


@dataclass(frozen=True)
class CompileInputs:
    """What to compile."""

    model: Path
    """ONNX file."""
    spec: CompileSpec
    """How; may leave things open."""
    samples: Path | None = None
    """Calibration ``.npz``; None only with method skip."""
    jobs: int = 1
    """Compiler threads where the spec names none."""
    history: tuple[PastRun, ...] = ()
    """Past runs, for the remaining time."""


@dataclass
class CompileOutcome:
    """What came of it. Files lie in the run folder and vanish with it."""

    failure: StageFailure | None = None
    """Why there is no compiled model."""
    spec: CompileSpec = field(default_factory=CompileSpec)
    """The completed spec."""
    config: str = ""
    """The YAML given to the tool."""
    command: tuple[str, ...] = ()
    """The command line, with neutral names."""
    facts: LogFacts = field(default_factory=LogFacts)
    """What the log says."""
    compiled: bytes = b""
    """The ``.bin`` without build paths; equal builds give equal bytes."""
    model_in_bin: CompiledModel | None = None
    """What the ``.bin`` holds."""
    quantized_model: Path | None = None
    """Quantised ONNX."""
    files: dict[str, Path] = field(default_factory=dict)
    """Everything else the tool left, by neutral name."""
    reports: tuple[SubgraphReport, ...] = ()
    """Static report per BPU subgraph."""
    quantization: dict[str, NodeQuantization] = field(default_factory=dict)
    """Thresholds and cosine per node."""
    findings: list[Finding] = field(default_factory=list)
    """Silent fallbacks and other findings."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Per node why it is not as asked."""
    console: Path | None = None
    """The whole log."""
    run: MapperRun | None = None
    """How the tool ended."""
    size: RunSize | None = None
    """For the history."""


async def compile_model(
    toolchain: Toolchain, inputs: CompileInputs, folder: RunFolder, limits: Limits, hooks: Hooks
) -> CompileOutcome:
    """Compile; a refusal is an outcome, not an exception."""
    outcome = CompileOutcome(spec=inputs.spec, command=("hb_mapper", *ARGUMENTS))
    prepared = await asyncio.to_thread(prepare_run, inputs, folder, outcome)
    if prepared is None:
        return outcome
    model, data = prepared
    expected, known = predict_steps(_size(inputs, outcome, model, data), inputs.history)
    tracker = ProgressTracker(expected, known)
    run = await run_mapper(toolchain, ARGUMENTS, folder, limits=limits, hooks=hooks, tracker=tracker)
    outcome.size = _size(inputs, outcome, model, data)
    await asyncio.to_thread(_collect, run, folder, outcome, model, data)
    gather = collect_log if outcome.failure else collect_files
    outcome.files = await asyncio.to_thread(gather, folder, Scrubber(folder.path, toolchain.root))
    if outcome.failure is None and data is not None:
        parting = await _parting(toolchain, outcome, data, folder, hooks)
        known = any(f.code in ("INTEGERS_PART", "QUANTISATION_LOSS") for f in parting)
        outcome.findings += parting if known else [*parting, *_vendor_loss(outcome)]
    elif outcome.failure is None:
        outcome.findings += _vendor_loss(outcome)
    return outcome


def _vendor_loss(outcome: CompileOutcome) -> list[Finding]:
    """Return the loss by the tool's own cosines, for what our comparison does not tell."""
    return find_quantisation_loss(outcome.facts.outputs, outcome.quantization)


async def _parting(
    toolchain: Toolchain, outcome: CompileOutcome, data: CalibrationSet, folder: RunFolder, hooks: Hooks
) -> list[Finding]:
    """Compare the three models that the tool left."""
    files = outcome.files
    models = {"float": files.get("optimized_float_model.onnx"), "calibrated": files.get("calibrated_model.onnx"),
              "quantized": outcome.quantized_model}  # fmt: skip
    found = {name: path for name, path in models.items() if path is not None}
    if len(found) < len(models):
        missing = ", ".join(sorted(set(models) - set(found)))
        return [not_compared(f"the build left no {missing} model")]
    return await measure_parting(toolchain, found, data, folder, hooks.launcher)


def prepare_run(
    inputs: CompileInputs, folder: RunFolder, outcome: CompileOutcome
) -> tuple[ModelSummary, CalibrationSet | None] | None:
    """Do everything that needs no tool; None when something is refused (see ``outcome.failure``)."""
    raw = inputs.model.read_bytes()
    try:
        model = read_model(raw)
    except ModelUnreadableError as error:
        outcome.failure = make_failure("MODEL_UNREADABLE", "", (str(error),))
        return None
    outcome.spec = spec = complete_spec(inputs.spec, model, inputs.jobs)
    outcome.failure = preflight(spec, model)
    if outcome.failure is not None:
        return None
    data: CalibrationSet | None = None
    if spec.calibration.method not in ("skip", "load"):
        try:
            if inputs.samples is None:
                raise RefusedError(make_failure("CALIBRATION_MISSING", ", ".join(i.name for i in spec.inputs)))
            data = prepare_samples(read_samples(inputs.samples), spec, model)
        except RefusedError as error:
            outcome.failure = error.failure
            return None
        outcome.spec = spec = data.spec
        outcome.findings += data.findings
        write_samples(data, folder.path)
    outcome.config = write_config(spec)
    (folder.path / MODEL_FILE).write_bytes(neutral_graph_name(raw))
    (folder.path / CONFIG_FILE).write_text(outcome.config, encoding="utf-8")
    return model, data


def _size(inputs: CompileInputs, outcome: CompileOutcome, model: ModelSummary, data: CalibrationSet | None) -> RunSize:
    spec = outcome.spec
    return RunSize(
        len(model.nodes),
        inputs.model.stat().st_size,
        data.count if data else 0,
        spec.calibration.method,
        spec.compiler.optimize_level,
        spec.wants_int16,
    )


def _collect(
    run: MapperRun, folder: RunFolder, outcome: CompileOutcome, model: ModelSummary, data: CalibrationSet | None
) -> None:
    outcome.run, outcome.facts, outcome.console = run, run.facts, run.console
    outcome.failure = name_crash(explain_run(run.end, run.facts, expect_march=MARCH), model)
    if outcome.failure is None:
        outcome.failure = _read_products(folder, outcome)
    if outcome.failure is not None:
        return
    first_md5 = {name: first_md5_of(array) for name, array in data.arrays.items()} if data else {}
    outcome.reasons = placement_reasons(outcome.spec, model, run.facts)
    count = data.count if data else 0
    cpu_ops = outcome.model_in_bin.cpu_ops if outcome.model_in_bin else {}
    outcome.findings += find_unused_settings(outcome.spec, run.facts)
    outcome.findings += find_uncalibrated(outcome.spec, run.facts.nodes)
    outcome.findings += find_fallbacks(outcome.spec, model, run.facts, count, first_md5, cpu_ops)
    outcome.findings += [f for f in foresee(outcome.spec, model) if f.code in BORDER_CODES]
    outcome.findings += find_odd_thresholds(run.facts, {t.name for t in model.inputs})
    outcome.findings += named_warnings(run.facts, {f.subject for f in outcome.findings})
    outcome.findings += find_coarse_lookups(run.facts.nodes, outcome.quantization)
    outcome.findings += find_drowned_scores(outcome.quantization)
    outcome.findings += printed_errors(run.facts)


def _read_products(folder: RunFolder, outcome: CompileOutcome) -> StageFailure | None:
    out = folder.path / OUTPUT_FOLDER
    try:
        outcome.facts.require_tables(outcome.spec.calibration.method != "skip")
        raw = (out / f"{PREFIX}.bin").read_bytes()
        outcome.model_in_bin = read_bin(raw)
        outcome.compiled = strip_paths(raw)
        outcome.quantization = dict(parse_quant_info((out / f"{PREFIX}_quant_info.json").read_text(encoding="utf-8")))
        reports = sorted(out.glob("*_subgraph_*.json"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
        outcome.reports = tuple(parse_subgraph_report(p.read_text(encoding="utf-8")) for p in reports)
    except (ParseError, ReportError) as error:
        return make_failure("LOG_NOT_UNDERSTOOD", str(error)[:200])
    except (BinUnreadableError, OSError) as error:
        return make_failure("COMPILED_MODEL_UNREADABLE", "", (str(error)[:200],))
    march = outcome.model_in_bin.options.get("MARCH", "")
    if march != MARCH:
        return make_failure("MARCH_MISMATCH", march or "an unnamed architecture")
    outcome.quantized_model = out / f"{PREFIX}_quantized_model.onnx"
    if not outcome.quantized_model.is_file():
        return make_failure("NO_COMPILED_MODEL", "")
    for path in out.glob("*.onnx"):
        path.write_bytes(sort_constants(path.read_bytes()))
    return None
