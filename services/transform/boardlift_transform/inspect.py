"""What a model is: inputs, outputs, operators, parameters, multiply-accumulates, largest tensors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import attribute, input_at, shape_of, used_opset
from boardlift_transform.pass_result import node_label

LARGEST = 10


@dataclass(frozen=True)
class TensorSpec:
    """A tensor's name, type and shape."""

    name: str
    """Name in the graph."""
    dtype: str
    """Element type in numpy's words."""
    shape: tuple[int, ...]
    """Dimensions; -1 where the model leaves one open."""
    layout: str = ""
    """Layout where it has a meaning, for example `NCHW`."""


@dataclass(frozen=True)
class ModelSummary:
    """Facts about one model."""

    sha256: str
    """Digest of the file."""
    opset: int
    """Version of the default operator set."""
    other_opsets: dict[str, int]
    """Other operator sets."""
    ir_version: int
    """IR version of the file."""
    producer: str
    """Program that wrote it."""
    inputs: tuple[TensorSpec, ...]
    """Inputs without initialisers."""
    outputs: tuple[TensorSpec, ...]
    """Outputs."""
    operators: dict[str, int]
    """Operator -> number of nodes, subgraphs included; foreign domains as `domain::Operator`."""
    nodes: int
    """Number of nodes, subgraphs included."""
    parameters: int
    """Number of weight elements."""
    macs: int
    """Multiply-accumulates per run; 0 when shapes are unknown."""
    largest_tensors: tuple[TensorSpec, ...]
    """Largest initialisers by bytes."""
    metadata: dict[str, str] = field(default_factory=dict)
    """Metadata properties of the file."""
    functions: int = 0
    """Number of model-local functions."""
    foreign: dict[str, str] = field(default_factory=dict)
    """First node of each operator of a foreign domain, by `domain::Operator`."""


def summarise(model: ir.Model, sha256: str = "") -> ModelSummary:
    """Collect the facts; reads no weights."""
    graph = model.graph
    operators: Counter[str] = Counter()
    macs = 0
    foreign: dict[str, str] = {}
    for node in graph.all_nodes():
        operators[node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"] += 1
        if node.domain not in ("", "ai.onnx"):
            foreign.setdefault(f"{node.domain}::{node.op_type}", node_label(node))
        macs += count_macs(node)
    weights = [v for v in graph.initializers.values() if v.const_value is not None]
    largest = sorted(weights, key=lambda v: -(v.const_value.nbytes if v.const_value else 0))[:LARGEST]
    return ModelSummary(
        sha256=sha256,
        opset=used_opset(model),
        other_opsets={d: v for d, v in graph.opset_imports.items() if d not in ("", "ai.onnx")},
        ir_version=int(model.ir_version or 0),
        producer=" ".join(part for part in (model.producer_name, model.producer_version) if part),
        inputs=tuple(spec_of(v) for v in graph.inputs if v.name not in graph.initializers),
        outputs=tuple(spec_of(v) for v in graph.outputs),
        operators=dict(operators.most_common()),
        nodes=sum(operators.values()),
        parameters=sum(int(v.const_value.size) for v in weights if v.const_value is not None),
        macs=macs,
        largest_tensors=tuple(spec_of(v) for v in largest),
        metadata=dict(model.metadata_props),
        functions=len(model.functions),
        foreign=foreign,
    )


def spec_of(value: ir.Value) -> TensorSpec:
    """Name, type and shape of a value."""
    dtype = value.dtype
    try:
        name = str(dtype.numpy()) if dtype is not None else ""
    except TypeError:
        name = str(dtype)
    shape = value.shape if value.shape is not None else ()
    return TensorSpec(value.name or "", name, tuple(d if isinstance(d, int) else -1 for d in shape))


def count_macs(node: ir.Node) -> int:
    """Multiply-accumulates of Conv, ConvTranspose, Gemm and MatMul with known shapes; 0 for the rest."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
        return 0
    out, left, right = shape_of(node.outputs[0]), shape_of(input_at(node, 0)), shape_of(input_at(node, 1))
    if not out or not left or not right:
        return 0
    if node.op_type == "Conv":
        return _product(out) * _product(right[1:])
    if node.op_type == "ConvTranspose":
        return _product(left) * _product(right[1:])
    inner = left[0] if node.op_type == "Gemm" and attribute(node, "transA", 0) else left[-1]
    return _product(out) * int(inner)


def _product(dims: tuple[int, ...]) -> int:
    return int(np.prod(dims, dtype=object)) if dims else 1
