"""Where operators really run on bayes-e, as measured with the vendor's tool; pure.

Measured on 230 single-operator models (checker, int8 and int16 builds). It corrects the vendor's published list and
says before the tool starts what will refuse, fall to the CPU or stay in int8.
"""

from __future__ import annotations

from collections.abc import Callable

from boardlift_compiler.read_model import ModelSummary, Node

NO_KERNEL = frozenset(
    {"Hardmax", "Det", "NonZero", "Shrink", "MeanVarianceNormalization", "IsNaN", "IsInf", "GridSample", "Unique",
     "NonMaxSuppression", "StringNormalizer", "TfIdfVectorizer", "RandomNormal", "RandomUniform", "Multinomial",
     "EyeLike", "Compress", "Xor"}
)  # fmt: skip
"""Operators without any kernel on the board: the tool refuses at the end of the compile."""

CONTROL_FLOW = {"If": "if-to-where", "Loop": "unroll-loop", "Scan": "unroll-loop"}
"""Operators that the tool has no form of, and the transform pass that takes them out."""

RECURRENT = {"RNN": "unroll-recurrent"}
"""Recurrent operators whose kernel takes none of the usual forms, and the pass that writes them out."""

QDQ = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul",
                 "ConvInteger", "MatMulInteger"})  # fmt: skip

ALWAYS_CPU = frozenset(
    {"Neg", "Min", "Greater", "Less", "Equal", "Not", "And", "Or", "Xor", "LogSoftmax", "ReduceMin", "ReduceProd",
     "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum", "LRN", "LpNormalization", "LpPool", "ThresholdedRelu", "Mod",
     "GatherND", "ScatterND", "ScatterElements", "OneHot", "RoiAlign", "MaxRoiPool", "ReverseSequence", "CumSum",
     "Cast"}
)  # fmt: skip
"""Operators that always run on the CPU (an island: two BPU subgraphs instead of one)."""

