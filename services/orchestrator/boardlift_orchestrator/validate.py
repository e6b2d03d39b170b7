"""Check a job's specification before anything is stored. Pure; reports the first thing that is wrong with its field."""

from __future__ import annotations

import math
import re
from typing import Final

from boardlift.errors import InvalidInputError
from boardlift.v1 import board_agent_pb2, compiler_pb2, job_pb2
from boardlift_servicekit.artifacts import check_sha256

TARGETS: Final = ("rdk-x5",)
METRICS: Final = (
    "cosine",
    "max_abs",
    "mean_abs",
    "estimated_latency_us",
    "board_p99_ms",
    "cpu_nodes",
    "bit_exact",
    "no_silent_fallback",
    "board_matches_simulation",
)
PRESETS: Final = ("", "int8", "int16", "mixed", "auto", "fast-perf")
GOALS: Final = ("", "latency", "accuracy")
MAX_SPEC_BYTES: Final = 256 * 1024
MAX_VARIANTS: Final = 16
MAX_GATES: Final = 64
MAX_BOARD_SAMPLES: Final = 1024
MAX_LIMIT_S: Final = 7 * 86400
DEFAULT_LIMIT_S: Final = 4 * 3600
_VARIANT: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_GOVERNOR: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")


def check_spec(spec: job_pb2.JobSpec) -> None:
    """Check a specification whose model is an artifact.

    Raises:
        InvalidInputError: SPEC_INVALID with the field.
    """
    if not spec.HasField("model") or spec.model.WhichOneof("source") is None:
        _refuse("spec.model", "a model is needed", "Upload the ONNX file and name it.")
    if not spec.HasField("dataset"):
        _refuse("spec.dataset", "a dataset is needed", "Make one with `boardlift dataset` and upload it.")
    check_sha256(spec.model.artifact.sha256)
    check_sha256(spec.dataset.sha256)
    for item in spec.model.external_data:
        check_sha256(item.artifact.sha256)
    if spec.target not in TARGETS:
        _refuse("spec.target", f"the target must be one of {', '.join(TARGETS)}", "Set target to rdk-x5.")
    _check_variants(spec)
    _check_gates(spec)
    _check_rest(spec)


def limit_s(spec: job_pb2.JobSpec) -> float:
    """Return the seconds the whole job may take."""
    return spec.limit_duration.ToNanoseconds() / 1e9 if spec.HasField("limit_duration") else float(DEFAULT_LIMIT_S)


def _check_variants(spec: job_pb2.JobSpec) -> None:
    if not 1 <= len(spec.variants) <= MAX_VARIANTS:
        _refuse("spec.variants", f"a job has 1 to {MAX_VARIANTS} variants", "Split it into several jobs.")
    seen = set()
    for index, variant in enumerate(spec.variants):
        field = f"spec.variants[{index}]"
        if not _VARIANT.fullmatch(variant.name):
            _refuse(f"{field}.name", "a variant's name must match [a-z0-9][a-z0-9-]{0,39}", "Rename the variant.")
        if variant.name in seen:
            _refuse(f"{field}.name", f"the variant {variant.name} is there twice", "Give each variant its own name.")
        seen.add(variant.name)
        if variant.preset not in PRESETS:
            _refuse(f"{field}.preset", f"the preset must be one of {', '.join(PRESETS[1:])}", "Correct the preset.")
        if _norms(variant) != _norms(spec.variants[0]):
            text = f"mean and scale differ from those of {spec.variants[0].name}, and the float model is fed one way"
            _refuse(f"{field}.inputs", text, "Give all variants the same mean and scale, or make two jobs.")


def _norms(variant: compiler_pb2.VariantSpec) -> set[tuple[str, tuple[float, ...], tuple[float, ...], str]]:
    inputs = [i for i in variant.inputs if i.mean_value or i.scale_value]
    return {(i.name, tuple(i.mean_value), tuple(i.scale_value), i.layout_train or "NCHW") for i in inputs}


def _check_gates(spec: job_pb2.JobSpec) -> None:
    if len(spec.gates) > MAX_GATES:
        _refuse("spec.gates", f"a job has at most {MAX_GATES} gates", "Leave some out.")
    for index, gate in enumerate(spec.gates):
        field = f"spec.gates[{index}]"
        if gate.metric not in METRICS:
            _refuse(f"{field}.metric", f"the metric must be one of {', '.join(METRICS)}", "Correct the metric.")
        limits = [getattr(gate, side) for side in ("minimum", "maximum") if gate.HasField(side)]
        if not limits or not all(math.isfinite(value) for value in limits):
            _refuse(field, "a gate needs a finite minimum or maximum", "Set one of them.")
        if len(limits) == 2 and limits[0] > limits[1]:
            _refuse(field, "the gate's minimum lies above its maximum", "Exchange them.")


def _check_rest(spec: job_pb2.JobSpec) -> None:
    if spec.goal not in GOALS:
        _refuse("spec.goal", "the goal must be latency or accuracy", "Correct the goal.")
    if not 0 < limit_s(spec) <= MAX_LIMIT_S:
        _refuse("spec.limit_duration", "the limit must lie between 0 and 7 days", "Correct the limit.")
    if not -100 <= spec.priority <= 100:
        _refuse("spec.priority", "the priority must lie between -100 and 100", "Correct it.")
    if len(spec.display_name) > 100:
        _refuse("spec.display_name", "the name has at most 100 characters", "Shorten it.")
    for name, most in (("board_samples", MAX_BOARD_SAMPLES), ("bit_check_samples", 100_000)):
        if not 0 <= getattr(spec, name) <= most:
            _refuse(f"spec.{name}", f"the number of samples must lie between 0 and {most}", "Correct it.")
    for name in ("calibration_samples", "heldout_samples"):
        if getattr(spec.split, name) < 0:
            _refuse(f"spec.split.{name}", "a number of samples can't be negative", "Leave it out, or ask for some.")
    _check_perf(spec.perf)
    if spec.ByteSize() > MAX_SPEC_BYTES:
        _refuse("spec", f"the specification is larger than {MAX_SPEC_BYTES} bytes", "Use fewer overrides or variants.")


def _check_perf(perf: board_agent_pb2.PerfSpec) -> None:
    """Bounds of the board agent's, said before anything is compiled."""
    bounds = [("warmup_frames", perf.warmup_frames, 0, 100_000), ("frames", perf.frames, 0, 1_000_000)]
    bounds += [("threads", threads, 1, 8) for threads in perf.threads]
    for name, low in (("limit_duration", 1), ("sustained_duration", 0)):
        if perf.HasField(name):
            bounds.append((name, getattr(perf, name).ToNanoseconds() / 1e9, low, 3600))
    for name, value, low, high in bounds:
        if not low <= value <= high:
            _refuse(f"spec.perf.{name}", f"{value:.12g} does not lie between {low} and {high}", "Correct it.")
    if perf.governor and not _GOVERNOR.fullmatch(perf.governor):
        _refuse("spec.perf.governor", "this is no governor's name", "Ask for one such as performance or schedutil.")


def _refuse(field: str, message: str, remedy: str) -> None:
    raise InvalidInputError(f"{field}: {message}.", reason="SPEC_INVALID", remedy=remedy, metadata={"field": field})
