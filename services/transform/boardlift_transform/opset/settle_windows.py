"""Take away the ceil_mode that adds no window, before shapes are inferred.

A window that would start in the end padding is dropped by PyTorch, by onnxruntime at every opset, and by the definition
since opset 22. The inference of older versions counts it all the same, so every shape behind such a pool would be one
too large, and a file whose exporter wrote the true shapes would look as if it contradicted itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnx import ModelProto, NodeProto, helper, shape_inference

SINCE = 22
"""From this version on, inference counts as runtimes do."""
POOLS = frozenset({"MaxPool", "AveragePool", "LpPool"})


def settle_windows(light: ModelProto, own: int) -> None:
    """Rewrite pools of the main graph until the old rule counts the windows that runtimes compute.

    Args:
        light: A model without its heavy weights and without inner shapes; edited in place.
        own: Its ai.onnx opset.
    """
    if own >= SINCE:
        return
    for node in [n for n in light.graph.node if n.op_type in POOLS and n.domain in ("", "ai.onnx")]:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if not _may_start_in_padding(attributes):
            continue
        sizes = _sizes(light, node.input[0])  # anew: those behind the pool before this one have changed
        if sizes is not None and len(sizes) == len(attributes["kernel_shape"]):
            _settle(node, attributes, sizes)


def _may_start_in_padding(attributes: Mapping[str, Any]) -> bool:
    """Whether a window could, for some size; False for what is no legal pool."""
    if not attributes.get("ceil_mode", 0) or attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        return False
    kernel = attributes.get("kernel_shape", [])
    rank = len(kernel)
    lists = [
        attributes.get(k, [v] * n) for k, v, n in (("strides", 1, rank), ("dilations", 1, rank), ("pads", 0, 2 * rank))
    ]
    strides, dilations, pads = lists
    if [len(x) for x in lists] != [rank, rank, 2 * rank] or min([*kernel, *strides, *dilations], default=0) < 1:
        return False
    return any(pads[rank + i] + strides[i] > (kernel[i] - 1) * dilations[i] + 1 for i in range(rank))


def _sizes(light: ModelProto, name: str) -> list[int] | None:
    """Spatial sizes of a value, None unless all are known."""
    found = shape_inference.infer_shapes(light, data_prop=True).graph
    for value in (*found.input, *found.value_info):
        if value.name == name and value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim[2:]
            return [d.dim_value for d in dims] if all(d.HasField("dim_value") for d in dims) else None
    return None


def _settle(node: NodeProto, attributes: Mapping[str, Any], sizes: Sequence[int]) -> None:
    """Give the pool attributes with which every rule counts the windows that runtimes keep; leave it if there are none.

    Without ceil_mode where that changes no count, else with less end padding, else with enough of it instead of
    ceil_mode where padding does not count.
    """
    rank = len(sizes)
    pads = list(attributes.get("pads", [0] * 2 * rank))
    spans = list(_spans(attributes, sizes, pads))
    if all(ceil == kept for _, ceil, kept, _ in spans):
        return
    fewer = [*pads[:rank], *(p if s[1] == s[2] else s[3] for p, s in zip(pads[rank:], spans, strict=True))]
    more = [*pads[:rank], *(p if s[0] == s[2] else s[3] for p, s in zip(pads[rank:], spans, strict=True))]
    if more == pads:
        _change(node, drop="ceil_mode")
    elif min(fewer) >= 0:
        _change(node, drop="pads", pads=fewer)
    elif not attributes.get("count_include_pad", 0) and all(
        p < k for p, k in zip(more, [*attributes["kernel_shape"]] * 2, strict=True)
    ):
        _change(node, drop="pads", pads=more)
        _change(node, drop="ceil_mode")


def _change(node: NodeProto, drop: str, **more: list[int]) -> None:
    kept = [a for a in node.attribute if a.name != drop]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in more.items())])


def _spans(
    attributes: Mapping[str, Any], sizes: Sequence[int], pads: Sequence[int]
) -> Iterator[tuple[int, int, int, int]]:
    """Windows per axis: by the floor rule, by the ceil rule, those that runtimes keep, and what the last one needs.

    That is the end padding which it reaches into, below 0 where it leaves elements unread.
    """
    rank = len(sizes)
    strides, dilations = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    for axis, size in enumerate(sizes):
        reach = (attributes["kernel_shape"][axis] - 1) * dilations[axis] + 1
        space = size + pads[axis] + pads[rank + axis] - reach
        floor, ceil = space // strides[axis] + 1, -(-space // strides[axis]) + 1
        kept = ceil - 1 if (ceil - 1) * strides[axis] >= size + pads[axis] else ceil
        yield floor, ceil, kept, (kept - 1) * strides[axis] + reach - size - pads[axis]
