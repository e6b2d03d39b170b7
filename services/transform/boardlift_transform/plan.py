"""Which passes run for a target, in which order, with which parameters, and why. Pure: no model bytes, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from boardlift_transform.inspect import ModelSummary
from boardlift_transform.passes import expand_quantised, replace_foreign, strip_dynamic_quantisation, unpack_weights
from boardlift_transform.refusal import Refusal
from boardlift_transform.request import INT8, INT16, Request, refuse_request
from boardlift_transform.targets import TargetProfile

STRIPPERS = ("expand-quantised", "unpack-weights", "strip-dynamic-quantisation", "strip-quantisation")
"""Passes that make another model of a quantised one: what comes before them is not equal to what comes after."""
QUANTISED = (
    expand_quantised.OPERATORS | strip_dynamic_quantisation.OPERATORS | unpack_weights.OPERATORS
    | frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"})
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """All that a step may decide by: the target, the model, the request."""

    target: TargetProfile
    """What the model is made for."""
    summary: ModelSummary
    """The model as it came."""
    request: Request
    """What the caller wants."""

    @property
    def opset(self) -> int:
        """Operator set to end at."""
        return self.request.opset or self.target.opset


@dataclass(frozen=True)
class Step:
    """One line of the default plan: a pass, why and when it runs, with what."""

    id: str
    """Pass id."""
    reason: str | Callable[[Asked], str]
    """Why it is there."""
    when: Callable[[Asked], bool] = lambda _: True
    """True where it runs; without one, always."""
    parameters: Callable[[Asked], Mapping[str, Any]] = lambda _: {}
    """Parameters of the pass; without one, none."""

    def planned(self, asked: Asked) -> PlannedPass:
        """This step for one request."""
        reason = self.reason if isinstance(self.reason, str) else self.reason(asked)
        return PlannedPass(self.id, reason, self.parameters(asked))


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
    refusals = refuse_request(summary, request)
    if request.passes:
        steps = [PlannedPass(pass_id, "asked for", parameters) for pass_id, parameters in request.passes]
    else:
        asked = Asked(target, summary, request)
        steps = [step.planned(asked) for step in STEPS if step.when(asked)]
    skipped = set(request.skip_passes)
    return Plan(tuple(s for s in steps if s.id not in skipped), tuple(refusals))


def _has(operators: Collection[str]) -> Callable[[Asked], bool]:
    """The model has one of these operators; what a local function holds is not known before it is inlined."""
    return lambda a: a.summary.functions > 0 or not a.summary.operators.keys().isdisjoint(operators)


def _quantised(asked: Asked) -> bool:
    kinds = {operator.split("::")[-1] for operator in asked.summary.operators}
    return asked.summary.functions > 0 or not kinds.isdisjoint(QUANTISED)


def _foreign(asked: Asked) -> bool:
    return asked.summary.functions > 0 or replace_foreign.is_needed(asked.summary.operators, asked.summary.opset)


def _int16(asked: Asked) -> bool:
    return asked.request.precision == INT16


def _not_int8(asked: Asked) -> bool:
    return asked.request.precision != INT8


def _wrapped(asked: Asked) -> bool:
    return asked.target.wrap_io


def _conversion(asked: Asked) -> str:
    before, target = asked.summary, asked.target
    return f"opset {before.opset} / IR {before.ir_version} -> {asked.opset} / {target.ir_version}"


def _precision(asked: Asked) -> dict[str, Any]:
    return {"precision": asked.request.precision}


def _trusted(_: Asked) -> dict[str, Any]:
    return {"trust_shapes": True}


_UNROLLED = frozenset({"RNN"})
"""Recurrent operators that the tool refuses; it unrolls GRU and LSTM itself, and better (see the pass)."""

STEPS: tuple[Step, ...] = (
    Step("inline-functions", lambda a: f"{a.summary.functions} local functions", lambda a: a.summary.functions > 0),
    Step(
        "fix-dynamic-dims",
        "the tool takes static shapes only",
        parameters=lambda a: {"input_shapes": dict(a.request.input_shapes)},
    ),
    Step(
        "freeze-inputs",
        "inputs were given as constants",
        lambda a: bool(a.request.frozen_inputs),
        lambda a: {"values": dict(a.request.frozen_inputs)},
    ),
    Step(
        "cut-outputs",
        "outputs were chosen",
        lambda a: bool(a.request.outputs),
        lambda a: {"outputs": list(a.request.outputs)},
    ),
    *(Step(stripper, "the tool quantises float models only", _quantised) for stripper in STRIPPERS),
    Step(
        "replace-foreign",
        "the tool knows ONNX's own operators only",
        _foreign,
        lambda a: {"keep": a.request.keep_foreign_domains},
    ),
    Step("fold-constants", "shape arithmetic must be gone before conversion"),
    Step("unroll-loop", "the tool has no control flow", _has({"Loop", "Scan"})),
    Step(
        "replace-sequences",
        "the tool knows tensors only",
        _has({"SequenceConstruct", "SequenceEmpty", "SplitToSequence"}),
    ),
    Step("if-to-where", "the tool has no control flow", _has({"If", "Loop", "Scan"})),
    Step("cast-to-float32", "the tool takes float32 only"),
    Step(
        "upgrade-opset",
        lambda a: f"opset {a.summary.opset} -> {a.opset}",
        lambda a: a.summary.opset < min(a.opset, 11),
        lambda a: {"opset": a.opset},
    ),
    Step("downgrade-opset", _conversion, parameters=lambda a: {"opset": a.opset, "ir_version": a.target.ir_version}),
    Step("fold-constants", "what the conversion added", parameters=_trusted),
    Step("eliminate-dead", "leftovers split subgraphs"),
    Step("simplify-masks", "a mask's indexing and logic run on the CPU, over tokens squared"),
    Step("replace-nan-tests", "the tool takes no IsNaN and no IsInf"),
    Step("tame-constants", "infinite constants poison calibration"),
    Step("soften-masks", "a deep mask leaves the scores no integer steps"),
    Step("normalize-details", "small things kill the tool late"),
    Step("suit-cpu-kernels", "kernels on the board's CPU take fewer forms than onnxruntime"),
    Step("replace-mean", "the runtime has no Mean"),
    Step("split-joint-heads", "with five axes the tool stores one channel padded to 128"),
    Step("merge-matmul-add", "one row instead of two"),
    Step("fold-batchnorm", "one row less per layer"),
    Step("merge-parallel-convs", "parallel branches are computed and rounded one by one", _has({"Conv"})),
    Step("fold-feature-norm", "a normalisation of tokens keeps two moves on either side"),
    Step(
        "unroll-recurrent",
        "the tool has no RNN",
        _has(_UNROLLED),
        lambda _: {"operators": sorted(_UNROLLED)},
    ),
    Step("wire-gru-state", "the tool dies on a GRU whose state is not read"),
    Step("trim-inputs", "the tool dies on an LSTM whose initial states are named and empty"),
    Step("fuse-depth-to-space", "a 6-D pixel shuffle runs on the CPU"),
    Step("fuse-sigmoid", "a Sigmoid spelt out leaves its table no step, or stops the tool in int16"),
    Step("ungroup-norm", "a Reshape into groups moves the whole map", parameters=_precision),
    Step("wrap-inputs", "the runtime feeds 4-D feature maps", _wrapped),
    Step("wrap-outputs", "the runtime reads 4-D tensors", _wrapped),
    Step("lift-to-4d", "keeps the calibrator's batch of 8 and 3-D Conv on the BPU"),
    Step("settle-resize", "shifted nearest and linear of odd sizes are wrong as integers"),
    Step("matmul-to-conv", "a constant matrix is 2.8 times faster as 1x1 Conv, and stays int16"),
    Step("matmul-to-products", "a MatMul of two feature maps falls back to int8 under int16", _int16),
    Step("turn-prelu", "the tool takes slopes along the channels only"),
    Step("decompose-activation", "the tool's tables know one HardSigmoid and one Selu only"),
    Step("eliminate-dead", "moves that now cancel"),
    Step("features-to-channels", "laid out by tokens, one channel is padded to 8"),
    Step("merge-moves", "every move copies, those over heads most of all"),
    Step("fold-channel-add", "bias of the new Conv"),
    Step("fold-scale", "the scale of an attention is computed entry by entry, as a depthwise Conv"),
    Step("fold-affine", "the weights of a normalisation read by several Conv are a depthwise Conv of their own"),
    Step("suit-gelu", "the tool has a table for one form of GELU only"),
    Step("fold-conv-transpose", "the tool folds an Add into a grouped ConvTranspose wrongly"),
    Step("fold-stride", "a stride over one signal is computed at stride 1"),
    Step("replace-average-pool", "padded AveragePool is wrong on the border, a wide one coarse"),
    Step("drop-padding-taps", "a rate that reaches past the map runs on the CPU", _has({"Conv"})),
    Step(
        "undilate-conv",
        "a dilated Conv with a stride runs on the CPU, and any dilated one in int8 under int16",
        parameters=lambda a: {"always": _int16(a)},
    ),
    Step("shuffle-conv-transpose", "every ConvTranspose falls back to int8 under int16", _int16),
    Step("crop-conv-transpose", "a ConvTranspose with uneven padding or holes runs on the CPU or not at all"),
    Step("crop-pad", "the runtime dies on a Pad by less than nothing"),
    Step("balance-padding", "end-heavy padding is wrong under int16"),
    Step("keep-int16", "pools and strided depthwise layers fall back to int8 under int16", _int16),
    Step("replace-min", "Min runs on the CPU"),
    Step("replace-neg", "Neg runs on the CPU"),
    Step("copy-scale", "the tool's compiler dies on one scaled channel that is read across channels and along"),
    Step("split-broadcast", "Expand and Tile over two axes run on the CPU"),
    Step("split-reductions", "reductions over several axes run on the CPU"),
    Step("replace-moves", "reversed slices and reflecting pads run on the CPU"),
    Step("slice-gather", "the code of a Gather of something computed dies in the simulator"),
    Step("replace-upsample", "nearest upsampling by 3 runs on the CPU"),
    Step(
        "split-depth-to-space", "any block but 2 is stored with one channel padded to 64 or 128", parameters=_precision
    ),
    Step("softmax-on-last-axis", "the BPU computes Softmax on axis 3 and ArgMax on axis 1", parameters=_precision),
    Step(
        "rows-to-channels", "an int16 Softmax under few heads is stored with the heads padded to 8 or more", _not_int8
    ),
    Step("split-clip", "a Clip that the tool takes for a threshold is lost where another one is in force"),
    Step(
        "split-wide-head",
        "a wide last layer falls back to int8 under int16",
        lambda a: _not_int8(a) and a.target.wide_head_channels > 0,
        lambda a: {"channels": a.target.wide_head_channels},
    ),
    Step("buffer-max-pool", "an unpadded MaxPool of what enters the BPU is wrong under int16", _not_int8),
    Step("buffer-cast", "a Cast makes steps of 1, also for what is joined with it; two in a row are dropped"),
    Step("free-batch", "a literal batch of 1 makes calibration 4 to 6 times slower"),
    Step("fold-constants", "shapes of everything new", parameters=_trusted),
    Step("eliminate-dead", "moves that now cancel"),
)
