"""Find what the tool would refuse before it starts; pure. Codes are those the tool's own failure would get."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from boardlift_compiler import op_truth
from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.read_model import ModelSummary, Node, Weight
from boardlift_compiler.spec import (
    CALIBRATION_TYPES,
    COMPILE_MODES,
    METHODS,
    NORM_TYPES,
    OPTIMIZE_LEVELS,
    PRESETS,
    PURPOSES,
    REMOVABLE_TYPES,
    SOURCE_TYPES,
    TYPE_PAIRS,
    CompileSpec,
    InputSpec,
    NodeOverride,
)

MAX_OPSET, MAX_IR, MAX_OUTPUTS = 11, 9, 32
OFFICIAL_DOMAINS = ("", "ai.onnx")
USABLE_NAME = re.compile(r"[A-Za-z0-9_.:/\-+@#\[\]() ]{1,256}")
USABLE_INPUT = re.compile(r"[A-Za-z0-9_.:\-/]{1,128}")
OPTIMIZATION_WORD = re.compile(
    r"set_(?:model_output|all_nodes|[A-Z][A-Za-z0-9]{1,40}_(?:input|output))_int(?:8|16)"
    r"|asymmetric|bias_correction|lstm_batch_last"
)
FLOAT_TYPES = ("float16", "float64", "bfloat16")


def preflight(spec: CompileSpec, model: ModelSummary) -> StageFailure | None:
    """Return the first refusal, or None when nothing known stands against the run."""
    return next(iter(find_refusals(spec, model)), None)


def find_refusals(spec: CompileSpec, model: ModelSummary) -> Iterator[StageFailure]:
    """Yield every known refusal: the model's first, then the settings', then where both do not fit."""
    yield from check_model(model, {i.name: i.shape for i in spec.inputs})
    yield from check_settings(spec)
    yield from _check_inputs(spec, model)
    yield from _check_names(spec, model)


def check_settings(spec: CompileSpec) -> Iterator[StageFailure]:
    """Yield what is wrong with the settings whatever the model is: values that do not exist or contradict others."""
    for item in spec.inputs:
        yield from _check_input(item)
    yield from _check_knobs(spec)
    for override in spec.nodes:
        yield from _check_override(override)


def check_model(model: ModelSummary, shapes: dict[str, tuple[int, ...]] | None = None) -> Iterator[StageFailure]:
    """Yield what makes the tool refuse the model whatever the settings.

    Args:
        model: The model.
        shapes: Fixed shapes that are given for dynamic inputs.
    """
    if model.opset > MAX_OPSET:
        yield make_failure("OPSET_TOO_HIGH", str(model.opset))
    if model.ir_version > MAX_IR:
        yield make_failure("IR_VERSION_TOO_HIGH", str(model.ir_version))
    foreign = sorted({n.name or n.op_type for n in model.nodes if n.domain not in OFFICIAL_DOMAINS})
    if foreign:
        yield make_failure("CUSTOM_DOMAIN", ", ".join(foreign[:8]))
    for tensor in model.inputs:
        fixed = (shapes or {}).get(tensor.name, ())
        if any(not isinstance(d, int) or d <= 0 for d in (fixed or tensor.shape)):
            yield make_failure("DYNAMIC_SHAPE", f"{tensor.name} {list(fixed or tensor.shape)}")
        if not USABLE_INPUT.fullmatch(tensor.name) or ".." in tensor.name:
            yield make_failure("NAME_UNUSABLE", repr(tensor.name))
    for weight in model.weights.values():
        if weight.external:
            yield make_failure("EXTERNAL_DATA", weight.name)
        if weight.dtype in FLOAT_TYPES:
            yield make_failure("WEIGHT_TYPE_UNSUPPORTED", weight.name)
        if weight.has_nan:
            yield make_failure("NAN_WEIGHT", weight.name)
    if len(model.outputs) > MAX_OUTPUTS:
        yield make_failure("TOO_MANY_OUTPUTS", str(MAX_OUTPUTS))
    if not model.nodes:
        yield make_failure("NOTHING_FOR_BPU")
    used = {i for n in model.nodes for i in n.inputs} | {o.name for o in model.outputs}
    for node in model.nodes:
        yield from _check_node(node, model, used)


def _check_node(node: Node, model: ModelSummary, used: set[str]) -> Iterator[StageFailure]:
    name = node.name or node.op_type
    weights = [model.weights.get(i) for i in node.inputs]
    if node.op_type in op_truth.NO_KERNEL or (node.op_type == "Mean" and len(node.inputs) > 1):
        yield make_failure("CPU_OPERATOR_UNSUPPORTED", node.op_type, (f"node {name}",))
    elif node.op_type in op_truth.QDQ:
        yield make_failure("QDQ_UNSUPPORTED", name)
    elif node.op_type in op_truth.CONTROL_FLOW:
        cure = op_truth.CONTROL_FLOW[node.op_type]
        yield replace(make_failure("CONTROL_FLOW_UNSUPPORTED", name), transform_pass=cure)
    elif node.op_type == "RNN":
        refused = make_failure("CPU_OPERATOR_CONSTRAINT", name, ("the CPU kernel of RNN takes other inputs",))
        yield replace(refused, transform_pass=op_truth.RECURRENT["RNN"])
    elif node.op_type in ("CumSum", "ScatterElements") and _dtype(weights, 1) == "int64":
        yield make_failure("INT64_AXIS", name)
    elif node.op_type == "GRU" and sum(o in used for o in node.outputs if o) < 2:
        yield make_failure("GRU_UNROLL", name)
    elif node.op_type in ("Conv", "ConvTranspose") and _rank(weights, 1) > 4:
        yield make_failure("CONV_RANK_UNSUPPORTED", name)
    elif node.op_type == "Clip" and any(w is not None and w.shape for w in weights[1:]):
        yield make_failure("CLIP_BOUND_RANK", name)


def _dtype(weights: list[Weight | None], index: int) -> str:
    weight = weights[index] if index < len(weights) else None
    return weight.dtype if weight is not None else ""


def _rank(weights: list[Weight | None], index: int) -> int:
    weight = weights[index] if index < len(weights) else None
    return len(weight.shape) if weight is not None else 0


def _check_inputs(spec: CompileSpec, model: ModelSummary) -> Iterator[StageFailure]:
    shapes = {t.name: t.shape for t in model.inputs}
    for item in spec.inputs:
        if item.name not in shapes:
            yield make_failure("INPUT_NAME_UNKNOWN", item.name)
            continue
        shape = item.shape or tuple(d for d in shapes[item.name] if isinstance(d, int))
        if item.is_image:
            yield from _check_image(item, shape)
        fixed = all(isinstance(d, int) and d > 0 for d in shapes[item.name])
        if item.shape and fixed and tuple(item.shape) != tuple(shapes[item.name]):
            text = f"{item.name}: the model has {list(shapes[item.name])}, the request {list(item.shape)}"
            yield make_failure("INPUT_SHAPE_MISMATCH", text)


def _check_input(item: InputSpec) -> Iterator[StageFailure]:
    if item.type_rt not in TYPE_PAIRS.get(item.type_train, ()):
        yield make_failure("INPUT_TYPE_PAIR", item.type_train, (f"{item.name}: {item.type_train} -> {item.type_rt}",))
    if item.is_image:
        channels = 1 if item.type_train == "gray" else 3
        counts = (len(item.mean), len(item.scale))
        wanted = [(channels, 1) if word in item.norm_type else (0,) for word in ("mean", "scale")]
        if item.norm_type not in NORM_TYPES or any(n not in w for n, w in zip(counts, wanted, strict=True)):
            text = f"{item.name}: {item.norm_type} with {counts[0]} means, {counts[1]} scales"
            known = f" (known: {', '.join(NORM_TYPES)})" if item.norm_type not in NORM_TYPES else ""
            wants = f"what norm_type names has 1 or {channels} numbers, the other none"
            yield make_failure("NORM_TYPE_INVALID", text, message=f"{text}{known}: {wants}.")
    elif item.norm_type != "no_preprocess" or item.mean or item.scale:
        yield make_failure("NORM_TYPE_INVALID", item.name)
    if item.layout_train not in ("NCHW", "NHWC") or (item.type_rt != "nv12" and item.layout_rt not in ("NCHW", "NHWC")):
        yield make_failure("KNOB_RANGE", f"layout of {item.name or 'the input'} (NCHW or NHWC)")
    if any(not math.isfinite(v) for v in (*item.mean, *item.scale)) or 0 in item.scale:
        yield make_failure("NORM_VALUE", item.name)
    if item.space_and_range not in ("regular", "bt601_video"):
        yield make_failure("KNOB_RANGE", f"space_and_range {item.space_and_range}")
    elif item.space_and_range != "regular" and (item.type_rt != "nv12" or item.type_train not in ("rgb", "bgr")):
        yield make_failure("SPACE_AND_RANGE_PAIR", item.type_rt, (f"{item.name}: {item.type_train} -> {item.type_rt}",))
    if item.batch and not 1 <= item.batch <= 4096:
        yield make_failure("KNOB_RANGE", f"input_batch {item.batch} (1 to 4096)")
    if item.source and item.source not in SOURCE_TYPES:
        yield make_failure("KNOB_RANGE", f"source {item.source} of {item.name}")
    elif item.source and item.type_rt not in SOURCE_TYPES[item.source]:
        yield make_failure("INPUT_SOURCE_PAIR", item.type_rt, (f"{item.name}: {item.type_rt} from {item.source}",))
    wrong = item.calibration_dtype not in ("", *CALIBRATION_TYPES)
    if wrong or (item.converted_as_float and item.calibration_dtype not in ("", "float32")):
        yield make_failure("CALIBRATION_TYPE", item.name)


def _check_image(item: InputSpec, shape: tuple[int, ...]) -> Iterator[StageFailure]:
    if len(shape) != 4:
        yield make_failure("IMAGE_SHAPE", f"{item.name} {list(shape)}")
        return
    channels, height, width = shape[1:] if item.layout_train == "NCHW" else (shape[3], shape[1], shape[2])
    if channels != (1 if item.type_train == "gray" else 3):
        yield make_failure("IMAGE_SHAPE", f"{item.name} {list(shape)}")
    if item.type_rt in ("nv12", "yuv444") and (height % 2 or width % 2):
        yield make_failure("IMAGE_SIZE_ODD", item.type_rt)


def _check_knobs(spec: CompileSpec) -> Iterator[StageFailure]:
    calibration, compiler = spec.calibration, spec.compiler
    if spec.preset not in ("", *PRESETS):
        yield make_failure("KNOB_RANGE", f"preset {spec.preset[:40]} ({', '.join(PRESETS)})")
    if spec.purpose not in ("", *PURPOSES):
        yield make_failure("KNOB_RANGE", f"purpose {spec.purpose[:40]} ({', '.join(PURPOSES)})")
    if compiler.optimize_level and compiler.optimize_level not in OPTIMIZE_LEVELS:
        yield make_failure("OPTIMIZE_LEVEL_INVALID", compiler.optimize_level)
    if compiler.compile_mode not in COMPILE_MODES:
        yield make_failure("COMPILE_MODE_INVALID", compiler.compile_mode)
    if calibration.method and calibration.method not in METHODS:
        yield make_failure("CALIBRATION_METHOD_INVALID", calibration.method)
    for word in calibration.optimization:
        if not OPTIMIZATION_WORD.fullmatch(word):
            yield make_failure("OPTIMIZATION_INVALID", word[:60])
    if calibration.max_percentile and not 0.5 <= calibration.max_percentile <= 1:
        yield make_failure("KNOB_RANGE", f"max_percentile {calibration.max_percentile:g} (0.5 to 1)")
    if calibration.max_percentile and calibration.method not in ("", "max"):
        yield make_failure("KNOB_IGNORED", f"max_percentile ({calibration.method})")
    if calibration.per_channel and calibration.method in ("default", "mix"):
        yield make_failure("KNOB_IGNORED", f"per_channel ({calibration.method})")
    if not 0 <= compiler.balance_factor <= 100:
        yield make_failure("KNOB_RANGE", f"balance_factor {compiler.balance_factor} (0 to 100)")
    if compiler.max_time_per_fc_us and not 1000 <= compiler.max_time_per_fc_us <= 4294967295:
        yield make_failure("KNOB_RANGE", f"max_time_per_fc {compiler.max_time_per_fc_us} us (0 or 1000 to 4294967295)")
    if compiler.jobs < 0 or compiler.jobs > 256 or compiler.advice_us < 0:
        yield make_failure("KNOB_RANGE", "jobs (0 to 256) or advice (>= 0)")
    for kind in spec.remove_node_types:
        if kind not in REMOVABLE_TYPES:
            yield make_failure("KNOB_RANGE", f"remove_node_type {kind[:40]}")


def _check_override(override: NodeOverride) -> Iterator[StageFailure]:
    if override.device not in ("", "BPU", "CPU"):
        yield make_failure("KNOB_RANGE", f"device {override.device[:20]} of {override.node[:80]}")
    for dtype in (override.input_type, override.output_type, *override.input_types.values()):
        if dtype not in ("", "int8", "int16"):
            yield make_failure("KNOB_RANGE", f"type {dtype[:20]} of {override.node[:80]}")


def _check_names(spec: CompileSpec, model: ModelSummary) -> Iterator[StageFailure]:
    known = {n.name for n in model.nodes}
    asked = [o.node for o in spec.nodes] + list(spec.calibration.run_on_cpu) + list(spec.calibration.run_on_bpu)
    for name in [*asked, *spec.output_nodes, *spec.remove_node_names]:
        if not USABLE_NAME.fullmatch(name):
            yield make_failure("NAME_UNUSABLE", repr(name[:80]))
    for name in asked:
        if name not in known:
            yield make_failure("NODE_UNKNOWN", name)
    for name in sorted({*spec.calibration.run_on_cpu} & {*spec.calibration.run_on_bpu}):
        yield make_failure("NODE_PLACED_TWICE", name)
    for override in spec.nodes:
        count = next((len(n.inputs) for n in model.nodes if n.name == override.node), 0)
        for index in override.input_types:
            if override.node in known and index >= count:
                yield make_failure("NODE_INPUT_UNKNOWN", f"InputType{index}", (f"{override.node} has {count} inputs",))
    for name in spec.output_nodes:
        if name not in known:
            yield make_failure("OUTPUT_NODE_UNKNOWN", name)
