"""Simulate a compiled model.

The quantised model runs on held-out samples and is compared with the float reference; the compiled code is compared
with the quantised model, bit by bit, at every BPU node's border.

CPU nodes between BPU subgraphs need no model of their own: every BPU node is fed with the quantised model's tensors,
so each piece of compiled code is judged alone and a mismatch is located at its node.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from boardlift_servicekit.tool import ToolCommand, run_tool

from boardlift_compiler.compare_outputs import (
    BitComparison,
    Comparison,
    ShapeMismatchError,
    compare_bits,
    compare_output,
)
from boardlift_compiler.convert_images import to_quantized_input, to_simulator_input
from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.findings import Finding
from boardlift_compiler.prepare_calibration import RefusedError, read_samples
from boardlift_compiler.read_bin import BinNode, BinUnreadableError, CompiledModel, read_bin
from boardlift_compiler.read_model import ModelSummary, ModelUnreadableError, read_model
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.simulate_code import SimulatorError, simulate_node
from boardlift_compiler.spec import CompileSpec
from boardlift_compiler.toolchain import Toolchain, tool_environment

Array = npt.NDArray[np.generic]
DEFAULT_BIT_SAMPLES = 4
BATCH = 16


@dataclass(frozen=True)
class SimulateInputs:
    """What to simulate."""

    quantized: Path
    """Quantised ONNX."""
    compiled: Path
    """Compiled ``.bin``."""
    heldout: Path
    """``.npz``, samples in the model's input form."""
    reference: Path | None
    """``.npz``, float outputs of the user's model on these samples; None skips the comparison."""
    spec: CompileSpec
    """Names the inputs' types."""
    bit_samples: int = DEFAULT_BIT_SAMPLES
    """Samples for the bit check."""


@dataclass
class SimulateOutcome:
    """What the simulation showed."""

    failure: StageFailure | None = None
    """Why there is none."""
    outputs: list[Comparison] = field(default_factory=list)
    """Quantised model against the float reference. Simulated."""
    bits: list[BitComparison] = field(default_factory=list)
    """Compiled code against quantised model. Simulated."""
    findings: list[Finding] = field(default_factory=list)
    """Things worth knowing."""
    quantized_outputs: Path | None = None
    """``.npz`` of the quantised model's outputs; lies in the run folder."""
    batched: bool = False
    """True when the samples ran in batches (proven equal on the first)."""

    @property
    def bit_exact(self) -> bool:
        """True when there was at least one bit check and all were equal."""
        return bool(self.bits) and all(b.equal for b in self.bits)


def toolchain_side(name: str) -> Path:
    """Return one of our programs that run inside the toolchain's interpreter."""
    here = Path(__file__).resolve().parent
    inside = here / "toolchain_side" / name
    return inside if inside.exists() else here.parent / "toolchain_side" / name


async def simulate_model(
    toolchain: Toolchain,
    inputs: SimulateInputs,
    folder: RunFolder,
    on_progress: Callable[[str, float, int, int], None] = lambda step, fraction, done, total: None,
) -> SimulateOutcome:
    """Simulate; a refusal is an outcome, not an exception.

    Args:
        toolchain: The installed toolchain.
        inputs: What to simulate.
        folder: Run folder.
        on_progress: Called with (step, fraction of the whole, done, total).
    """
    outcome = SimulateOutcome()
    try:
        compiled = read_bin(inputs.compiled.read_bytes())
        quantized = read_model(inputs.quantized.read_bytes())
        samples = read_samples(inputs.heldout)
        _write_inputs(samples, quantized, inputs.spec, folder)
    except BinUnreadableError as error:
        outcome.failure = make_failure("COMPILED_MODEL_UNREADABLE", "", (str(error),))
    except ModelUnreadableError as error:
        outcome.failure = make_failure("MODEL_UNREADABLE", "", (str(error),))
    except RefusedError as error:
        outcome.failure = error.failure
    if outcome.failure is not None:
        return outcome
    tensors = _border_tensors(compiled)
    answer = await _run_quantised(toolchain, inputs, folder, tensors, on_progress)
    if isinstance(answer, StageFailure):
        outcome.failure = answer
        return outcome
    outcome.batched = bool(answer.get("batched"))
    outcome.quantized_outputs = folder.path / "outputs.npz"
    if inputs.reference is not None:
        _compare_reference(inputs, outcome)
    if outcome.failure is None and inputs.bit_samples >= 0:
        await _check_bits(toolchain, compiled, samples, inputs, folder, tensors, outcome, on_progress)
    return outcome


def _write_inputs(samples: dict[str, Array], quantized: ModelSummary, spec: CompileSpec, folder: RunFolder) -> None:
    arrays: dict[str, Array] = {}
    for tensor in quantized.inputs:
        if tensor.name not in samples:
            raise RefusedError(make_failure("CALIBRATION_MISSING", tensor.name))
        array = to_quantized_input(samples[tensor.name], spec.input_named(tensor.name), tensor)
        arrays[tensor.name] = array
    np.savez(folder.path / "inputs.npz", **arrays)  # type: ignore[arg-type]  # numpy's stub types savez's flags only


def _border_tensors(compiled: CompiledModel) -> dict[str, str]:
    wanted: dict[str, str] = {}
    for node in compiled.bpu_nodes:
        for name in (*node.inputs, *node.outputs):
            known = compiled.tensors.get(name)
            wanted[name] = known.dtype if known else "int8"
    return wanted


