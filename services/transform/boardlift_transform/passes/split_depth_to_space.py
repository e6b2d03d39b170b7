"""Write DepthToSpace of another block than 2 in forms that the BPU does cheaply.

Before -> After: block 4 (8, 16) -> two (three, four) of block 2, their channels put in order in the Conv before;
block 3 (any other) of at most 4 channels -> per channel `Transpose, Reshape, Transpose, Reshape`, all 4-D; of more
channels, int8 only -> grouped ConvTranspose of ones and zeros.
Why: only block 2 has a form of its own; any other is stored with one channel padded to 64 (int16) or 128 (int8).
Estimated at O1, 48x48 between two Conv: block 3, 1 channel, int8 6874 -> 363 us, int16 7451 -> 797 us; 3 channels,
int16 7471 -> 1959 us; 16 channels, int8 7428 -> 1624 us; block 4, 16 channels, int8 21832 -> 2319 us. A last
DepthToSpace stays as it is except under int16: else the tool puts it on the CPU, behind the last hand-over.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, only_use, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Parameter, Pass, PassResult, rewrite_nodes

CHANNELS = 4


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite DepthToSpace nodes of another block than 2."""
    precision, limit = str(parameters.get("precision", "")), int(parameters.get("channels", CHANNELS))

    def rule(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
        return _rewrite(node, editor, result, precision, limit)

    return rewrite_nodes(model, PASS.id, {"DepthToSpace"}, rule)


def _rewrite(
    node: ir.Node, editor: Editor, result: PassResult, precision: str, limit: int
) -> tuple[ir.Value, str] | None:
    x, block = node.inputs[0], int(attribute(node, "blocksize"))
    shape, out = shape_of(x), shape_of(node.outputs[0])
    if x is None or shape is None or out is None or block <= 2:
        return None
    if node.outputs[0].is_graph_output() and precision != "int16":
        result.skip(node, "the last node runs on the CPU in int8, behind the last hand-over")
        return None
    depth_first = attribute(node, "mode", "DCR") == "DCR"
    numbers = np.arange(shape[1])
    if block & (block - 1) == 0:
        steps = block.bit_length() - 1
        made = _ordered(node, editor, x, _bits_apart(numbers, steps, out[1], depth_first))
        for step in range(1, steps + 1):
            size = [out[0], out[1] << 2 * (steps - step), shape[2] << step, shape[3] << step]
            two = {"blocksize": 2, "mode": "CRD"}
            made = editor.node(node, "DepthToSpace", [made], size, two, hint=node.name or "DepthToSpace")
        return made, f"{steps} DepthToSpace of block 2"
    by_channel = numbers.reshape(-1, out[1]).T if depth_first else numbers.reshape(out[1], -1)
    if out[1] <= limit:
        return _moves(node, editor, _ordered(node, editor, x, by_channel.ravel()), block), "Transposes in four axes"
    if precision != "int8":
        result.skip(node, f"block {block} with {out[1]} channels has no cheaper form in int16")
        return None
    return _transposed_conv(node, editor, _ordered(node, editor, x, by_channel.ravel()), block), "ConvTranspose of ones"


def _bits_apart(numbers: Array, steps: int, channels: int, depth_first: bool) -> Array:
    """Channel order in which `steps` DepthToSpace(2, CRD) do one of block `2^steps`: coarsest bit last."""
    halves = [2] * (2 * steps)
    if depth_first:
        bits, channel, first = numbers.reshape(*halves, channels), 2 * steps, 0
    else:
        bits, channel, first = numbers.reshape(channels, *halves), 0, 1
    order = [axis for bit in range(steps - 1, -1, -1) for axis in (first + bit, first + steps + bit)]
    return np.asarray(bits.transpose(channel, *order)).ravel()


def _ordered(node: ir.Node, editor: Editor, x: ir.Value, order: Array) -> ir.Value:
    """`x` with its channels in another order: in the weights of the Conv that makes it, else by a Gather."""
    if np.array_equal(order, np.arange(len(order))):
        return x
    conv = x.producer()
    weight = constant_of(input_at(conv, 1)) if conv is not None and conv.op_type == "Conv" else None
    if conv is None or weight is None or only_use(x) is not node or int(attribute(conv, "group", 1)) != 1:
        index = editor.constant(order.astype(np.int64), f"{node.name}_order")
        return editor.node(node, "Gather", [x, index], shape_of(x), {"axis": 1}, hint=f"{node.name}_in_order")
    base = conv.name or "Conv"
    conv.replace_input_with(1, editor.constant(weight[order], f"{base}_weight_in_order"))
    bias = constant_of(input_at(conv, 2))
    if bias is not None:
        conv.replace_input_with(2, editor.constant(bias[order], f"{base}_bias_in_order"))
    return x


def _moves(node: ir.Node, editor: Editor, x: ir.Value, block: int) -> ir.Value:
    n, channels, height, width = shape_of(x) or ()
    count, base = channels // block**2, node.name or "DepthToSpace"
    planes = [x]
    if count > 1:
        shapes = [[n, block**2, height, width]] * count
        planes = editor.node_outputs(node, "Split", [x], shapes, {"axis": 1}, hint=f"{base}_split")
    tall, wide = height * block, width * block
    made = []
    for i, plane in enumerate(planes):
        rows = editor.transpose(node, plane, [0, 2, 1, 3], hint=f"{base}_rows_{i}")
        rows = editor.reshape(node, rows, [n, tall, block, width], hint=f"{base}_tall_{i}")
        rows = editor.transpose(node, rows, [0, 1, 3, 2], hint=f"{base}_columns_{i}")
        made.append(editor.reshape(node, rows, [n, 1, tall, wide], hint=f"{base}_wide_{i}"))
    if count == 1:
        return made[0]
    return editor.node(node, "Concat", made, [n, count, tall, wide], {"axis": 1}, hint=base)


def _transposed_conv(node: ir.Node, editor: Editor, x: ir.Value, block: int) -> ir.Value:
    n, channels, height, width = shape_of(x) or ()
    base, size = node.name or "DepthToSpace", block**2
    one_each = np.tile(np.eye(size, dtype=np.float32).reshape(size, 1, block, block), (channels // size, 1, 1, 1))
    attributes = {"kernel_shape": [block, block], "strides": [block, block], "group": channels // size}
    shape = [n, channels // size, height * block, width * block]
    return editor.node(
        node, "ConvTranspose", [x, editor.constant(one_each, f"{base}_ones")], shape, attributes, hint=base
    )


PASS = Pass(
    id="split-depth-to-space",
    summary="DepthToSpace of block 4 -> two of block 2; of block 3 -> 4-D Transposes",
    exactness=BIT_EXACT,
    apply=apply,
    parameters=(
        Parameter("precision", "`int8`, `int16` or empty for both; default empty"),
        Parameter("channels", "most output channels for Transposes; default 4"),
    ),
)
