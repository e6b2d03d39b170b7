"""What the vendor's program leaves is read with care: every refusal keeps its code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.explore.evaluate_builds import Evaluation, Evaluator
from boardlift_compiler.explore.remember import Memory
from boardlift_compiler.spec import CompileSpec

ONES = np.ones((2, 3), np.float32)
EVALUATION = Evaluation(Path("q.onnx"), "aa", {"x": ONES}, {"y": ONES}, "bb", CompileSpec())


def save(path: Path, content: object) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.savez(path, y=content)


@pytest.mark.parametrize(
    ("content", "answer", "code"),
    [
        (b"no archive", {}, "CALIBRATION_UNREADABLE"),
        (None, {}, "CALIBRATION_UNREADABLE"),
        (np.ones((2, 4), np.float32), {}, "REFERENCE_MISMATCH"),
        (ONES, {"error": "the runtime died"}, "SIMULATION_FAILED"),
    ],
)
def test_what_cannot_be_read_is_a_failure_with_its_code_and_is_not_kept(tmp_path, content, answer, code):
    memory = Memory(tmp_path / "memory")
    save(tmp_path / "out.npz", content)
    found = Evaluator(None, tmp_path, memory)._finish(EVALUATION, tmp_path / "out.npz", answer)  # type: ignore[arg-type]
    assert isinstance(found, StageFailure) and found.code == code
    assert memory.recall(EVALUATION.key) is None


def test_errors_are_kept_under_the_digest(tmp_path):
    memory = Memory(tmp_path / "memory")
    save(tmp_path / "out.npz", ONES)
    found = Evaluator(None, tmp_path, memory)._finish(EVALUATION, tmp_path / "out.npz", {})  # type: ignore[arg-type]
    assert found["y"]["max_abs"] == 0.0 and memory.recall(EVALUATION.key) == found
