"""Runs a compiled model on x86.

Engine `compiled`: BPU nodes by the vendor's simulator on the very code in the `.bin`, CPU nodes in numpy.
Engine `runtime`: the vendor's ONNX runtime on the companion quantised model `<stem>_quantized_model.onnx` beside the
`.bin`; same bits, faster for large models, blind to faults of the compiled code.
Engine `auto` (default): compiled, or runtime when a CPU operator is not known here and the companion exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .describe_tensors import TensorFacts
from .errors import INVALID_MODEL, TASK_FAILED, BoardError
from .read_model import NUMPY_TYPE, CompiledModel, Value
from .run_cpu_nodes import OPERATORS, run_cpu_node
from .vendor_tools import Subgraph, run_subgraph

Array = NDArray[Any]
ENGINES = ("auto", "compiled", "runtime")


def choose_engine(model: CompiledModel, wanted: str) -> str:
    """Picks the engine.

    Args:
        model: the model.
        wanted: one of ENGINES.

    Returns:
        `compiled` or `runtime`.

    Raises:
        BoardError: unknown engine, or neither can run this model.
    """
    if wanted not in ENGINES:
        raise BoardError(TASK_FAILED, f"engine '{wanted}' is none of {', '.join(ENGINES)}")
    if wanted != "auto":
        return wanted
    unknown = sorted({n.op_type for n in model.nodes if n.op_type != "BPU" and n.op_type not in OPERATORS})
    if not unknown:
        return "compiled"
    if companion(model).is_file():
        return "runtime"
    raise BoardError(
        TASK_FAILED,
        f"CPU operators {', '.join(unknown)} are not known to the stand-in; lay {companion(model).name} beside it",
    )


def companion(model: CompiledModel) -> Path:
    """Where the quantised ONNX model of this `.bin` is expected."""
    return model.path.with_name(f"{model.path.stem}_quantized_model.onnx")


def execute_compiled(
    model: CompiledModel, subgraphs: tuple[Subgraph, ...], feeds: dict[str, Array], hbm: Path, work: Path
) -> dict[str, Array]:
    """Runs every node in order.

    Args:
        model: the model.
        subgraphs: descriptions of its BPU parts.
        feeds: input name -> array in valid shape and native type; a flat uint8 array for NV12 pictures.
        hbm: file with the model's BPU code.
        work: folder for exchange files.

    Returns:
        Every tensor that was computed, by name; outputs included.

    Raises:
        BoardError: a node failed.
    """
    by_name = {graph.name: graph for graph in subgraphs}
    tensors: dict[str, Array] = {**model.initializers, **feeds}
    for node in model.nodes:
        missing = [name for name in node.inputs if name and name not in tensors]
        if missing:
            raise BoardError(INVALID_MODEL, f"{node.name} reads {missing[0]}, which nothing wrote")
        inputs = [tensors[name] for name in node.inputs if name]
        if node.op_type == "BPU":
            graph = by_name.get(node.name)
            if graph is None:
                raise BoardError(INVALID_MODEL, f"no code for subgraph {node.name}")
            results = in_node_order(graph, node.outputs, run_subgraph(hbm, graph, inputs, work))
        else:
            results = run_cpu_node(node, inputs)
        for name, result in zip(node.outputs, results, strict=True):
            tensors[name] = _as_declared(result, model.values.get(name))
    return tensors


def in_node_order(graph: Subgraph, outputs: Sequence[str], results: list[Array]) -> list[Array]:
    """The results in the order of the node's outputs: compiled code has an order of its own, and the same names.

    Where the names differ, the orders are taken to be the same.
    """
    named = dict(zip((feature.name for feature in graph.outputs), results, strict=True))
    return [named[name] for name in outputs] if set(named) == set(outputs) else results


def _as_declared(result: Array, value: Value | None) -> Array:
    """Shape and type as the model declares them: an ArgMax computed in float leaves as the int64 it stands for."""
    if value is None:
        return result
    shaped = result.reshape(value.shape) if value.shape else result
    return shaped.astype(NUMPY_TYPE[value.dtype], copy=False) if value.dtype in NUMPY_TYPE else shaped


def execute_runtime(model: CompiledModel, facts: list[TensorFacts], feeds: dict[str, Array]) -> dict[str, Array]:
    """Runs the companion quantised model in the vendor's ONNX runtime.

    Args:
        model: the compiled model.
        facts: its inputs.
        feeds: as for execute_compiled.

    Returns:
        The outputs by name.

    Raises:
        BoardError: the companion is absent, or its edges are not those of the `.bin` (a removed edge node).
    """
    path = companion(model)
    if not path.is_file():
        raise BoardError(TASK_FAILED, f"engine runtime needs {path.name} beside the model")
    from horizon_tc_ui import HB_ONNXRuntime  # the toolchain's own package

    session = HB_ONNXRuntime(model_file=str(path))
    if any(key.startswith(("DN_D_", "DN_Q_")) for key in model.metadata):
        raise BoardError(
            TASK_FAILED, "edge nodes were removed from the .bin: its companion has other inputs or outputs"
        )
    prepared = {f.name: _picture(feeds[f.name], f) if f.image else feeds[f.name] for f in facts}
    results = session.run_direct(session.output_names, prepared)
    return dict(zip(session.output_names, results, strict=True))


def _picture(values: Array, facts: TensorFacts) -> Array:
    """A picture as the quantised model takes it: int8, 128 subtracted; NV12 as [1, H, W, 3], chroma repeated."""
    if values.dtype == np.int8:
        return values
    _, _, height, width = facts.valid
    luma = values[: height * width].reshape(height, width, 1)
    if facts.type.endswith("NV12"):
        chroma = values[height * width :].reshape(height // 2, width // 2, 2).repeat(2, 0).repeat(2, 1)
        luma = np.concatenate([luma, chroma], axis=2)
    return (luma.astype(np.int16) - 128).astype(np.int8)[None]
