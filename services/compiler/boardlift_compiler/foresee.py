"""Say before the tool runs what it will do silently: CPU islands, int8 where int16 was asked, wrong borders; pure.

Everything here was measured: placements on 230 single-operator models, the borders by comparing compiled code,
quantised model and the float model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from boardlift_compiler import op_truth
from boardlift_compiler.findings import Finding
from boardlift_compiler.foresee_constants import CODES, foresee_constants
from boardlift_compiler.read_model import ModelSummary, Node
from boardlift_compiler.spec import CompileSpec, InputSpec

BORDER_CODES = frozenset(
    {"AVERAGEPOOL_BORDER_WRONG", "INT16_MAXPOOL_BORDER_WRONG", "INT16_CONV_BORDER_DIFFERS", "ARGMAX_INT8_WRAPS",
     "DEPTH_TO_SPACE_COSTLY", "OPTIMIZATION_WITHOUT_EFFECT", "NORM_VALUE_SUSPICIOUS", *CODES}
)  # fmt: skip
"""Findings that no log shows: the tool's own comparison does not see them."""

TYPE_WORD = re.compile(r"set_(?!all_nodes|model_output)(\w+)_(?:input|output)_int(?:8|16)")
MOST_PIXEL = 512.0
"""Above it a normalised pixel is no pixel any more; 255 where nothing is normalised."""


def foresee(spec: CompileSpec, model: ModelSummary) -> list[Finding]:
    """Return what is to be expected of compiling this model this way."""
    found: list[Finding] = []
    makers = {output: node for node in model.nodes for output in node.outputs}
    for node in model.nodes:
        found += _placement(node, model, spec)
        if spec.wants_int16:
            reason = op_truth.stays_int8(node, model)
            if reason:
                found.append(
                    Finding("INT16_WILL_FALL_BACK", "warning", f"{node.name} will stay in int8: {reason}.", node.name)
                )
        found += _borders(node, spec)
        found += _batch(node, model)
        found += _argument(node, model, spec, makers)
        found += _shuffle(node, model)
    found += _words_without_effect(spec, model)
    found += [finding for item in spec.inputs for finding in _pixels(item)]
    return [*found, *foresee_constants(model)]


def _words_without_effect(spec: CompileSpec, model: ModelSummary) -> Iterator[Finding]:
    """The tool takes a word for an operator that is not there, or is written otherwise, and does nothing."""
    kinds = {n.op_type for n in model.nodes}
    for word in spec.calibration.optimization:
        match = TYPE_WORD.fullmatch(word)
        if match and match[1] not in kinds:
            near = next((k for k in sorted(kinds) if k.lower() == match[1].lower()), "")
            advice = f"Write {near}." if near else "Leave it out, or name an operator of the model."
            text = f"{word} has no effect: the model has no operator {match[1]}."
            yield Finding("OPTIMIZATION_WITHOUT_EFFECT", "warning", text, word, advice)


def _pixels(item: InputSpec) -> Iterator[Finding]:
    """Mean and scale count in pixels of 0 to 255; figures of pixels from 0 to 1 make values that no network was fed."""
    mean, scale = item.mean or (0.0,), item.scale or (1.0,)
    largest = max(abs((pixel - m) * s) for pixel in (0.0, 255.0) for m in mean for s in scale)
    if item.is_image and largest > MOST_PIXEL:
        text = f"Mean and scale of {item.name} turn pixels of 0 to 255 into values up to {largest:.4g}."
        advice = "They count in raw pixels: times 255 a mean, through 255 a scale that was meant for pixels of 0 to 1."
        yield Finding("NORM_VALUE_SUSPICIOUS", "warning", text, item.name, advice)


def _placement(node: Node, model: ModelSummary, spec: CompileSpec) -> Iterator[Finding]:
    reason = op_truth.cpu_reason(node, model, spec.wants_int16)
    if not reason:
        return
    asked = {o.node for o in spec.nodes if o.device == "BPU"} | set(spec.calibration.run_on_bpu)
    words = {w for w in spec.calibration.optimization if w.startswith(f"set_{node.op_type}_")}
    if node.name in asked or words:
        return
    pass_id, advice = op_truth.rewrite_of(node, model)
    remedy = advice + (f" Transform pass {pass_id} does it." if pass_id else "")
    yield Finding(
        "NODE_WILL_RUN_ON_CPU", "warning", f"{node.name or node.op_type}: {reason}.", node.name, remedy.strip()
    )


