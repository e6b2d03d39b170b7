"""The whole transform: load, plan, run, check, prove. No server, no toolchain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from boardlift_transform.check_batch import WRONG
from boardlift_transform.check_branches import check_branches
from boardlift_transform.check_ends import check_ends
from boardlift_transform.check_repeatable import check_repeatable
from boardlift_transform.check_result import Finding, check_result
from boardlift_transform.edit_graph import Array
from boardlift_transform.inspect import ModelSummary, TensorSpec, spec_of, summarise
from boardlift_transform.io_map import IoEntry, snippet
from boardlift_transform.load_model import LoadedModel, load_model
from boardlift_transform.plan import Plan, PlannedPass, plan
from boardlift_transform.prove import MAX_COMPARED, Proof, Subject, draw_samples, open_original, prove
from boardlift_transform.prove_quantised import find_float, measure_against_original, steps_to_strip
from boardlift_transform.record_steps import StepRecorder
from boardlift_transform.refusal import Refusal
from boardlift_transform.request import Request
from boardlift_transform.runner import Listener, PassReport, run_plan
from boardlift_transform.samples import input_bounds
from boardlift_transform.targets import find_target
from boardlift_transform.write_model import write_model

PROOF = "prove-equivalence"
"""Step of the listener that is no pass."""


@dataclass(frozen=True)
class TransformResult:
    """A transformed model with its proof."""

    model: onnx.ModelProto
    """The transformed model."""
    io_map: tuple[IoEntry, ...]
    """How to feed and read it."""
    plan: Plan
    """What was to be done, and why."""
    passes: tuple[PassReport, ...]
    """What each step did."""
    proof: Proof
    """Original against result, in float."""
    before: ModelSummary
    """The original model."""
    after: ModelSummary
    """The transformed model."""
    findings: tuple[Finding, ...]
    """Things worth knowing."""
    shapes_from_samples: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Shapes that were taken from the samples."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed because the caller did not say."""
        taken = [
            f"{name}: shape {list(shape)}, as the samples have it" for name, shape in self.shapes_from_samples.items()
        ]
        return (*taken, *(a for report in self.passes for a in report.assumptions))

    @property
    def snippet(self) -> str:
        """Python that feeds and reads the result."""
        return snippet(self.io_map)

    def save(self, path: str | Path) -> None:
        """Write the model; a large one is not held twice."""
        write_model(self.model, Path(path))


def transform(
    model: onnx.ModelProto | bytes | str | Path,
    target: str = "rdk-x5",
    *,
    outputs: Sequence[str] = (),
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    passes: Sequence[str | tuple[str, Mapping[str, Any]]] = (),
    skip_passes: Sequence[str] = (),
    frozen_inputs: Mapping[str, Any] | None = None,
    precision: str = "",
    opset: int = 0,
    keep_foreign_domains: bool = False,
    samples: Mapping[str, Array] | None = None,
    external: Mapping[str, Path] | None = None,
    listener: Listener | None = None,
    verify: bool = True,
    diff: bool = False,
    keep_steps: Path | None = None,
) -> TransformResult:
    """Bring a model into the form that a target's toolchain takes, and prove that it computes the same.

    Args:
        model: The model, its bytes, or its path.
        target: Target profile.
        outputs: Outputs to keep, inner values included; empty keeps all.
        input_shapes: Static shapes; missing batch dimensions become 1.
        passes: Pass ids (or id and parameters) to run in this order instead of the plan's choice.
        skip_passes: Pass ids that must not run.
        frozen_inputs: Inputs to turn into constants.
        precision: `int8`, `int16` or empty for both.
        opset: Operator set to end at; 0 takes the target's.
        keep_foreign_domains: Keep operators of foreign domains.
        samples: Arrays `[N, ...]` by input name for the proof; random inputs when absent.
        external: External weight files by name, for a model given as bytes.
        listener: Told about each step of the plan, and as step `prove-equivalence` about each sample; what it raises
            ends the work.
        verify: False leaves the two reference runs out (for timing the rest); the result then carries no comparison.
        diff: Keep the nodes that each step added, removed and rewrote (`passes[i].diff`).
        keep_steps: Folder for the model before the first step and after each one that changed it, for viewers.

    Raises:
        Refusal: When the model cannot be transformed, or the result is not equal to the original.
    """
    request = Request(
        outputs=tuple(outputs),
        input_shapes=dict(input_shapes or {}),
        frozen_inputs=dict(frozen_inputs or {}),
        passes=tuple((p, {}) if isinstance(p, str) else (p[0], p[1]) for p in passes),
        skip_passes=tuple(skip_passes),
        precision=precision,
        opset=opset,
        keep_foreign_domains=keep_foreign_domains,
    )
    return transform_loaded(load_model(model, external), target, request, samples, listener, verify, diff, keep_steps)


