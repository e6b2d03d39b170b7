"""Which passes run for a target, in which order, with which parameters, and why. Pure: no model bytes, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boardlift_transform.inspect import ModelSummary
from boardlift_transform.passes import (
    PASSES,
    PASSES_BY_ID,
    expand_quantised,
    replace_foreign,
    strip_dynamic_quantisation,
)
from boardlift_transform.refusal import Refusal
from boardlift_transform.targets import TargetProfile

INT16, INT8 = "int16", "int8"
STRIPPERS = ("expand-quantised", "strip-dynamic-quantisation", "strip-quantisation")
"""Passes that make another model of a quantised one: what comes before them is not equal to what comes after."""
QUANTISED = (
    expand_quantised.OPERATORS | strip_dynamic_quantisation.OPERATORS
    | frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"})
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """What a caller wants done."""

    outputs: Sequence[str] = ()
    """Outputs to keep; empty keeps all."""
    input_shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Static shapes of inputs."""
    frozen_inputs: Mapping[str, Any] = field(default_factory=dict)
    """Inputs to turn into constants, with their values."""
    passes: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Passes to run in this order, with parameters; empty lets the plan choose."""
    skip_passes: Sequence[str] = ()
    """Passes that must not run."""
    precision: str = ""
    """`int8`, `int16` or empty for both."""
    opset: int = 0
    """Operator set to end at; 0 takes the target's."""
    keep_foreign_domains: bool = False
    """Leave operators of foreign domains in the graph instead of refusing them."""


@dataclass(frozen=True)
class PlannedPass:
    """One step of a plan."""

    id: str
    """Pass id."""
    reason: str
    """Why it is there."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters for this run."""


@dataclass(frozen=True)
class Plan:
    """Ordered steps, and what is refused before anything is done."""

    passes: tuple[PlannedPass, ...]
    """Steps in order; an id may come twice."""
    refusals: tuple[Refusal, ...] = ()
    """Reasons why the model cannot be transformed as asked."""


def plan(target: TargetProfile, summary: ModelSummary, request: Request) -> Plan:
    """Choose the steps for a model."""
    refusals = _refusals(summary, request)
    if request.passes:
        steps = [PlannedPass(pass_id, "asked for", parameters) for pass_id, parameters in request.passes]
    else:
        steps = _chosen(target, summary, request)
    skipped = set(request.skip_passes)
    return Plan(tuple(s for s in steps if s.id not in skipped), tuple(refusals))


def _refusals(summary: ModelSummary, request: Request) -> list[Refusal]:
    found = []
    for pass_id in [p for p, _ in request.passes] + list(request.skip_passes):
        if pass_id not in PASSES_BY_ID:
            known = ", ".join(p.id for p in PASSES)
            found.append(
                Refusal(
                    "PASS_UNKNOWN", f"no pass named {pass_id!r}", remedy=f"passes: {known}", metadata={"pass": pass_id}
                )
            )
    if request.precision not in ("", INT8, INT16):
        found.append(
            Refusal("PRECISION_UNKNOWN", f"no precision {request.precision!r}", remedy="int8, int16 or empty for both")
        )
    unknown = {op: node for op, node in summary.foreign.items() if op.partition("::")[0] not in replace_foreign.DOMAINS}
    if unknown and not request.keep_foreign_domains and summary.functions == 0:
        operator, node = next(iter(unknown.items()))
        found.append(
            Refusal(
                "FOREIGN_DOMAIN",
                f"node {node} is {operator}, an operator that neither ONNX nor onnxruntime has"
                + (f"; all of them: {', '.join(sorted(unknown))[:300]}" if len(unknown) > 1 else ""),
                remedy="export without custom operators, or cut the model in front of it (onnx.utils.extract_model)",
                metadata={"node": node, "operators": ",".join(sorted(unknown))},
            )
        )
    return found


