"""The board's own sampler against small stand-ins of both Python runtimes: it runs, counts and says which it used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("sample_latency.py")
HBM = """
import time
class HB_HBMRuntime:
    def __init__(self, path): self.model_names = ["m"]
    input_names = {"m": ["obs"]}
    input_shapes = {"m": {"obs": [1, 1, 1, 225]}}
    input_dtypes = {"m": {"obs": "hbDNNDataType.F32"}}
    def run(self, feeds):
        assert feeds["m"]["obs"].shape == (1, 1, 1, 225) and feeds["m"]["obs"].dtype == "float32"
        time.sleep(0.002)
"""
PYEASY = """
import time
class P: tensor_type, layout, shape, dtype = "NV12_SEPARATE", "NCHW", (1, 3, 64, 96), "uint8"
class T: properties = P
class M:
    inputs = (T,)
    def forward(self, feeds):
        assert feeds[0].shape == (64 * 96 * 3 // 2,) and feeds[0].dtype == "uint8"
        time.sleep(0.002)
def load(path): return [M()]
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, str(SCRIPT), "--model_file=m.bin", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("files", "runtime"),
    [
        ({"hbm_runtime.py": HBM}, "hbm_runtime"),
        ({"hobot_dnn/pyeasy_dnn.py": PYEASY, "hobot_dnn/__init__.py": ""}, "pyeasy_dnn"),
    ],
)
def test_both_runtimes(tmp_path: Path, files: dict[str, str], runtime: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = run(tmp_path, "--frame_count=40", "--thread_num=2")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (lines[0]["runtime"], lines[0]["frames"], lines[0]["simulated"]) == (runtime, 40, False)
    times = [line["ms"] for line in lines if "ms" in line]
    assert len(times) == 40
    assert min(times) >= 2.0
    assert lines[-1]["run_ms"] < sum(times)


def test_without_a_runtime_it_says_so(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode != 0
    assert "neither hbm_runtime nor hobot_dnn" in done.stderr
