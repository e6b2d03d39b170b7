"""The README's code runs."""

from __future__ import annotations

import re
from pathlib import Path

import boardlift
from boardlift.datasets import Dataset, write_dataset

README = Path(__file__).parents[1] / "README.md"


def test_the_examples_of_the_readme_run(server, model, samples, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOARDLIFT_SERVER", server.address)
    write_dataset(Dataset(samples), tmp_path / "policy.npz")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 2 and model.name == "policy.onnx"
    for block in blocks:
        exec(compile(block, README.name, "exec"), {"boardlift": boardlift})  # noqa: S102
    assert (tmp_path / "report.html").exists() and "pass" in capsys.readouterr().out
