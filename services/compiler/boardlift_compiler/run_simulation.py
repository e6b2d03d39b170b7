"""Simulate a compiled model.

The quantised model runs on held-out samples and is compared with the float reference; the compiled code is compared
with the quantised model, bit by bit, at every BPU node's border.

CPU nodes between BPU subgraphs need no model of their own: every BPU node is fed with the quantised model's tensors,
so each piece of compiled code is judged alone and a mismatch is located at its node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from boardlift_servicekit.tool import run_tool

from boardlift_compiler.check_bits import BitCheck, check_bits, find_borders, find_fragile
from boardlift_compiler.compare_outputs import (
    ShapeMismatchError,
    compare_output,
)
from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.find_far_outputs import describe_constant_output, describe_far_output
from boardlift_compiler.find_lost_channels import describe_lost_channels
from boardlift_compiler.find_saturation import describe_saturation
from boardlift_compiler.findings import Finding
from boardlift_compiler.name_crash import name_runtime_crash
from boardlift_compiler.prepare_calibration import RefusedError, read_samples
from boardlift_compiler.read_bin import BinUnreadableError, CompiledModel, read_bin
from boardlift_compiler.read_model import ModelSummary, ModelUnreadableError, read_model
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.run_mapper import Launcher
from boardlift_compiler.run_vendor import Answer, run_vendor_program
from boardlift_compiler.simulate_outcome import SimulateOutcome
from boardlift_compiler.spec import CompileSpec
from boardlift_compiler.toolchain import Toolchain
from boardlift_compiler.write_inputs import write_inputs

Array = npt.NDArray[np.generic]
DEFAULT_BIT_SAMPLES = 4
BATCH = 16
TIMEOUT_S = 3600.0
"""Limit of the quantised model's run over all samples, seconds."""


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
    lanes: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """As many simulators of compiled code run at the same time, over all simulations that share it."""
    launcher: Launcher = run_tool
    """How the quantised model's program is started."""


def bit_samples_of(inputs: SimulateInputs) -> int:
    """Samples for the bit check: as asked, but at least one whole batch of the compiled model."""
    return max([inputs.bit_samples, *(i.batch for i in inputs.spec.inputs)])


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
    prepared = await asyncio.to_thread(_prepare, inputs, folder, outcome)
    if prepared is None:
        return outcome
    compiled, quantized, samples = prepared
    borders = find_borders(compiled, quantized, inputs.spec)
    tensors = dict(borders.values())
    answer = await _run_quantised(toolchain, inputs, folder, tensors, on_progress)
    if isinstance(answer, StageFailure):
        outcome.failure = name_runtime_crash(answer, quantized)
        return outcome
    outcome.batched = bool(answer.get("batched"))
    outcome.quantized_outputs = folder.path / "outputs.npz"
    if inputs.reference is not None:
        await asyncio.to_thread(_compare_reference, inputs, outcome)
    if outcome.failure is None and inputs.bit_samples >= 0:
        check = BitCheck(
            toolchain,
            compiled,
            samples,
            inputs.spec,
            folder,
            borders,
            bit_samples_of(inputs),
            inputs.lanes,
            find_fragile(compiled, quantized),
        )
        await check_bits(check, outcome, on_progress)
    return outcome


def _prepare(
    inputs: SimulateInputs, folder: RunFolder, outcome: SimulateOutcome
) -> tuple[CompiledModel, ModelSummary, dict[str, Array]] | None:
    """Read what is given and write the quantised model's inputs; None when something is refused."""
    try:
        compiled = read_bin(inputs.compiled.read_bytes())
        quantized = read_model(inputs.quantized.read_bytes())
        samples = read_samples(inputs.heldout)
        write_inputs(quantized, samples, inputs.spec, folder.path / "inputs.npz")
    except BinUnreadableError as error:
        outcome.failure = make_failure("COMPILED_MODEL_UNREADABLE", "", (str(error),))
    except ModelUnreadableError as error:
        outcome.failure = make_failure("MODEL_UNREADABLE", "", (str(error),))
    except RefusedError as error:
        outcome.failure = error.failure
    else:
        return compiled, quantized, samples
    return None


async def _run_quantised(
    toolchain: Toolchain,
    inputs: SimulateInputs,
    folder: RunFolder,
    tensors: dict[str, str],
    on_progress: Callable[[str, float, int, int], None],
) -> Answer | StageFailure:
    request = {
        "model": str(inputs.quantized),
        "inputs": str(folder.path / "inputs.npz"),
        "outputs": str(folder.path / "outputs.npz"),
        "tensors": tensors,
        "tensor_samples": bit_samples_of(inputs),
        "tensor_outputs": str(folder.path / "tensors.npz"),
        "batch": BATCH,
    }

    def on_message(message: dict[str, list[int]]) -> None:
        if "progress" in message:
            done, total = message["progress"]
            on_progress("quantised model", 0.5 * done / max(total, 1), done, total)

    return await run_vendor_program(
        toolchain, "run_quantised.py", request, folder, on_message, inputs.launcher, timeout_s=TIMEOUT_S
    )


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
        outcome.findings += [f for n in names for f in describe_lost_channels(n, got[n], reference[n])]
        for name in names:
            outcome.findings += describe_constant_output(name, reference[name])
            saturated = describe_saturation(name, got[name], reference[name])
            outcome.findings += saturated or describe_far_output(name, got[name], reference[name])
        # An output that nothing was compared with is not proven: the variant fails by default.
        for code, missing, text in (
            ("OUTPUT_WITHOUT_REFERENCE", sorted(set(got) - set(reference)), "There is no float reference for output"),
            ("OUTPUT_MISSING", sorted(set(reference) - set(got)), "The quantised model has no output"),
        ):
            outcome.findings += [Finding(code, "error", f"{text} {name}.", name) for name in missing]
    except ShapeMismatchError as error:
        outcome.failure = make_failure("REFERENCE_MISMATCH", str(error)[:200])
    except RefusedError as error:
        outcome.failure = error.failure
