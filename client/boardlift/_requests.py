"""Plain arguments -> protobuf requests, checked before anything is sent."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from boardlift._check_forms import check_forms
from boardlift._check_names import check_gate_outputs, check_input_names
from boardlift._measurement import perf_spec
from boardlift._model import Model as Model
from boardlift.errors import InvalidInputError
from boardlift.models import Artifact, Gate, InputFormat, Variant
from boardlift.v1 import artifact_pb2, compiler_pb2, job_pb2, toolchain_pb2, transform_pb2

PRESETS = ("int8", "int16", "mixed", "auto", "fast-perf")
_VARIANT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True)
class RunOptions:
    """Everything of a job besides model, dataset and variants."""

    target: str = "rdk-x5"
    """Chip and toolchain."""
    outputs: tuple[str, ...] = ()
    """Outputs to keep; empty keeps all."""
    input_shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Shapes for inputs with open dimensions."""
    skip_passes: tuple[str, ...] = ()
    """Passes that must not run."""
    freeze: Mapping[str, Any] = field(default_factory=dict)
    """Inputs that never change, with their values (numbers or nested lists); they become constants."""
    gates: tuple[Gate, ...] = ()
    """Limits the result must keep."""
    board: str = ""
    """Board id, or labels as "label=value,label=value"; empty means any."""
    goal: str = ""
    """What the best variant is: "latency" or "accuracy"."""
    calibration_samples: int = 0
    """0 means 64, or the dataset's own split."""
    heldout_samples: int = 0
    """0 means the others up to 256, or the dataset's own split."""
    seed: int = 0
    """Seed of the draw."""
    frames: int = 0
    """Frames of a latency measurement; 0 means 1000."""
    threads: tuple[int, ...] = ()
    """Thread counts to measure; empty means 1 and 2."""
    sustained_s: float = 0.0
    """Seconds of a run under load afterwards, with heat and clocks over time; 0 for none."""
    governor: str = ""
    """Clock governor to measure under, set by boards whose owner permits it; empty leaves it alone."""
    skip_board: bool = False
    """Leave the board out."""
    board_samples: int = 0
    """Samples run on the board; 0 means 8."""
    bit_check_samples: int = 0
    """Samples compared bit by bit; 0 means 4."""
    limit_s: float = 0.0
    """Time the whole job may take; 0 means 4 hours."""
    name: str = ""
    """Name for people."""
    priority: int = 0
    """Among one's own jobs that wait for their turn the higher goes first, -100 to 100."""
    command: tuple[str, ...] = ()
    """Command line to reproduce the job."""


def to_ref(artifact: Artifact) -> artifact_pb2.ArtifactRef:
    """Convert an artifact."""
    return artifact_pb2.ArtifactRef(
        sha256=artifact.sha256, size_bytes=artifact.size_bytes, media_type=artifact.media_type
    )


def model_source(model: Model) -> transform_pb2.ModelSource:
    """Convert a pushed model."""
    external = [toolchain_pb2.NamedArtifact(name=a.name, artifact=to_ref(a)) for a in model.external]
    return transform_pb2.ModelSource(artifact=to_ref(model.artifact), external_data=external)


def parse_variant(text: str) -> Variant:
    """Parse `NAME`, `NAME=PRESET`, each with `,key=value,...`; keys are fields of `Variant`, lists are split at `;`.

    Raises:
        InvalidInputError: The text is something else (`VARIANT_INVALID`).
    """
    head, *parts = text.split(",")
    name, _, preset = head.partition("=")
    values: dict[str, str] = {}
    for part in parts:
        key, separator, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if not separator or key not in _VARIANT_KEYS:
            raise _bad_variant(text, f"{part!r} is unknown")
        values[key] = value.strip()
    try:
        return Variant(
            name,
            preset,
            calibration=values.get("calibration", ""),
            percentile=float(values.get("percentile", 0)),
            per_channel=_yes_or_no(values.get("per_channel", "no")),
            level=values.get("level", ""),
            purpose=values.get("purpose", ""),
            int16=_items(values.get("int16", "")),
            cpu=_items(values.get("cpu", "")),
        )
    except ValueError as error:
        raise _bad_variant(text, str(error)) from error


_VARIANT_KEYS = ("calibration", "percentile", "per_channel", "level", "purpose", "int16", "cpu")


def variant_spec(variant: Variant) -> compiler_pb2.VariantSpec:
    """Convert a variant.

    Raises:
        InvalidInputError: Its name or preset is unusable (`VARIANT_INVALID`).
    """
    preset = variant.preset or (variant.name if variant.name in PRESETS else "")
    if not _VARIANT_NAME.fullmatch(variant.name):
        raise _bad_variant(variant.name, "a name has lower-case letters, digits and dashes, at most 40")
    if preset not in PRESETS:
        raise _bad_variant(variant.name, f"the preset must be one of {', '.join(PRESETS)}")
    calibration = compiler_pb2.CalibrationSpec(
        method=variant.calibration, max_percentile=variant.percentile, per_channel=variant.per_channel
    )
    nodes = [compiler_pb2.NodeOverride(node=n, input_type="int16") for n in variant.int16]
    nodes += [compiler_pb2.NodeOverride(node=n, device="CPU") for n in variant.cpu]
    return compiler_pb2.VariantSpec(
        name=variant.name,
        preset=preset,
        inputs=[_input_spec(item) for item in variant.inputs],
        calibration=calibration,
        nodes=nodes,
        compiler=compiler_pb2.CompilerKnobs(optimize_level=variant.level),
        purpose=variant.purpose,
    )


