"""The proof: original and result on the same samples, and the guilty pass on a mismatch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir

from boardlift_transform.check_batch import UNCHECKED, check_batch
from boardlift_transform.check_result import Finding
from boardlift_transform.edit_graph import Array, names_of
from boardlift_transform.equivalence import (
    EXACT_TOLERANCE,
    HALF_TOLERANCE,
    ROUNDING_TOLERANCE,
    OutputComparison,
    Session,
    compare,
    compare_results,
    run_result,
)
from boardlift_transform.inspect import TensorSpec
from boardlift_transform.io_map import IoEntry, io_map, old_outputs, per_sample
from boardlift_transform.load_model import LoadedModel
from boardlift_transform.measure_rounding import Original, allow_rounding
from boardlift_transform.passes import PASSES_BY_ID
from boardlift_transform.passes._base import BIT_EXACT
from boardlift_transform.plan import Plan, PlannedPass
from boardlift_transform.refusal import Refusal
from boardlift_transform.request import Request
from boardlift_transform.runner import find_guilty, run_plan
from boardlift_transform.samples import Bounds, random_samples

NEWEST_RUN_IR = 10
MAX_SAMPLES = 512
MAX_COMPARED = 64


@dataclass(frozen=True)
class Subject:
    """What is to be proven."""

    loaded: LoadedModel
    """The user's model."""
    inputs: Sequence[TensorSpec]
    """Its inputs with the shapes that were fixed."""
    working: ir.Model
    """The result."""
    plan: Plan
    """How it was made."""
    feeds: Sequence[Mapping[str, Array]]
    """Samples of the user's inputs."""
    is_random: bool
    """True when the samples are random."""
    original: Session | None = None
    """The user's model in onnxruntime, when it was opened already."""
    reference: Sequence[Mapping[str, Array]] = ()
    """Its outputs per sample, when an earlier proof computed them."""
    on_sample: Callable[[int], None] = lambda done: None
    """Told how many samples the user's model has run; what it raises ends the proof."""


@dataclass(frozen=True)
class Proof:
    """Outcome of the comparison."""

    model: onnx.ModelProto
    """The result as a protobuf."""
    io_map: tuple[IoEntry, ...]
    """Pairs of old and new tensors."""
    comparisons: tuple[OutputComparison, ...]
    """Errors per output; empty when the proof was left out."""
    reference: tuple[Mapping[str, Array], ...]
    """Outputs of the original model, one dict per sample; all samples, of which at most 64 were compared."""
    results: tuple[Mapping[str, Array], ...]
    """Outputs of the result on the samples that were compared, as the original names and shapes them."""
    random_inputs: bool
    """True when random inputs were used."""
    batch: str
    """`proven`: batch 8 equals eight runs at batch 1. `literal`: batch 8 does not run, the calibrator will fall back
    to 1.
    `wrong`: it runs and differs. `unchecked`: the model is too large to try."""
    guilty: str = ""
    """Pass to blame when the comparison failed."""
    findings: tuple[Finding, ...] = ()
    """Things worth knowing."""

    @property
    def passed(self) -> bool:
        """True when every output is within its tolerance."""
        return all(c.passed for c in self.comparisons)


def draw_samples(
    bounds: Bounds, inputs: Sequence[TensorSpec], request: Request, samples: Mapping[str, Array] | None
) -> tuple[list[dict[str, Array]], bool]:
    """Feeds for the user's model: from the caller's arrays, else random; frozen inputs get their constant."""
    frozen = {
        spec.name: np.broadcast_to(np.asarray(request.frozen_inputs[spec.name], spec.dtype), spec.shape)
        for spec in inputs
        if spec.name in request.frozen_inputs
    }
    free = [spec for spec in inputs if spec.name not in frozen]
    if not samples:
        feeds = random_samples(bounds, free)
    else:
        lengths = {name: len(samples[name]) for name in (s.name for s in free) if name in samples}
        if len(set(lengths.values())) > 1 or 0 in lengths.values():
            raise Refusal("DATASET_LENGTH", f"inputs have different numbers of samples: {lengths}", metadata=lengths)
        count = min([MAX_SAMPLES, *lengths.values()])
        feeds = [per_sample(samples, free, index) for index in range(count)]
    return [{**feed, **frozen} for feed in feeds], not samples


