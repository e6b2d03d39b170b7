"""A compiled model and its subgraphs -> the tensor facts the runtime reports: shapes, padding, stride, type, scale.

Float edges (a CPU node stands between the BPU and the user) are dense. Integer edges (that node was removed) show the
BPU's own padded memory. An output is NHWC when its scales lie on axis 3, which is how the mapper records a trailing
layout change; this agrees with every published sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .read_model import NUMPY_TYPE, CompiledModel, Node, Value
from .vendor_tools import Feature, Subgraph

_TENSOR_TYPE = {
    "FLOAT": "HB_DNN_TENSOR_TYPE_F32",
    "DOUBLE": "HB_DNN_TENSOR_TYPE_F64",
    "INT8": "HB_DNN_TENSOR_TYPE_S8",
    "UINT8": "HB_DNN_TENSOR_TYPE_U8",
    "INT16": "HB_DNN_TENSOR_TYPE_S16",
    "UINT16": "HB_DNN_TENSOR_TYPE_U16",
    "INT32": "HB_DNN_TENSOR_TYPE_S32",
    "UINT32": "HB_DNN_TENSOR_TYPE_U32",
    "INT64": "HB_DNN_TENSOR_TYPE_S64",
    "UINT64": "HB_DNN_TENSOR_TYPE_U64",
    "BOOL": "HB_DNN_TENSOR_TYPE_U8",
}
_IMAGE_TYPE = {
    "Gray": "HB_DNN_IMG_TYPE_Y",
    "NV12": "HB_DNN_IMG_TYPE_NV12",
    "NV12_SEPARATE": "HB_DNN_IMG_TYPE_NV12_SEPARATE",
    "YUV444": "HB_DNN_IMG_TYPE_YUV444",
    "RGB": "HB_DNN_IMG_TYPE_RGB",
    "BGR": "HB_DNN_IMG_TYPE_BGR",
    "RGBP": "HB_DNN_IMG_TYPE_RGB",
    "BGRP": "HB_DNN_IMG_TYPE_BGR",
}
PYRAMID = "HB_DNN_INPUT_FROM_PYRAMID"
DDR = "HB_DNN_INPUT_FROM_DDR"
RESIZER = "HB_DNN_INPUT_FROM_RESIZER"


@dataclass(frozen=True)
class TensorFacts:
    """What the runtime reports about one tensor."""

    name: str
    source: str
    """Input source; empty for outputs."""
    valid: tuple[int, ...]
    aligned: tuple[int, ...]
    size_bytes: int
    type: str
    layout: str
    stride: tuple[int, ...]
    """Bytes per dimension; all 0 for image inputs."""
    scale: tuple[float, ...] = ()
    axis: int = 0
    dtype: str = "FLOAT"
    """Key of NUMPY_TYPE."""

    @property
    def image(self) -> bool:
        """True for a picture input."""
        return "_IMG_TYPE_" in self.type


def describe_inputs(model: CompiledModel, subgraphs: tuple[Subgraph, ...]) -> list[TensorFacts]:
    """Facts of all inputs in the model's order."""
    edges = _edge_features(model, subgraphs)
    facts = []
    for index, value in enumerate(model.inputs):
        kind = model.input_types[index] if index < len(model.input_types) else "F32"
        layout = model.input_layouts[index] if index < len(model.input_layouts) else "NCHW"
        if kind in _IMAGE_TYPE:
            facts.append(_image(value, kind, edges.get(value.name)))
        else:
            scale, axis = _removed(model, value.name, "Q")
            facts.append(_tensor(value, DDR, layout, edges.get(value.name), scale, axis))
    return facts


def describe_outputs(model: CompiledModel, subgraphs: tuple[Subgraph, ...]) -> list[TensorFacts]:
    """Facts of all outputs in the model's order."""
    edges = _edge_features(model, subgraphs)
    producers = {name: node for node in model.nodes for name in node.outputs}
    facts = []
    for value in model.outputs:
        scale, axis = _removed(model, value.name, "D")
        producer = producers.get(value.name)
        nhwc = axis == 3 if scale else producer is not None and _writes_nhwc(producer)
        facts.append(_tensor(value, "", "NHWC" if nhwc else "NCHW", edges.get(value.name), scale, axis))
    return facts