def _uneven(pads: object) -> bool:
    if not isinstance(pads, tuple) or len(pads) % 2:
        return False
    half = len(pads) // 2
    return any(end > begin for begin, end in zip(pads[:half], pads[half:], strict=True))


def _borders(node: Node, spec: CompileSpec) -> Iterator[Finding]:
    pads = node.attributes.get("pads", ())
    padded = isinstance(pads, tuple) and any(pads)
    if node.op_type == "AveragePool" and padded and not node.attributes.get("count_include_pad", 0):
        yield Finding(
            "AVERAGEPOOL_BORDER_WRONG",
            "error",
            f"{node.name}: the integer model divides by the full window at the border, whatever its cosine says.",
            node.name,
            "Transform pass replace-average-pool makes it a depthwise Conv with a border factor.",
        )
    if not spec.wants_int16:
        return
    overrun = (
        _uneven(pads) or node.attributes.get("ceil_mode", 0) == 1 or node.attributes.get("auto_pad") == "SAME_UPPER"
    )
    if node.op_type == "MaxPool" and overrun:
        yield Finding(
            "INT16_MAXPOOL_BORDER_WRONG",
            "error",
            f"{node.name}: compiled int16 code is wrong in the last row and column with more padding at the end.",
            node.name,
            "Transform pass balance-padding cures it; or keep this node in int8.",
        )
    if node.op_type == "Conv" and overrun and node.attributes.get("group", 1) == 1:
        yield Finding(
            "INT16_CONV_BORDER_DIFFERS",
            "warning",
            f"{node.name}: compiled int16 code differs slightly at the border with more padding at the end.",
            node.name,
            "Transform pass balance-padding cures it; or keep this node in int8.",
        )


def _batch(node: Node, model: ModelSummary) -> Iterator[Finding]:
    if node.op_type != "Reshape" or len(node.inputs) < 2:
        return
    shape = model.weights.get(node.inputs[1])
    if shape is not None and shape.integers[:1] == (1,):
        yield Finding(
            "CALIBRATION_WILL_FALL_BACK",
            "note",
            f"{node.name}: a Reshape with the batch written as 1 makes calibration 4 to 6 times slower.",
            node.name,
            "Write -1 in its place (transform pass free-batch).",
        )


ENTRIES = 128
KEEP_CHANNELS = frozenset({"Relu", "Clip", "Sigmoid", "LeakyRelu", "Elu", "BatchNormalization", "Resize", "Softmax"})


def _argument(node: Node, model: ModelSummary, spec: CompileSpec, makers: dict[str, Node]) -> Iterator[Finding]:
    if node.op_type not in ("ArgMax", "ArgMin") or node.attributes.get("axis", 0) not in (1, -3) or spec.wants_int16:
        return
    if any(o.node == node.name and (o.device == "CPU" or o.input_type == "int16") for o in spec.nodes):
        return
    if node.name in spec.calibration.run_on_cpu:
        return
    source = makers.get(node.inputs[0])
    while source is not None and source.op_type in KEEP_CHANNELS:
        source = makers.get(source.inputs[0])
    weight = model.weights.get(source.inputs[1]) if source is not None and source.op_type == "Conv" else None
    if weight is not None and weight.shape[0] > ENTRIES:
        yield Finding(
            "ARGMAX_INT8_WRAPS",
            "error",
            f"{node.name}: its result is an int8 on the BPU, which counts to 127 of {weight.shape[0]} entries; what"
            " lies above comes out negative, in the compiled code too.",
            node.name,
            "Ask for this node in int16, or let transform pass softmax-on-last-axis move it to the CPU.",
        )


def _shuffle(node: Node, model: ModelSummary) -> Iterator[Finding]:
    block = node.attributes.get("blocksize", 2)
    if node.op_type == "DepthToSpace" and isinstance(block, int) and block > 2:
        yield Finding(
            "DEPTH_TO_SPACE_COSTLY",
            "warning",
            f"{node.name}: on the BPU a block of {block} is stored with one channel padded to 64 or 128, 10 to 60 times"
            " the time of a block of 2.",
            node.name,
            "Transform pass split-depth-to-space writes it in cheap forms.",
        )