async def _run_quantised(
    toolchain: Toolchain,
    inputs: SimulateInputs,
    folder: RunFolder,
    tensors: dict[str, str],
    on_progress: Callable[[str, float, int, int], None],
) -> dict[str, object] | StageFailure:
    request = {
        "model": str(inputs.quantized),
        "inputs": str(folder.path / "inputs.npz"),
        "outputs": str(folder.path / "outputs.npz"),
        "tensors": tensors,
        "tensor_samples": inputs.bit_samples,
        "tensor_outputs": str(folder.path / "tensors.npz"),
        "batch": BATCH,
    }
    (folder.path / "request.json").write_text(json.dumps(request), encoding="utf-8")
    messages: list[dict[str, object]] = []

    def on_line(source: str, text: str) -> None:
        if source != "stdout" or not text.startswith("{"):
            return
        try:
            message = json.loads(text)
        except ValueError:
            return  # the vendor's runtime prints on the same stream
        messages.append(message)
        if "progress" in message:
            done, total = message["progress"]
            on_progress("quantised model", 0.5 * done / max(total, 1), done, total)

    program = toolchain_side("run_quantised.py")
    command = ToolCommand(
        [str(toolchain.python), str(program), str(folder.path / "request.json")],
        cwd=folder.path,
        environment=tool_environment(toolchain.root, folder),
        timeout_s=3600.0,
    )
    result = await run_tool(command, on_line)
    for message in messages:
        if "result" in message:
            return message["result"]  # type: ignore[return-value]
    text = next((str(m["error"]) for m in messages if "error" in m), "\n".join(result.last_lines[-5:]))
    return make_failure("SIMULATION_FAILED", text.splitlines()[0][:200] if text else "", (text,), result.exit_code)


def _compare_reference(inputs: SimulateInputs, outcome: SimulateOutcome) -> None:
    if inputs.reference is None or outcome.quantized_outputs is None:
        return
    try:
        reference = read_samples(inputs.reference)
        got = read_samples(outcome.quantized_outputs)
        names = [n for n in got if n in reference]
        if not names:
            outcome.failure = make_failure("REFERENCE_MISMATCH", ", ".join(list(got)[:5]))
            return
        outcome.outputs = [compare_output(n, got[n], reference[n]) for n in names]
        for name in got:
            if name not in reference:
                outcome.findings.append(
                    Finding(
                        "OUTPUT_WITHOUT_REFERENCE", "warning", f"There is no float reference for output {name}.", name
                    )
                )
    except ShapeMismatchError as error:
        outcome.failure = make_failure("REFERENCE_MISMATCH", str(error)[:200])
    except RefusedError as error:
        outcome.failure = error.failure


async def _check_bits(
    toolchain: Toolchain,
    compiled: CompiledModel,
    samples: dict[str, Array],
    inputs: SimulateInputs,
    folder: RunFolder,
    tensors: dict[str, str],
    outcome: SimulateOutcome,
    on_progress: Callable[[str, float, int, int], None],
) -> None:
    code = folder.path / "code.hbm"
    code.write_bytes(compiled.code)
    order = list(tensors)
    with np.load(folder.path / "tensors.npz", allow_pickle=False) as loaded:
        values = {order[int(k[1:])]: loaded[k] for k in loaded.files}
    count = min(inputs.bit_samples, *(len(v) for v in values.values())) if values else 0
    done, total = 0, count * len(compiled.bpu_nodes)
    for node in compiled.bpu_nodes:
        missing = [t for t in (*node.inputs, *node.outputs) if t not in values]
        if missing:
            text = f"the quantised model has no tensor {missing[0]}"
            outcome.bits += [BitComparison(node.name, t, 0, False, first=text) for t in node.outputs]
            continue
        pairs: dict[str, list[tuple[Array, Array]]] = {t: [] for t in node.outputs}
        for sample in range(count):
            feed = [_node_input(t, values, samples, sample, compiled, inputs.spec) for t in node.inputs]
            try:
                results = await simulate_node(toolchain, folder, code, node.name, feed, len(node.outputs))
            except SimulatorError as error:
                outcome.failure = make_failure("SIMULATION_FAILED", node.name, (str(error),))
                return
            for tensor, result in zip(node.outputs, results, strict=True):
                pairs[tensor].append((result, values[tensor][sample]))
            done += 1
            on_progress("compiled code", 0.5 + 0.5 * done / max(total, 1), done, total)
        outcome.bits += [compare_bits(node.name, t, p) for t, p in pairs.items()]
        _note_mismatch(node, outcome)


def _node_input(
    tensor: str,
    values: dict[str, Array],
    samples: dict[str, Array],
    sample: int,
    compiled: CompiledModel,
    spec: CompileSpec,
) -> tuple[Array, bool]:
    if tensor in samples:
        special = to_simulator_input(samples[tensor][sample], spec.input_named(tensor))
        if special is not None:
            return special
    known = compiled.tensors.get(tensor)
    value = values[tensor][sample]
    return (value.astype(known.dtype) if known and known.dtype != "unknown" else value), False


def _note_mismatch(node: BinNode, outcome: SimulateOutcome) -> None:
    for bit in outcome.bits:
        if bit.subgraph == node.name and not bit.equal:
            outcome.findings.append(
                Finding(
                    "COMPILED_CODE_DIFFERS",
                    "error",
                    f"Compiled code of {node.name} differs from the quantised model in"
                    f" {bit.different} elements, by up to {bit.max_difference} steps"
                    f" ({bit.first}).",
                    bit.tensor,
                    "On borders: symmetric or begin-heavy padding avoids it; or use int8.",
                )
            )
