import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import conv_encoder, elu_policy, every_operator
from boardlift_transform.write_model import write_model


@pytest.mark.parametrize("build", [elu_policy, conv_encoder, every_operator])
def test_the_file_holds_the_same_model(build: object, tmp_path: Path) -> None:
    model = build()  # type: ignore[operator]
    model.metadata_props.add(key="note", value="kept")
    size = write_model(model, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size == size == len(model.SerializeToString())
    assert onnx.load(str(tmp_path / "m.onnx")) == model


def test_results_are_saved_whole(tmp_path: Path) -> None:
    result = transform(elu_policy(), outputs=["actions"])
    result.save(tmp_path / "m.onnx")
    assert onnx.load(str(tmp_path / "m.onnx")) == result.model


def test_writing_takes_little_more_memory_than_the_model(tmp_path: Path) -> None:
    script = """
import re, sys
from pathlib import Path
import numpy as np, onnx
from onnx import helper, numpy_helper
from boardlift_transform.write_model import write_model
graph = helper.make_graph([], "g", [], [])
for index in range(16):
    graph.initializer.append(numpy_helper.from_array(np.ones((1 << 20,), np.float32), f"w{index}"))
model = helper.make_model(graph)
peak = lambda: int(re.search(r"VmHWM:\\\\s+(\\\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
before = peak()
write_model(model, Path(sys.argv[1]))
print(peak() - before)
"""
    command = [sys.executable, "-c", script.replace("\\\\", "\\"), str(tmp_path / "m.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 24 << 20, "64 MB of weights were held once more"