INT8_ONLY = frozenset({"ConvTranspose", "Resize", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"})
"""Operators that stay in int8 when int16 is asked for all nodes; some have a form of other operators that does not."""

INT16_FORMS = {
    "ConvTranspose": ("shuffle-conv-transpose", "of stride 1 and 2, up to 65536 elements"),
    "AveragePool": ("keep-int16", "as a depthwise Conv"),
    "GlobalAveragePool": ("keep-int16", "as one ReduceMean per axis"),
    "GlobalMaxPool": ("keep-int16", "as one ReduceMax per axis"),
    "Resize": ("settle-resize", "where it goes down by a whole factor"),
    "Conv with dilation": ("undilate-conv", "with zeros between the taps"),
    "MatMul of two computed tensors": ("matmul-to-products", "up to 32768 products"),
}
"""What stays in int8 -> (transform pass that writes it in a form that stays int16, which of them it takes)."""

WIDE_HEAD_INPUTS = 256
"""A Conv or Gemm that leaves the BPU directly goes back to int8 above this many input channels."""

CHEAP_REWRITES = {
    "Neg": ("replace-neg", "Multiply by -1 instead; it fuses away."),
    "Min": ("replace-min", "Write min(a, b) as -max(-a, -b); it stays on the BPU."),
    "Expand": ("split-broadcast", "Add zeros of the wanted shape instead of expanding two axes."),
    "ReduceMin": ("replace-min", "Write it as -ReduceMax(-x)."),
    "ReduceMax": ("split-reductions", "Reduce one axis at a time."),
    "ReduceMean": ("split-reductions", "Reduce one axis at a time; write two axes in ascending order."),
    "Slice": ("replace-moves", "Gather in the wanted order."),
    "Pad": ("replace-moves", "Gather the mirrored rows."),
    "ArgMax": ("softmax-on-last-axis", "Move the axis to the channels."),
    "Softmax": (
        "softmax-on-last-axis",
        "Ask for it on the BPU: set_Softmax_input_int8,set_Softmax_output_int8, or int16.",
    ),
}
"""Operator -> (transform pass id or empty, advice), each verified to stay on the BPU."""


def cpu_reason(node: Node, model: ModelSummary, int16: bool) -> str:
    """Return why a node will run on the CPU; empty when it runs on the BPU or is not known.

    Args:
        node: The node.
        model: Its model, for weights and shapes.
        int16: True when all nodes are asked in int16.
    """
    if node.op_type in ALWAYS_CPU:
        return f"{node.op_type} always runs on the CPU on this chip"
    rule = _CONDITIONAL_CPU.get(node.op_type)
    return rule(node, model, int16) if rule is not None else ""


def rewrite_of(node: Node, model: ModelSummary) -> tuple[str, str]:
    """Return the transform pass that writes a node another way and what it does; empty texts when there is none."""
    pass_id, advice = CHEAP_REWRITES.get(node.op_type, ("", ""))
    if node.op_type == "Softmax" and node.attributes.get("axis", 1) in (3, -1):
        pass_id = ""  # it is on the last axis already
    if node.op_type == "Conv" and _over_one_axis(node, model):
        return "lift-to-4d", "Give its tensors 4 dimensions."
    return pass_id, advice


def _attribute_numbers(node: Node, name: str) -> tuple[int, ...]:
    value = node.attributes.get(name, ())
    return value if isinstance(value, tuple) else ()


def _softmax(node: Node, model: ModelSummary, int16: bool) -> str:
    axis = node.attributes.get("axis", 1)
    if int16 and axis in (3, -1):
        return ""
    return "Softmax runs on the CPU unless it is asked onto the BPU"


def _reduce_max(node: Node, model: ModelSummary, int16: bool) -> str:
    return "ReduceMax over two axes at once runs on the CPU" if len(_attribute_numbers(node, "axes")) > 1 else ""


def _reduce_mean(node: Node, model: ModelSummary, int16: bool) -> str:
    axes = _attribute_numbers(node, "axes")
    if len(axes) == 2 and axes[0] > axes[1] and (axes[0] < 0) == (axes[1] < 0):
        return "ReduceMean whose axes do not ascend runs on the CPU"
    return "ReduceMean over three or more axes runs on the CPU" if len(axes) > 2 else ""


def _arg_max(node: Node, model: ModelSummary, int16: bool) -> str:
    return "ArgMax runs on the BPU on the channel axis only" if node.attributes.get("axis", 0) not in (1, -3) else ""


def _pow(node: Node, model: ModelSummary, int16: bool) -> str:
    constant = len(node.inputs) > 1 and node.inputs[1] in model.weights
    return "" if constant else "Pow with a computed exponent runs on the CPU"


def _slice(node: Node, model: ModelSummary, int16: bool) -> str:
    steps = model.weights.get(node.inputs[4]) if len(node.inputs) > 4 else None
    return "Slice with a negative step runs on the CPU" if steps and any(v < 0 for v in steps.integers) else ""


def _pad(node: Node, model: ModelSummary, int16: bool) -> str:
    return "Pad with reflection runs on the CPU" if node.attributes.get("mode") == "reflect" else ""


def _resize(node: Node, model: ModelSummary, int16: bool) -> str:
    return "Resize with cubic interpolation runs on the CPU" if node.attributes.get("mode") == "cubic" else ""


def _conv_transpose(node: Node, model: ModelSummary, int16: bool) -> str:
    dilations = _attribute_numbers(node, "dilations")
    weight = model.weights.get(node.inputs[1]) if len(node.inputs) > 1 else None
    if any(d > 1 for d in dilations):
        return "ConvTranspose with dilation runs on the CPU"
    return "ConvTranspose with a kernel of 16 or more runs on the CPU" if weight and max(weight.shape[2:]) >= 16 else ""


def _conv(node: Node, model: ModelSummary, int16: bool) -> str:
    if len(node.inputs) < 2 or node.inputs[1] not in model.weights:
        return "Conv with computed weights runs on the CPU"
    one = _over_one_axis(node, model)
    return "Conv over one axis runs on the CPU: the BPU takes tensors of 4 dimensions" if one else ""


def _over_one_axis(node: Node, model: ModelSummary) -> bool:
    weight = model.weights.get(node.inputs[1]) if len(node.inputs) > 1 else None
    return weight is not None and len(weight.shape) == 3


_CONDITIONAL_CPU: dict[str, Callable[[Node, ModelSummary, bool], str]] = {
    "Softmax": _softmax,
    "ReduceMax": _reduce_max,
    "ReduceMean": _reduce_mean,
    "ArgMax": _arg_max,
    "ArgMin": _arg_max,
    "Pow": _pow,
    "Slice": _slice,
    "Pad": _pad,
    "Resize": _resize,
    "ConvTranspose": _conv_transpose,
    "Conv": _conv,
}


def stays_int8(node: Node, model: ModelSummary) -> str:
    """Return why a node stays in int8 although int16 is asked for all; empty when it follows."""
    if node.op_type in INT8_ONLY:
        return f"{node.op_type} has no int16 form on this chip"
    if node.op_type == "Conv" and any(d > 1 for d in _attribute_numbers(node, "dilations")):
        return "Conv with dilation has no int16 form on this chip"
    if node.op_type == "MatMul" and not any(i in model.weights for i in node.inputs):
        return "MatMul of two computed tensors has no int16 form on this chip"
    return _wide_head(node, model)


def int16_form(reason: str) -> str:
    """Return the advice for a reason of :func:`stays_int8`; empty when no pass has another form."""
    for what, (pass_id, which) in INT16_FORMS.items():
        if f" {what} has no int16 form" in f" {reason}":
            return f"The transform pass {pass_id} has a form that stays int16, {which}; transform with precision int16."
    return ""


def _wide_head(node: Node, model: ModelSummary) -> str:
    if node.op_type not in ("Conv", "Gemm") or len(node.inputs) < 2 or node.inputs[1] not in model.weights:
        return ""
    if not set(node.outputs) & {o.name for o in model.outputs}:
        return ""
    shape = model.weights[node.inputs[1]].shape
    if node.op_type == "Gemm":
        width = shape[1 if node.attributes.get("transB") else 0] if len(shape) == 2 else 0
    else:
        width = shape[1] if len(shape) > 1 else 0
    if width <= WIDE_HEAD_INPUTS:
        return ""
    return f"it leaves the BPU with {width} input channels; above {WIDE_HEAD_INPUTS} the tool goes back to int8"