def _chosen(target: TargetProfile, summary: ModelSummary, request: Request) -> list[PlannedPass]:
    steps: list[PlannedPass] = []
    opset = request.opset or target.opset
    if summary.functions:
        steps.append(PlannedPass("inline-functions", f"{summary.functions} local functions"))
    steps.append(
        PlannedPass(
            "fix-dynamic-dims", "the tool takes static shapes only", {"input_shapes": dict(request.input_shapes)}
        )
    )
    if request.frozen_inputs:
        steps.append(
            PlannedPass("freeze-inputs", "inputs were given as constants", {"values": dict(request.frozen_inputs)})
        )
    if request.outputs:
        steps.append(PlannedPass("cut-outputs", "outputs were chosen", {"outputs": list(request.outputs)}))
    kinds = {op.split("::")[-1] for op in summary.operators}
    if summary.functions or kinds & QUANTISED:
        steps += [PlannedPass(name, "the tool quantises float models only") for name in STRIPPERS]
    if summary.functions or replace_foreign.is_needed(summary.operators, summary.opset):
        keep = {"keep": request.keep_foreign_domains}
        steps.append(PlannedPass("replace-foreign", "the tool knows ONNX's own operators only", keep))
    steps.append(PlannedPass("fold-constants", "shape arithmetic must be gone before conversion"))
    for name, operators, reason in _CONTROL_FLOW:
        if summary.functions or operators & set(summary.operators):
            steps.append(PlannedPass(name, reason))
    steps.append(PlannedPass("cast-to-float32", "the tool takes float32 only"))
    if summary.opset < min(opset, 11):
        steps.append(PlannedPass("upgrade-opset", f"opset {summary.opset} -> {opset}", {"opset": opset}))
    steps.append(
        PlannedPass(
            "downgrade-opset",
            f"opset {summary.opset} / IR {summary.ir_version} -> {opset} / {target.ir_version}",
            {"opset": opset, "ir_version": target.ir_version},
        )
    )
    trusted = {"trust_shapes": True}
    steps.append(PlannedPass("fold-constants", "what the conversion added", trusted))
    for name, reason in _TARGET_STEPS:
        if name not in PASSES_BY_ID:
            continue
        if name in ("wrap-inputs", "wrap-outputs") and not target.wrap_io:
            continue
        if name in ("keep-int16", "matmul-to-products", "shuffle-conv-transpose") and request.precision != INT16:
            continue
        if name == "unroll-recurrent":
            if unrolled := sorted(_UNROLLED & set(summary.operators)):
                steps.append(PlannedPass(name, reason, {"operators": unrolled}))
            continue
        if name == "undilate-conv":
            steps.append(PlannedPass(name, reason, {"always": request.precision == INT16}))
            continue
        if name == "buffer-max-pool" and request.precision == INT8:
            continue
        if name == "split-wide-head":
            if request.precision == INT8 or not target.wide_head_channels:
                continue
            steps.append(PlannedPass(name, reason, {"channels": target.wide_head_channels}))
            continue
        if name in ("split-depth-to-space", "softmax-on-last-axis", "ungroup-norm"):
            steps.append(PlannedPass(name, reason, {"precision": request.precision}))
            continue
        steps.append(PlannedPass(name, reason, trusted if name == "fold-constants" else {}))
    return steps


_UNROLLED = frozenset({"RNN"})
"""Recurrent operators that the tool refuses; it unrolls GRU and LSTM itself, and better (see the pass)."""
_CONTROL_FLOW: tuple[tuple[str, frozenset[str], str], ...] = (
    ("unroll-loop", frozenset({"Loop", "Scan"}), "the tool has no control flow"),
    (
        "replace-sequences",
        frozenset({"SequenceConstruct", "SequenceEmpty", "SplitToSequence"}),
        "the tool knows tensors only",
    ),
    ("if-to-where", frozenset({"If", "Loop", "Scan"}), "the tool has no control flow"),
)