def transform_loaded(
    loaded: LoadedModel,
    target: str,
    request: Request,
    samples: Mapping[str, Array] | None = None,
    listener: Listener | None = None,
    verify: bool = True,
    diff: bool = False,
    keep_steps: Path | None = None,
) -> TransformResult:
    """`transform` for a model that is loaded and a request that is built."""
    profile = find_target(target)
    working = loaded.to_ir() if verify else loaded.move_to_ir()
    before = summarise(working, loaded.sha256)
    bounds = input_bounds(working) if verify else {}
    taken = shapes_from_samples(before.inputs, samples or {}, request)
    request = replace(request, input_shapes={**taken, **request.input_shapes})
    chosen = plan(profile, before, request)
    if chosen.refusals:
        raise chosen.refusals[0]
    recorder = StepRecorder(working, keep_steps) if diff or keep_steps is not None else None
    shaping = 1 + max((i for i, step in enumerate(chosen.passes) if step.id == "fix-dynamic-dims"), default=-1)
    count = len(chosen.passes)
    reports = run_plan(working, chosen.passes[:shaping], _shifted(listener, 0, count), recorder)
    inputs = concrete_inputs(loaded, working, request)
    original = open_original(loaded.proto) if verify else None  # a model that does not run is refused before any work
    stripped = max(shaping, steps_to_strip(chosen.passes), _steps_to_cut(chosen.passes))
    reports += run_plan(working, chosen.passes[shaping:stripped], _shifted(listener, shaping, count), recorder)
    inside = find_float(working, reports, loaded) if verify else None
    check_repeatable(working)
    if not request.passes:
        check_ends(working)
    reports += run_plan(working, chosen.passes[stripped:], _shifted(listener, stripped, count), recorder)
    findings = check_result(working, profile, request.opset or profile.opset, partial=bool(request.passes))
    feeds, is_random = draw_samples(bounds, inputs, request, samples) if verify else ([], True)
    after = summarise(working)

    def on_sample(done: int) -> None:
        if listener is not None:
            listener(PROOF, done, len(feeds))

    on_sample(0)

    def proven(steps: Plan, known: Sequence[Mapping[str, Array]] = ()) -> Proof:
        if inside is None:
            return prove(Subject(loaded, inputs, working, steps, feeds, is_random, original, known, on_sample), verify)
        rest = replace(steps, passes=steps.passes[inside.steps :])
        some = feeds[:MAX_COMPARED]
        return prove(Subject(inside.loaded, inputs, working, rest, some, is_random, None, known, on_sample))

    proof = proven(chosen)
    for guard in (False, True):
        if not proof.passed or proof.batch != WRONG:
            break
        step = PlannedPass("pin-batch", "batch 8 ran but differed from single runs: only batch 1", {"guard": guard})
        reports += run_plan(working, [step], _shifted(listener, len(reports), len(reports) + 1), recorder)
        chosen = replace(chosen, passes=(*chosen.passes, step))
        proof = proven(chosen, proof.reference)
    if not proof.passed:
        raise _not_equivalent(proof)
    if proof.batch == WRONG:
        raise _mixes_the_batch(proof)
    if verify and any(report.id == "if-to-where" and report.applied for report in reports):
        findings += check_branches(loaded, chosen.passes, feeds, is_random)
    if inside is not None:
        proof = measure_against_original(proof, inside, loaded, feeds, original, on_sample)
    return TransformResult(
        model=proof.model,
        io_map=proof.io_map,
        plan=chosen,
        passes=tuple(reports),
        proof=proof,
        before=before,
        after=after,
        findings=(*findings, *proof.findings),
        shapes_from_samples=taken,
    )


def _shifted(listener: Listener | None, start: int, count: int) -> Listener | None:
    """The listener for a part of a plan of `count` steps that begins at `start`."""
    if listener is None:
        return None
    told = listener
    return lambda step, index, _: told(step, start + index, count)


def _steps_to_cut(steps: Sequence[PlannedPass]) -> int:
    """Number of leading steps up to the one that drops outputs; 0 when there is none."""
    return 1 + max((i for i, step in enumerate(steps) if step.id == "cut-outputs"), default=-1)


def concrete_inputs(loaded: LoadedModel, working: ir.Model, request: Request) -> list[TensorSpec]:
    """The user's inputs with static shapes, for feeding; also when the chosen passes leave dimensions open."""
    inputs = [spec_of(v) for v in working.graph.inputs]
    if all(-1 not in spec.shape for spec in inputs):
        return inputs
    copy = loaded.to_ir()
    run_plan(copy, [PlannedPass("fix-dynamic-dims", "the proof needs shapes", {"input_shapes": request.input_shapes})])
    return [spec_of(v) for v in copy.graph.inputs]


def shapes_from_samples(
    inputs: Sequence[TensorSpec], samples: Mapping[str, Array], request: Request
) -> dict[str, tuple[int, ...]]:
    """Open dimensions of inputs that nobody gave a shape for, as the samples have them; the batch is 1."""
    shapes = {}
    for spec in inputs:
        if spec.name not in samples or spec.name in request.input_shapes or -1 not in spec.shape:
            continue
        item = samples[spec.name].shape[1:]
        full = item if len(item) == len(spec.shape) else (1, *item)
        if len(full) == len(spec.shape):
            shapes[spec.name] = tuple(int(h) if w == -1 else w for h, w in zip(full, spec.shape, strict=True))
    return shapes


def _mixes_the_batch(proof: Proof) -> Refusal:
    found = next((f for f in proof.findings if f.code == "BATCH_WRONG"), None)
    return Refusal(
        "BATCH_WRONG",
        f"{found.message if found else 'batch 8 differs from single runs'}, and cannot be pinned to batch 1: the"
        " calibrator would use wrong numbers",
        remedy="export the model with a literal batch of 1",
        metadata={"output": found.subject if found else ""},
    )


def _not_equivalent(proof: Proof) -> Refusal:
    worst = max(proof.comparisons, key=lambda c: c.max_abs / (c.tolerance or 1e-30))
    return Refusal(
        "NOT_EQUIVALENT",
        f"output {worst.output} differs by {worst.max_abs:.3g} (allowed {worst.tolerance:.3g})"
        + (f"; the pass to blame is {proof.guilty}" if proof.guilty else ""),
        remedy=f"skip {proof.guilty}" if proof.guilty else "report this model",
        metadata={"output": worst.output, "max_abs": worst.max_abs, "tolerance": worst.tolerance, "pass": proof.guilty},
    )
