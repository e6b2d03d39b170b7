"""The real vendor tool for tests: check, compile, run the integer model, compare it with the compiled code."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ROW = re.compile(
    r"^(?P<node>\S.*?)\s{2,}(?P<on>BPU|CPU)\s{2,}(?P<sub>id\(\d+\)|--)\s{2,}(?P<type>\S+)"
    r"(?:\s{2,}(?P<cosine>-?[\d.]+|nan|--))?(?:\s{2,}(?P<threshold>\S+))?(?:\s{2,}(?P<dtype>\S+))?\s*$",
    re.M,
)
CONFIG = """model_parameters:
  onnx_model: m.onnx
  march: bayes-e
  output_model_file_prefix: m
  working_dir: out
input_parameters:
  input_name: {names}
  input_type_train: {types}
  input_type_rt: {types}
  input_layout_train: {layouts}
  input_layout_rt: {layouts}
  norm_type: {norms}
calibration_parameters:
  cal_data_dir: {folders}
  cal_data_type: {floats}
  calibration_type: {method}
{options}compiler_parameters:
  compile_mode: latency
  optimize_level: {level}
  core_num: 1
  debug: False
"""


@dataclass(frozen=True)
class Run:
    """What the tool said."""

    exit_code: int
    log: str
    rows: list[dict[str, str]]
    folder: Path

    @property
    def on_cpu(self) -> list[str]:
        return [r["type"] for r in self.rows if r["on"] == "CPU"]

    @property
    def subgraphs(self) -> set[str]:
        return {r["sub"] for r in self.rows if r["on"] == "BPU"}

    @property
    def dtypes(self) -> set[str]:
        return {r["dtype"] for r in self.rows if r["on"] == "BPU" and r["dtype"]}

    @property
    def errors(self) -> list[str]:
        return [line for line in self.log.splitlines() if "ERROR" in line][-3:]


class Tool:
    """The vendor tool, one folder per run."""

    def __init__(self, root: Path, work: Path) -> None:
        self.root, self.work, self.count = root, work, 0

    def _folder(self) -> Path:
        self.count += 1
        folder = self.work / f"run{self.count}"
        folder.mkdir(parents=True)
        return folder

    def _run(self, command: list[str], folder: Path, limit_s: float = 300) -> tuple[int, str]:
        environment = {
            "PATH": f"{self.root}/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PYTHONHASHSEED": "0",
        }
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
        return done.returncode, re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)

    def check(self, model: onnx.ModelProto) -> Run:
        folder = self._folder()
        onnx.save(model, str(folder / "m.onnx"))
        command = ["hb_mapper", "checker", "--model-type", "onnx", "--march", "bayes-e", "--model", "m.onnx"]
        code, log = self._run([f"{self.root}/bin/{command[0]}", *command[1:]], folder)
        return Run(code, log, [m.groupdict("") for m in ROW.finditer(log)], folder)

    def compile(
        self,
        model: onnx.ModelProto,
        samples: Mapping[str, np.ndarray],
        *,
        int16: bool = False,
        level: str = "O0",
        method: str = "max",
    ) -> Run:
        folder = self._folder()
        onnx.save(model, str(folder / "m.onnx"))
        names = [i.name for i in model.graph.input]
        for index, name in enumerate(names):
            target = folder / f"cal{index}"
            target.mkdir()
            for number, sample in enumerate(samples[name]):
                np.ascontiguousarray(sample, np.float32).tofile(target / f"{number}.bin")
        many = {"types": "featuremap", "layouts": "NCHW", "norms": "no_preprocess", "floats": "float32"}
        values = {key: ";".join([value] * len(names)) for key, value in many.items()}
        options = "  optimization: set_all_nodes_int16\n" if int16 else ""
        folders = ";".join(f"cal{i}" for i in range(len(names)))
        text = CONFIG.format(
            names=";".join(names), folders=folders, options=options, level=level, method=method, **values
        )
        (folder / "c.yaml").write_text(text)
        code, log = self._run(
            [f"{self.root}/bin/hb_mapper", "makertbin", "-c", "c.yaml", "--model-type", "onnx"], folder, 600
        )
        return Run(code, log, [m.groupdict("") for m in ROW.finditer(log)], folder)

    def execute(self, run: Run, feed: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], int]:
        """Outputs of the integer model for one sample, and how many integers of the compiled code differ from it."""
        np.savez(run.folder / "feed.npz", **feed)
        script = [f"{self.root}/bin/python", str(HERE / "testdata/run_compiled.py"), "out", "feed.npz", "result.npz"]
        code, log = self._run(script, run.folder)
        assert code == 0, log[-2000:]
        said = json.loads(next(line for line in log.splitlines() if line.startswith('{"differing"')))
        with np.load(run.folder / "result.npz") as loaded:
            return {name: loaded[name] for name in loaded.files}, said["differing"]


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    root = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain")
    return Tool(root, tmp_path / "tool")
