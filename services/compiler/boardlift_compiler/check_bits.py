"""Prove compiled code equal to the quantised model, bit by bit, at the border of every BPU node.

Every BPU node is fed with the quantised model's own tensors, so CPU nodes between subgraphs need no model and a
mismatch belongs to one piece of code. Where the compiled model lacks edge nodes (removed Quantize, Dequantize,
Transpose ...) or has a larger batch than the quantised one, the tensors are matched up first.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boardlift_compiler.compare_outputs import BitComparison, compare_bits
from boardlift_compiler.convert_images import to_simulator_input
from boardlift_compiler.explain_failure import make_failure
from boardlift_compiler.findings import Finding
from boardlift_compiler.read_bin import BinNode, CompiledModel
from boardlift_compiler.read_model import ModelSummary, Node
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.simulate_code import SimulatorError, simulate_node
from boardlift_compiler.simulate_outcome import SimulateOutcome
from boardlift_compiler.spec import REMOVABLE_TYPES, CompileSpec
from boardlift_compiler.toolchain import Toolchain

Array = npt.NDArray[np.generic]
Progress = Callable[[str, float, int, int], None]
FRAGILE = frozenset({"HzQuantizedTopK", "Gather", "GatherElements"})
"""Operators of the quantised model whose compiled code dies in the simulator at many sizes."""
EDGE_OPS = frozenset({*REMOVABLE_TYPES, "HzQuantize", "HzDequantize"})


@dataclass(frozen=True)
class BitCheck:
    """What one check needs."""

    toolchain: Toolchain
    """The installed toolchain."""
    compiled: CompiledModel
    """The compiled model."""
    samples: Mapping[str, Array]
    """Held-out samples in training form."""
    spec: CompileSpec
    """Names the inputs' types."""
    folder: RunFolder
    """Run folder holding ``tensors.npz``."""
    borders: Mapping[str, tuple[str, str]]
    """Tensor of the compiled model -> (tensor of the quantised model, element type)."""
    count: int
    """Samples to compare."""
    lanes: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """As many simulators run at the same time, over all checks that share it."""
    fragile: str = ""
    """Names of the nodes whose code is known to die in the simulator; empty when there is none."""


def find_fragile(compiled: CompiledModel, quantized: ModelSummary) -> str:
    """Return the nodes on the BPU whose code dies in the simulator at many sizes: TopK, Gather, GatherElements.

    Measured: 8 x 14 x 14 and 16 x 1 x 1 die (hbrtErrorForDeveloper), 16 x 16 x 16 does not; on the CPU they are right.
    """
    found = [n.name for n in quantized.nodes if n.op_type in FRAGILE and n.name not in compiled.cpu_ops]
    return ", ".join(found[:5])


def find_borders(compiled: CompiledModel, quantized: ModelSummary, spec: CompileSpec) -> dict[str, tuple[str, str]]:
    """Match every tensor at a BPU node's border with the quantised model's tensor that holds the same integers."""
    makers = {o: n for n in quantized.nodes for o in n.outputs}
    borders: dict[str, tuple[str, str]] = {}
    for node in compiled.bpu_nodes:
        for name in (*node.inputs, *node.outputs):
            known = compiled.tensors.get(name)
            dtype = known.dtype if known else "int8"
            same = name
            if dtype.startswith("int") and not spec.input_named(name).is_image:
                graph_input = next((t for t in quantized.inputs if t.name == name), None)
                if graph_input is not None and graph_input.dtype == "float32":
                    same = next((n.outputs[0] for n in quantized.nodes if n.inputs[:1] == (name,)), name)
                same = _before_removed(same, makers, {t.name for t in quantized.outputs})
            borders[name] = (same, dtype)
    return borders


def _before_removed(name: str, makers: Mapping[str, Node], outputs: set[str]) -> str:
    """Walk back from a float model output over the edge nodes that the compiled model lacks."""
    if name not in outputs:
        return name
    while (maker := makers.get(name)) is not None and maker.op_type in EDGE_OPS:
        name = maker.inputs[0]
        if maker.op_type == "HzDequantize":
            break
    return name


