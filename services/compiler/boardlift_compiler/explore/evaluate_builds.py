"""Evaluate builds: run their integer models on held-out samples and compare with the user's float outputs.

Results are kept by digest (integer model, samples, reference), so an interrupted search never repeats one. All builds
of a round run in one process of the toolchain: its imports cost more than a policy's samples.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boardlift_compiler.compare_outputs import ShapeMismatchError
from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.explore.judge import Errors, GoalError, measure_outputs
from boardlift_compiler.explore.remember import Memory, digest_of
from boardlift_compiler.prepare_calibration import RefusedError, read_samples
from boardlift_compiler.read_model import ModelUnreadableError, read_model
from boardlift_compiler.run_folder import RunFolder, run_folder
from boardlift_compiler.run_vendor import run_vendor_program
from boardlift_compiler.spec import CompileSpec
from boardlift_compiler.toolchain import Toolchain
from boardlift_compiler.write_inputs import write_inputs

Array = npt.NDArray[np.generic]
BATCH = 16


@dataclass(frozen=True)
class Evaluation:
    """One integer model on one set of samples."""

    quantized: Path
    """Quantised ONNX."""
    quantized_sha256: str
    """Its digest."""
    heldout: Mapping[str, Array]
    """Per input ``[N, ...]``, in the model's input form."""
    reference: Mapping[str, Array]
    """Per output ``[N, ...]`` of the user's float model."""
    samples_sha256: str
    """Digest of samples and reference together."""
    spec: CompileSpec
    """Names the inputs' types."""

    @property
    def key(self) -> str:
        """Digest under which the result is kept."""
        return digest_of("evaluation", self.quantized_sha256, self.samples_sha256)


class Evaluator:
    """Evaluates integer models and remembers what came out."""

    def __init__(self, toolchain: Toolchain, work_root: Path, memory: Memory) -> None:
        """Keep results in `memory`."""
        self._toolchain, self._work_root, self._memory = toolchain, work_root, memory
        self.ran = 0
        """Evaluations that ran; others were remembered."""

    async def evaluate(
        self, wanted: Sequence[Evaluation], on_progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[Errors | StageFailure]:
        """Return error figures per evaluation, or why there are none."""
        results: dict[str, Errors | StageFailure] = {}
        for item in wanted:
            known = await asyncio.to_thread(self._memory.recall, item.key)
            if known is not None:
                results[item.key] = known
        missing = list({i.key: i for i in wanted if i.key not in results}.values())
        self.ran += len(missing)
        if missing:
            with run_folder(self._work_root) as folder:
                results.update(await self._run(missing, folder, on_progress))
        return [results[item.key] for item in wanted]

    async def _run(
        self, items: Sequence[Evaluation], folder: RunFolder, on_progress: Callable[[int, int], None]
    ) -> dict[str, Errors | StageFailure]:
        results: dict[str, Errors | StageFailure] = {}
        jobs, ready = [], []
        for number, item in enumerate(items):
            inputs = folder.path / f"in{number}.npz"
            failure = await asyncio.to_thread(prepare_inputs, item.quantized, item.heldout, item.spec, inputs)
            if failure is not None:
                results[item.key] = failure
                continue
            ready.append((item, folder.path / f"out{number}.npz"))
            jobs.append({"model": str(item.quantized), "inputs": str(inputs), "outputs": str(ready[-1][1])})
        answers = await run_vendor_program(
            self._toolchain,
            "evaluate_models.py",
            {"jobs": jobs, "batch": BATCH},
            folder,
            lambda message: on_progress(*message.get("progress", (0, 0))),
        )
        if isinstance(answers, StageFailure):
            return {**results, **{item.key: answers for item, _ in ready}}
        for (item, path), answer in zip(ready, answers, strict=True):
            results[item.key] = await asyncio.to_thread(self._finish, item, path, answer)
        return results

    def _finish(self, item: Evaluation, path: Path, answer: Mapping[str, str]) -> Errors | StageFailure:
        if "error" in answer:
            return make_failure("SIMULATION_FAILED", answer["error"][:200], (answer["error"],))
        try:
            errors = measure_outputs(read_samples(path), item.reference)
        except (GoalError, ShapeMismatchError) as error:
            return make_failure("REFERENCE_MISMATCH", str(error)[:200])
        except RefusedError as error:
            return error.failure
        self._memory.keep(item.key, errors)
        return errors


def prepare_inputs(model: Path, samples: Mapping[str, Array], spec: CompileSpec, path: Path) -> StageFailure | None:
    """Write samples in the form a vendor model takes; return why not."""
    try:
        write_inputs(read_model(model.read_bytes()), samples, spec, path)
    except ModelUnreadableError as error:
        return make_failure("MODEL_UNREADABLE", "", (str(error),))
    except RefusedError as error:
        return error.failure
    return None
