"""The Python of the project's README runs as it stands: client against a made-up server, transform for real."""

import re
from pathlib import Path

import numpy as np
import onnx
from boardlift.datasets import Dataset, write_dataset
from boardlift.testing import FakeServer
from support.policy_models import moe_policy

README = Path(__file__).parents[2] / "README.md"


def test_the_python_of_the_readme_runs(monkeypatch, tmp_path, capsys):
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    model = moe_policy(True, gate=(48, 8), head=(8,), experts=2, width=8, out=4)
    for name in ("policy.onnx", "model.onnx"):
        onnx.save(model, tmp_path / name)
    write_dataset(Dataset({"obs": np.zeros((4, 48), np.float32)}), tmp_path / "data.npz")
    monkeypatch.chdir(tmp_path)
    with FakeServer() as server:
        monkeypatch.setenv("BOARDLIFT_SERVER", server.address)
        exec(compile(block, README.name, "exec"), {})  # noqa: S102
    assert capsys.readouterr().out.startswith("pass\nint16\n") and (tmp_path / "report.html").is_file()
    assert onnx.load(tmp_path / "model11.onnx").opset_import[0].version == 11
