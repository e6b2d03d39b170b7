"""Fill what a request leaves open: presets, purposes and thread counts; pure.

``int8`` is the tool's own default, ``int16`` asks it for all nodes, ``mixed`` puts the first and the last weighted
layer in int16, ``auto`` takes int16 for small vector models (policies: it costs little and halves the error) and int8
otherwise, ``fast-perf`` moves Softmax to the BPU and drops the output Dequantize.
"""

from __future__ import annotations

import math
from dataclasses import replace

from boardlift_compiler.read_model import ModelSummary
from boardlift_compiler.spec import CompileSpec, NodeOverride

LEVELS = {"release": "O3", "search": "O2", "preview": "O1"}
METHOD_OF_PURPOSE = {"release": "default", "search": "max", "preview": "max"}
WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
SMALL_INPUT_ELEMENTS = 8192
INT16 = "set_all_nodes_int16"
SOFTMAX_ON_BPU = ("set_Softmax_input_int8", "set_Softmax_output_int8")


def complete_spec(spec: CompileSpec, model: ModelSummary, jobs: int) -> CompileSpec:
    """Return the spec with nothing left open.

    Args:
        spec: As asked.
        model: The model it is for; names nodes and inputs.
        jobs: Compiler threads to use where none are asked.
    """
    spec = apply_preset(spec, model)
    method = spec.calibration.method or METHOD_OF_PURPOSE.get(spec.purpose, "default")
    level = spec.compiler.optimize_level or LEVELS.get(spec.purpose, "O3")
    knobs = replace(spec.compiler, optimize_level=level, jobs=spec.compiler.jobs or jobs)
    inputs = tuple(spec.input_named(i.name) for i in model.inputs)
    extra = tuple(i for i in spec.inputs if i.name not in {m.name for m in model.inputs})
    return replace(spec.with_calibration(method=method), compiler=knobs, inputs=inputs + extra)


def apply_preset(spec: CompileSpec, model: ModelSummary) -> CompileSpec:
    """Return the spec with its preset's words added; what is asked explicitly stays."""
    preset = spec.preset
    if preset == "auto":
        preset = "int16" if is_small_vector_model(model) else "int8"
    if preset == "int16":
        return spec.with_calibration(optimization=_added(spec.calibration.optimization, (INT16,)))
    if preset == "mixed":
        return replace(spec, nodes=spec.nodes + _ends_in_int16(spec, model))
    if preset == "fast-perf":
        removed = spec.remove_node_types or ("Dequantize",)
        spec = replace(spec, remove_node_types=removed)
        has_softmax = any(n.op_type == "Softmax" for n in model.nodes)
        words = SOFTMAX_ON_BPU if has_softmax else ()
        return spec.with_calibration(optimization=_added(spec.calibration.optimization, words))
    return spec


def is_small_vector_model(model: ModelSummary) -> bool:
    """True when all inputs are small and no spatial convolution appears: a policy or another MLP."""
    for tensor in model.inputs:
        dims = [d for d in tensor.shape if isinstance(d, int)]
        if len(dims) != len(tensor.shape) or math.prod(dims) > SMALL_INPUT_ELEMENTS:
            return False
    kernels = [w.shape[2:] for n in model.nodes if n.op_type == "Conv" and len(n.inputs) > 1
               if (w := model.weights.get(n.inputs[1])) is not None]  # fmt: skip
    return all(max(k, default=1) == 1 for k in kernels)


def _added(words: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return words + tuple(w for w in more if w not in words)


def _ends_in_int16(spec: CompileSpec, model: ModelSummary) -> tuple[NodeOverride, ...]:
    taken = {n.node for n in spec.nodes}
    weighted = [n.name for n in model.nodes if n.op_type in WEIGHTED and n.name]
    ends = list(dict.fromkeys(weighted[:1] + weighted[-1:]))
    return tuple(NodeOverride(name, input_type="int16") for name in ends if name not in taken)