def _writes_nhwc(node: Node) -> bool:
    return node.op_type == "Dequantize" and node.attributes.get("output_data_format") == "NHWC"


def _edge_features(model: CompiledModel, subgraphs: tuple[Subgraph, ...]) -> dict[str, Feature]:
    by_name = {graph.name: graph for graph in subgraphs}
    edges: dict[str, Feature] = {}
    for node in model.nodes:
        graph = by_name.get(node.name) if node.op_type == "BPU" else None
        if graph is not None:
            edges.update(zip(node.inputs, graph.inputs, strict=True))
            edges.update(zip(node.outputs, graph.outputs, strict=True))
    return edges


def _removed(model: CompiledModel, name: str, kind: str) -> tuple[tuple[float, ...], int]:
    """Scales of a Quantize (`Q`) or Dequantize (`D`) that was taken off this edge, and their axis."""
    prefix = f"DN_{kind}_"
    for key, value in model.metadata.items():
        if value == name and key.startswith(prefix) and key.endswith("_valueinfo"):
            stem = key[: -len("_valueinfo")]
            scale = model.initializers.get(model.metadata.get(f"{stem}_scale", ""))
            axis = int(model.metadata.get(f"{stem}_axis") or 1)
            return (() if scale is None else tuple(float(v) for v in scale.reshape(-1))), axis
    return (), 1


def _tensor(
    value: Value, source: str, layout: str, feature: Feature | None, scale: tuple[float, ...], axis: int
) -> TensorFacts:
    if layout == "UNUSED":
        layout = "NCHW"
    if feature is not None and value.dtype != "FLOAT":
        aligned, size, stride = feature.aligned, feature.size_bytes, feature.stride
    else:
        aligned = value.shape
        item = np.dtype(NUMPY_TYPE[value.dtype]).itemsize
        size = int(np.prod(value.shape, dtype=np.int64)) * item
        stride = tuple(int(np.prod(value.shape[i + 1 :], dtype=np.int64)) * item for i in range(len(value.shape)))
    return TensorFacts(
        name=value.name,
        source=source,
        valid=value.shape,
        aligned=aligned,
        size_bytes=size,
        type=_TENSOR_TYPE[value.dtype],
        layout=f"HB_DNN_LAYOUT_{layout}",
        stride=stride,
        scale=scale,
        axis=axis,
        dtype=value.dtype,
    )


def _image(value: Value, kind: str, feature: Feature | None) -> TensorFacts:
    """A picture: pyramid inputs lie channel-last in the graph and are reported NCHW, others as they lie."""
    source = {"pyramid": PYRAMID, "resizer": RESIZER}.get(feature.source.lower() if feature else "", DDR)
    first = value.shape[1] in (1, 3) and value.shape[3] not in (1, 3)
    channels, height, width = value.shape[1:] if first else (value.shape[3], *value.shape[1:3])
    reported = (value.shape[0], channels, height, width) if first or source != DDR else value.shape
    return TensorFacts(
        name=value.name,
        source=source,
        valid=reported,
        aligned=reported,
        size_bytes=image_bytes(kind, height, width, channels),
        type=_IMAGE_TYPE[kind],
        layout="HB_DNN_LAYOUT_NCHW" if reported[1] == channels else "HB_DNN_LAYOUT_NHWC",
        stride=(0, 0, 0, 0),
        dtype="UINT8",
    )


def image_bytes(kind: str, height: int, width: int, channels: int) -> int:
    """Bytes of one picture: NV12 has one and a half per pixel, the width padded to 16."""
    if kind in ("NV12", "NV12_SEPARATE"):
        return height * (-(-width // 16) * 16) * 3 // 2
    return height * width * (1 if kind == "Gray" else channels)
