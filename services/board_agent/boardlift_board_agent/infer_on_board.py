"""Held-out samples through the board, and the three-way comparison of the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boardlift_board_agent import convert
from boardlift_board_agent.bench import Bench
from boardlift_board_agent.colour_tensors import colour_tensors
from boardlift_board_agent.compare_outputs import compare_all
from boardlift_board_agent.failures import ToolRun
from boardlift_board_agent.hrt_model_exec import infer_command
from boardlift_board_agent.load_samples import load_arrays, save_arrays
from boardlift_board_agent.orient_samples import orient_samples
from boardlift_board_agent.run_inference import Inference, run_samples
from boardlift_board_agent.tensor_spec import TensorSpec
from boardlift_board_agent.three_way import locate_divergence

NPZ = "application/x-npz"
_DEFAULT_SAMPLES = 8
MAX_SAMPLES = 1024
"""Most samples of one run."""


async def _load(bench: Bench, name: str, what: str) -> dict[str, Any]:
    reference = getattr(bench.request, name)
    if not reference.sha256:
        return {}
    count = bench.request.samples or _DEFAULT_SAMPLES
    convert.in_range("samples", count, 1, MAX_SAMPLES)
    return load_arrays(await bench.store.fetch(reference), what, count)


async def infer_on_board(bench: Bench, tensors: tuple[TensorSpec, ...]) -> None:
    """Runs the samples and compares the answers.

    Args:
        bench: the run.
        tensors: the compiled model's tensors.

    Raises:
        ModelRefused, BoardliftError: the tool or the samples.
    """
    samples = await _load(bench, "heldout", "held-out samples")
    if not samples:
        return
    samples = orient_samples(samples, tensors, bench.request.sample_layouts)
    tensors = colour_tensors(tensors, bench.request.sample_pictures)
    total = min(len(a) for a in samples.values())

    async def run(paths: list[Path], dump: Path) -> ToolRun:
        command = infer_command(bench.tool.program, bench.model, paths, dump)
        return await bench.call(command, bench.limits.infer_s, quiet=True)

    def tell(done: int) -> None:
        bench.emit.progress("infer", 0.05 + 0.55 * done / total, done, total)

    answer = await run_samples(samples, tensors, bench.folder, run, tell)
    bench.result.engine = bench.engine
    bench.result.board_outputs.CopyFrom(await bench.store.put_bytes(save_arrays(answer.outputs), NPZ))
    await _compare(bench, answer)


async def _compare(bench: Bench, answer: Inference) -> None:
    simulated = bench.watch.simulated
    source = "simulated board" if simulated else "board"
    differences: dict[str, list[Any]] = {}
    for name, what in (("reference_outputs", "float outputs"), ("quantized_outputs", "quantised outputs")):
        reference = await _load(bench, name, what)
        found, complaints = compare_all(answer.outputs, reference, answer.samples) if reference else ([], [])
        differences[name] = found
        bench.result.findings.extend(
            convert.finding("OUTPUT_NOT_COMPARED", "warning", text, what, "Check the output's name and shape.")
            for text in complaints
        )
    against_float, against_quantized = differences["reference_outputs"], differences["quantized_outputs"]
    bench.result.board_vs_float.extend(convert.comparison_message(d, simulated, source) for d in against_float)
    bench.result.board_vs_quantized.extend(convert.comparison_message(d, simulated, source) for d in against_quantized)
    parted = locate_divergence(against_float, against_quantized, answer.plain_copies, bench.ran_compiled_code)
    bench.result.findings.extend(convert.divergence_to_finding(item) for item in parted)