def prove(subject: Subject, verify: bool = True) -> Proof:
    """Compare, blame, and try batch 8."""
    model = ir.to_proto(subject.working)
    names = names_of(subject.working.graph.outputs)
    if not verify:
        outputs = [TensorSpec(n, "float32", ()) for n in names]
        for name, value in list(subject.working.graph.initializers.items()):
            del subject.working.graph.initializers[name]
            value.const_value = None  # the proto holds the weights now; large models would hold them twice
        return Proof(model, tuple(io_map(subject.inputs, subject.working, outputs)), (), (), (), True, UNCHECKED)
    reference = subject.reference or _run_original(subject, names)
    outputs = [TensorSpec(n, str(reference[0][n].dtype), reference[0][n].shape) for n in names]
    entries = io_map(subject.inputs, subject.working, outputs)
    tolerance = tolerance_of(subject.plan.passes, subject.loaded)
    some, feeds = reference[:MAX_COMPARED], subject.feeds[:MAX_COMPARED]
    results = run_result(model.SerializeToString(), entries, feeds)
    made = tuple(old_outputs(entries, result) for result in results)
    comparisons = compare_results(some, made, tolerance)
    guilty = ""
    batch, findings = UNCHECKED, list[Finding]()
    if not all(c.passed for c in comparisons):
        original = Original(subject.loaded.proto, open_original, feeds, some)
        comparisons, findings = allow_rounding(comparisons, original, made)
    if not all(c.passed for c in comparisons):
        guilty = _blame(subject, outputs, some)
    else:
        batch, more = check_batch(model, entries, feeds, results)
        findings += more
    return Proof(
        model,
        tuple(entries),
        tuple(comparisons),
        tuple(reference),
        made,
        subject.is_random,
        batch,
        guilty,
        tuple(findings),
    )


def open_original(proto: onnx.ModelProto, names: Sequence[str] = ()) -> Session:
    """The user's model in stock onnxruntime; with inner values as outputs where they are asked for.

    Raises:
        Refusal: MODEL_DOES_NOT_RUN.
    """
    return Session(_with_outputs(proto, names), list(names) or None)


def _run_original(subject: Subject, names: Sequence[str]) -> list[dict[str, Array]]:
    session = subject.original
    if session is None or not set(names) <= set(session.outputs):
        session = open_original(subject.loaded.proto, names)
    found = []
    for feed in subject.feeds:
        found.append(session.run(feed, names))
        subject.on_sample(len(found))
    return found


def tolerance_of(steps: Sequence[PlannedPass], loaded: LoadedModel) -> float:
    """Allowed error relative to the output's largest magnitude: by the passes that run and the model's float type."""
    halves = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    if any(t.data_type in halves for t in loaded.proto.graph.initializer):
        return HALF_TOLERANCE
    exact = all(PASSES_BY_ID[step.id].exactness == BIT_EXACT for step in steps)
    return EXACT_TOLERANCE if exact else ROUNDING_TOLERANCE


def _with_outputs(proto: onnx.ModelProto, names: Sequence[str]) -> bytes:
    have = {o.name for o in proto.graph.output}
    missing = [name for name in names if name not in have]
    node_names = [n.name for n in proto.graph.node if n.name]
    unique = len(set(node_names)) == len(node_names)
    if not missing and unique and proto.ir_version <= NEWEST_RUN_IR:
        return proto.SerializeToString()
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    if not unique:  # onnxruntime refuses what exporters do write
        for node in copy.graph.node:
            node.ClearField("name")
    copy.ir_version = min(copy.ir_version, NEWEST_RUN_IR)
    for name in missing:
        copy.graph.output.append(onnx.ValueInfoProto(name=name))
    return copy.SerializeToString()


def _blame(subject: Subject, outputs: Sequence[TensorSpec], reference: Sequence[Mapping[str, Array]]) -> str:
    def good_after(steps: Sequence[PlannedPass]) -> bool:
        model = subject.loaded.to_ir()
        run_plan(model, steps)
        try:
            entries = io_map(subject.inputs, model, outputs)
        except KeyError:
            return True  # outputs are not cut yet
        tolerance = tolerance_of(steps, subject.loaded)
        try:
            found = compare(
                reference, ir.to_proto(model).SerializeToString(), entries, subject.feeds[: len(reference)], tolerance
            )
        except Refusal:
            return False
        return all(c.passed for c in found)

    step = find_guilty(subject.plan.passes, good_after)
    return step.id if step is not None else ""
