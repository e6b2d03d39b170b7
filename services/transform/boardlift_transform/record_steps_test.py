from pathlib import Path

import onnx
import pytest

from boardlift_transform import Refusal, transform
from boardlift_transform.build_test_models import elu_policy


def test_kept_steps_are_models_that_viewers_open(tmp_path: Path) -> None:
    folder = tmp_path / "steps"
    transform(elu_policy(), outputs=["actions"], keep_steps=folder)
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "00-original.onnx" and any(name.endswith("-lift-to-4d.onnx") for name in names)
    operators = [{n.op_type for n in onnx.load(str(folder / name)).graph.node} for name in (names[0], names[-1])]
    assert "Gemm" in operators[0] and "Gemm" not in operators[1]
    transform(elu_policy(), outputs=["actions"], keep_steps=folder)
    assert sorted(path.name for path in folder.iterdir()) == names


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(Refusal) as caught:
        transform(elu_policy(), outputs=["actions"], keep_steps=tmp_path)
    assert caught.value.reason == "STEPS_FOLDER_IN_USE" and (tmp_path / "notes.txt").exists()
