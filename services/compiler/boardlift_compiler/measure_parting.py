"""Run the three models that a build leaves on a few calibration samples and judge how they part."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.find_parting import BEHIND_DB, LOSS_DB, NEAR_DB, NodeGap, OutputGap, find_parting
from boardlift_compiler.findings import Finding
from boardlift_compiler.prepare_calibration import CalibrationSet, RefusedError
from boardlift_compiler.read_model import read_model
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.run_mapper import Launcher
from boardlift_compiler.run_vendor import run_vendor_program
from boardlift_compiler.toolchain import Toolchain
from boardlift_compiler.write_inputs import write_inputs

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
    try:
        request = await asyncio.to_thread(_write_request, models, data, folder)
    except RefusedError as error:
        return [not_compared(error.failure.message)]
    answer = await run_vendor_program(
        toolchain, "compare_models.py", request, folder, launcher=launcher, timeout_s=LIMIT_S
    )
    if isinstance(answer, StageFailure):
        return [not_compared(" ".join([answer.message, *answer.evidence])[:300])]
    outputs = [OutputGap(**row) for row in answer["outputs"]]
    nodes = [NodeGap(**{**row, "inputs": tuple(row["inputs"])}) for row in answer["nodes"]]
    return find_parting(outputs, nodes)


def _write_request(models: Mapping[str, Path], data: CalibrationSet, folder: RunFolder) -> dict[str, object]:
    """Write each model's samples; return what the program is asked.

    Raises:
        RefusedError: a model takes samples in another form than those of the calibration.
    """
    count = SAMPLES if sum(a[:1].size for a in data.arrays.values()) * SAMPLES < LARGE else 1
    samples = {name: array[:count] for name, array in data.arrays.items()}
    request: dict[str, object] = {
        "near_db": NEAR_DB, "behind_db": BEHIND_DB, "loss_db": LOSS_DB, "most_elements": MOST_ELEMENTS,
    }  # fmt: skip
    for name, path in models.items():
        inputs = folder.path / f"compare_{name}.npz"
        write_inputs(read_model(path.read_bytes()), samples, data.spec, inputs)
        request[name] = {"model": str(path), "inputs": str(inputs)}
    return request


def not_compared(why: str) -> Finding:
    """Return the finding that says that nothing was compared."""
    text = f"Calibrated and quantised model were not compared: {why}."
    return Finding("INTEGERS_NOT_COMPARED", "warning", text, "", "Judge the build by its simulation.")