def gate_message(gate: Gate) -> job_pb2.Gate:
    """Convert a gate."""
    message = job_pb2.Gate(metric=gate.metric, output=gate.output)
    if gate.minimum is not None:
        message.minimum = gate.minimum
    if gate.maximum is not None:
        message.maximum = gate.maximum
    return message


def transform_spec(options: RunOptions) -> transform_pb2.TransformSpec:
    """Return what is to be done to the model.

    Raises:
        InvalidInputError: A frozen input's value cannot be sent (`FREEZE_INVALID`).
    """
    shapes = [toolchain_pb2.TensorSpec(name=n, shape=shape) for n, shape in options.input_shapes.items()]
    return transform_pb2.TransformSpec(
        target=options.target,
        outputs=options.outputs,
        input_shapes=shapes,
        skip_passes=options.skip_passes,
        frozen_inputs={name: _frozen(name, value) for name, value in options.freeze.items()},
    )


def _frozen(name: str, value: Any) -> str:
    """A frozen input's value as JSON; arrays and NumPy numbers count as what they hold."""
    try:
        return json.dumps(value.tolist() if hasattr(value, "tolist") else value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The value for {name} is no finite number, truth value or list of them.",
            reason="FREEZE_INVALID",
            remedy="Give a number, true or false, or nested lists.",
            metadata={"input": name},
        ) from error


def job_spec(
    model: Model, dataset: Artifact, variants: Sequence[Variant | str], options: RunOptions
) -> job_pb2.JobSpec:
    """Return the whole job.

    Raises:
        InvalidInputError: Something is missing or contradicts itself, or names what the model does not have
            (`INPUT_NOT_FOUND`, `OUTPUT_NOT_FOUND`).
    """
    parsed = [parse_variant(item) if isinstance(item, str) else item for item in variants]
    names = [variant.name for variant in parsed]
    if not names or len(set(names)) != len(names):
        raise InvalidInputError(
            "A job needs at least one variant, each with a name of its own.",
            reason="VARIANTS_INVALID",
            remedy="Give --variant int8, --variant int16 or others, each once.",
        )
    forms = (item.name for variant in parsed for item in variant.inputs)
    check_forms(parsed)
    check_input_names([*options.freeze, *options.input_shapes, *forms], model.inputs)
    check_gate_outputs(options.gates, options.outputs or model.outputs)
    spec = job_pb2.JobSpec(
        model=model_source(model),
        dataset=to_ref(dataset),
        target=options.target,
        split=transform_pb2.SplitSpec(
            calibration_samples=options.calibration_samples,
            heldout_samples=options.heldout_samples,
            seed=options.seed,
        ),
        transform=transform_spec(options),
        variants=[variant_spec(variant) for variant in parsed],
        gates=[gate_message(gate) for gate in options.gates],
        board=board_selector(options.board),
        perf=perf_spec(options.frames, options.threads, options.governor, options.sustained_s),
        goal=options.goal,
        display_name=options.name[:100],
        model_name=model.name,
        command=options.command,
        skip_board=options.skip_board,
        board_samples=options.board_samples,
        bit_check_samples=options.bit_check_samples,
        priority=options.priority,
    )
    if options.limit_s:
        spec.limit_duration.FromTimedelta(timedelta(seconds=options.limit_s))
    return spec


def board_selector(text: str) -> job_pb2.BoardSelector:
    """Parse a board id or `label=value,label=value`."""
    if "=" not in text:
        return job_pb2.BoardSelector(id=text)
    return job_pb2.BoardSelector(labels=parse_labels(text.split(",")))


def parse_labels(items: Iterable[str]) -> dict[str, str]:
    """Parse `label=value` texts.

    Raises:
        InvalidInputError: One has no `=` (`LABEL_INVALID`).
    """
    labels = {}
    for item in items:
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise InvalidInputError(f"{item!r} is not a label.", reason="LABEL_INVALID", remedy="Write label=value.")
        labels[key.strip()] = value.strip()
    return labels


def new_request_id() -> str:
    """Return a fresh id that makes one submission repeatable."""
    return str(uuid.uuid4())


def _input_spec(item: InputFormat) -> compiler_pb2.InputSpec:
    return compiler_pb2.InputSpec(
        name=item.name,
        type_train=item.type_train,
        type_rt=item.type_rt,
        layout_train=item.layout_train,
        layout_rt=item.layout_rt,
        space_and_range=item.space_and_range,
        source=item.source,
        norm_type=item.norm_type,
        mean_value=item.mean,
        scale_value=item.scale,
        shape=item.shape,
    )


def _yes_or_no(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if text not in words:
        raise ValueError(f"{text!r} is neither yes nor no")
    return words[text]


def _items(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(";")))


def _bad_variant(text: str, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"Variant {text!r} can't be used: {problem}.",
        reason="VARIANT_INVALID",
        remedy="Write int8, int16, mixed, auto or fast-perf, or NAME=int8, each also with ,calibration=max,level=O2.",
        metadata={"variant": text},
    )
