"""Run the three models that a build leaves on a few calibration samples and judge how they part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boardlift_compiler.convert_images import to_quantized_input
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.find_parting import BEHIND_DB, LOSS_DB, NEAR_DB, NodeGap, OutputGap, find_parting
from boardlift_compiler.findings import Finding
from boardlift_compiler.prepare_calibration import CalibrationSet
from boardlift_compiler.read_model import ModelSummary, read_model
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.run_mapper import Launcher
from boardlift_compiler.run_vendor import run_vendor_program
from boardlift_compiler.spec import CompileSpec
from boardlift_compiler.toolchain import Toolchain

Array = npt.NDArray[np.generic]
SAMPLES = 4
LARGE = 1_000_000
"""Elements of the inputs, all samples, from which one sample has to do."""
MOST_ELEMENTS = 20_000_000
"""Elements of the tensors that are compared at one time, 160 MB for each of the models; larger ones go in parts."""
LIMIT_S = 600.0
"""Seconds, where the median of 238 builds was 0.24 s. The comparison is left out where it takes longer."""


async def measure_parting(
    toolchain: Toolchain,
    models: Mapping[str, Path],
    data: CalibrationSet,
    folder: RunFolder,
    launcher: Launcher,
) -> list[Finding]:
    """Return what is to be said of a build; INTEGERS_NOT_COMPARED when the models could not be run.

    Args:
        toolchain: The installed toolchain.
        models: ONNX files under ``float``, ``calibrated`` and ``quantized``.
        data: Calibration samples in training form; the first few are taken.
        folder: Run folder.
        launcher: How the program is started.
    """
    samples, spec = data.arrays, data.spec
    count = SAMPLES if sum(a[:1].size for a in samples.values()) * SAMPLES < LARGE else 1
    request: dict[str, object] = {
        "near_db": NEAR_DB, "behind_db": BEHIND_DB, "loss_db": LOSS_DB, "most_elements": MOST_ELEMENTS,
    }  # fmt: skip
    for name, path in models.items():
        inputs = folder.path / f"compare_{name}.npz"
        arrays = _inputs(read_model(path.read_bytes()), {n: a[:count] for n, a in samples.items()}, spec)
        np.savez(inputs, **arrays)  # type: ignore[arg-type]  # numpy's stub types savez's flags only
        request[name] = {"model": str(path), "inputs": str(inputs)}
    answer = await run_vendor_program(
        toolchain, "compare_models.py", request, folder, launcher=launcher, timeout_s=LIMIT_S
    )
    if isinstance(answer, StageFailure):
        return [not_compared(" ".join([answer.message, *answer.evidence])[:300])]
    outputs = [OutputGap(**row) for row in answer["outputs"]]
    nodes = [NodeGap(**{**row, "inputs": tuple(row["inputs"])}) for row in answer["nodes"]]
    return find_parting(outputs, nodes)


def not_compared(why: str) -> Finding:
    """Return the finding that says that nothing was compared."""
    text = f"Calibrated and quantised model were not compared: {why}."
    return Finding("INTEGERS_NOT_COMPARED", "warning", text, "", "Judge the build by its simulation.")


def _inputs(model: ModelSummary, samples: Mapping[str, Array], spec: CompileSpec) -> dict[str, Array]:
    return {t.name: to_quantized_input(samples[t.name], spec.input_named(t.name), t) for t in model.inputs}