_TARGET_STEPS: tuple[tuple[str, str], ...] = (
    ("eliminate-dead", "leftovers split subgraphs"),
    ("replace-nan-tests", "the tool takes no IsNaN and no IsInf"),
    ("tame-constants", "infinite constants poison calibration"),
    ("normalize-details", "small things kill the tool late"),
    ("suit-cpu-kernels", "kernels on the board's CPU take fewer forms than onnxruntime"),
    ("replace-mean", "the runtime has no Mean"),
    ("split-joint-heads", "with five axes the tool stores one channel padded to 128"),
    ("merge-matmul-add", "one row instead of two"),
    ("fold-batchnorm", "one row less per layer"),
    ("unroll-recurrent", "the tool has no RNN"),
    ("wire-gru-state", "the tool dies on a GRU whose state is not read"),
    ("trim-inputs", "the tool dies on an LSTM whose initial states are named and empty"),
    ("fuse-depth-to-space", "a 6-D pixel shuffle runs on the CPU"),
    ("ungroup-norm", "a Reshape into groups moves the whole map"),
    ("wrap-inputs", "the runtime feeds 4-D feature maps"),
    ("wrap-outputs", "the runtime reads 4-D tensors"),
    ("lift-to-4d", "keeps the calibrator's batch of 8 and 3-D Conv on the BPU"),
    ("matmul-to-conv", "a constant matrix is 2.8 times faster as 1x1 Conv, and stays int16"),
    ("matmul-to-products", "a MatMul of two feature maps falls back to int8 under int16"),
    ("turn-prelu", "the tool takes slopes along the channels only"),
    ("decompose-activation", "the tool's tables know one HardSigmoid and one Selu only"),
    ("eliminate-dead", "moves that now cancel"),
    ("features-to-channels", "laid out by tokens, one channel is padded to 8"),
    ("merge-moves", "every move copies, those over heads most of all"),
    ("fold-channel-add", "bias of the new Conv"),
    ("fold-conv-transpose", "the tool folds an Add into a grouped ConvTranspose wrongly"),
    ("fold-stride", "a stride over one signal is computed at stride 1"),
    ("replace-average-pool", "padded AveragePool is wrong on the border, a wide one coarse"),
    ("undilate-conv", "a dilated Conv with a stride runs on the CPU, and any dilated one in int8 under int16"),
    ("shuffle-conv-transpose", "every ConvTranspose falls back to int8 under int16"),
    ("crop-conv-transpose", "a ConvTranspose with uneven padding or holes runs on the CPU or not at all"),
    ("balance-padding", "end-heavy padding is wrong under int16"),
    ("keep-int16", "pools and strided depthwise layers fall back to int8 under int16"),
    ("replace-min", "Min runs on the CPU"),
    ("replace-neg", "Neg runs on the CPU"),
    ("split-broadcast", "Expand and Tile over two axes run on the CPU"),
    ("split-reductions", "reductions over several axes run on the CPU"),
    ("replace-moves", "reversed slices and reflecting pads run on the CPU"),
    ("slice-gather", "the code of a Gather of something computed dies in the simulator"),
    ("replace-upsample", "nearest upsampling by 3 runs on the CPU"),
    ("split-depth-to-space", "any block but 2 is stored with one channel padded to 64 or 128"),
    ("softmax-on-last-axis", "the BPU computes Softmax on axis 3 and ArgMax on axis 1"),
    ("split-clip", "a Clip that the tool takes for a threshold is lost where another one is in force"),
    ("split-wide-head", "a wide last layer falls back to int8 under int16"),
    ("buffer-max-pool", "an unpadded MaxPool of what enters the BPU is wrong under int16"),
    ("buffer-cast", "a Cast makes steps of 1, also for what is joined with it; two in a row are dropped"),
    ("free-batch", "a literal batch of 1 makes calibration 4 to 6 times slower"),
    ("fold-constants", "shapes of everything new"),
    ("eliminate-dead", "moves that now cancel"),
)