async def check_bits(check: BitCheck, outcome: SimulateOutcome, on_progress: Progress) -> None:
    """Run every BPU node on every sample, side by side, and note what differs or could not be compared."""
    packed = check.folder.path / "code.hbm"
    packed.write_bytes(check.compiled.code)
    order = list(dict.fromkeys(check.borders.values()))
    with np.load(check.folder.path / "tensors.npz", allow_pickle=False) as loaded:
        by_name = {order[int(k[1:])][0]: loaded[k] for k in loaded.files}
    values = {name: by_name[same] for name, (same, _) in check.borders.items() if same in by_name}
    count = min([check.count, *(len(v) for v in values.values())]) if values else 0
    done, total = 0, count * len(check.compiled.bpu_nodes)

    def advance(samples: int) -> None:
        nonlocal done
        done += samples
        on_progress("compiled code", 0.5 + 0.5 * done / max(total, 1), done, total)

    for node in check.compiled.bpu_nodes:
        why = _not_comparable(check, node, values, count)
        if why:
            found = [BitComparison(node.name, t, 0, False, not_compared=why) for t in node.outputs]
        else:
            try:
                pairs = await _run_samples(check, node, packed, values, count, advance)
            except SimulatorError as error:
                aborts = error.aborted and bool(check.fragile)
                code, subject = ("COMPILED_CODE_ABORTS", check.fragile) if aborts else ("SIMULATION_FAILED", node.name)
                outcome.failure = make_failure(code, subject, (str(error),))
                return
            found = [compare_bits(node.name, t, p) for t, p in pairs.items()]
        outcome.bits += found
        outcome.findings += [_finding(bit) for bit in found if not bit.equal]


def _not_comparable(check: BitCheck, node: BinNode, values: Mapping[str, Array], count: int) -> str:
    """Return why a node's code can't be compared; empty when it can."""
    missing = next((t for t in (*node.inputs, *node.outputs) if t not in values), "")
    if missing:
        return f"the quantised model has no tensor {missing}"
    group = _batch_of(node, values, check.compiled)
    return f"the code takes {group} samples at once and there are {count}" if count < group else ""


async def _run_samples(
    check: BitCheck,
    node: BinNode,
    code: Path,
    values: Mapping[str, Array],
    count: int,
    advance: Callable[[int], None],
) -> dict[str, list[tuple[Array, Array]]]:
    """Run one node on all samples, as many at a time as there are lanes.

    Returns:
        Per output tensor and sample, in order: (compiled code, quantised model).

    Raises:
        SimulatorError: a run failed; the others are stopped.
    """
    group = _batch_of(node, values, check.compiled)

    async def run(start: int) -> list[list[tuple[Array, Array]]]:
        async with check.lanes:
            found = await _run_once(check, node, code, values, range(start, start + group))
        advance(group)
        return found

    tasks = [asyncio.create_task(run(start)) for start in range(0, count - group + 1, group)]
    try:
        runs = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {t: [pair for found in runs for pair in found[k]] for k, t in enumerate(node.outputs)}


def _batch_of(node: BinNode, values: Mapping[str, Array], compiled: CompiledModel) -> int:
    """Return how many samples of the quantised model one run of the code takes."""
    name = node.inputs[0]
    known = compiled.tensors.get(name)
    if known is None or not len(values[name]):
        return 1
    per_sample = values[name].size // len(values[name])
    return max(1, math.prod(known.shape) // per_sample) if per_sample else 1


async def _run_once(
    check: BitCheck, node: BinNode, code: Path, values: Mapping[str, Array], chosen: range
) -> list[list[tuple[Array, Array]]]:
    feed = [_node_input(check, t, values, chosen) for t in node.inputs]
    results = await simulate_node(check.toolchain, check.folder, code, node.name, feed, node.outputs)
    pairs: list[list[tuple[Array, Array]]] = []
    for tensor, result in zip(node.outputs, results, strict=True):
        wanted = values[tensor][chosen.start : chosen.stop]
        if len(chosen) == 1:
            pairs.append([(result, wanted[0])])
            continue
        parts = np.split(result, len(chosen)) if result.size % len(chosen) == 0 else [result] * len(chosen)
        pairs.append(list(zip(parts, wanted, strict=True)))
    return pairs


def _node_input(check: BitCheck, tensor: str, values: Mapping[str, Array], chosen: range) -> tuple[Array, bool]:
    item = check.spec.input_named(tensor)
    if tensor in check.samples and item.is_image:
        special = [to_simulator_input(check.samples[tensor][k], item) for k in chosen]
        buffers = [s[0] for s in special if s is not None]
        if buffers:
            return np.concatenate(buffers), True
    known = check.compiled.tensors.get(tensor)
    value = values[tensor][chosen.start : chosen.stop]
    return (value.astype(known.dtype) if known and known.dtype != "unknown" else value), False


def _finding(bit: BitComparison) -> Finding:
    if bit.not_compared:
        text = f"Compiled code of {bit.subgraph} was not compared at {bit.tensor}: {bit.not_compared}."
        return Finding("COMPILED_CODE_NOT_COMPARED", "warning", text, bit.tensor, "Give more samples, or report it.")
    text = (
        f"Compiled code of {bit.subgraph} differs from the quantised model in {bit.different} elements,"
        f" by up to {bit.max_difference} steps ({bit.first})."
    )
    advice = "Give the .bin and the quantised model of one build; if they are, try int8 for this node, and report it."
    if "border only" in bit.first:
        advice = "Symmetric or begin-heavy padding avoids it (transform pass balance-padding); or use int8."
    return Finding("COMPILED_CODE_DIFFERS", "error", text, bit.tensor, advice)
