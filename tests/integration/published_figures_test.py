"""A twin of a published model compiles to the published figures; `benchmarks/published_figures.py` has more of them."""

import asyncio
import hashlib
import math
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from boardlift_compiler.run_compile import CompileInputs, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec, InputSpec
from boardlift_compiler.toolchain import probe_toolchain
from support.published_models import photographs, yolo11n_cls, yolov8n_cls

ROOT = Path(__file__).resolve().parents[2]
PREPROCESS = 12  # what the vendor's preprocess node adds
CAMERA = CompileSpec(
    inputs=(InputSpec("images", "rgb", "nv12", norm_type="data_scale", scale=(1 / 255,)),),
    calibration=CalibrationSpec("max"),
    compiler=CompilerKnobs("O3"),
)


def test_twins_have_the_published_size_and_are_the_same_every_time():
    model = yolo11n_cls()
    assert sum(math.prod(t.dims) for t in model.graph.initializer) + PREPROCESS == 2_807_049
    for build in (yolov8n_cls, yolo11n_cls):
        first, second = (hashlib.sha256(build().SerializeToString()).hexdigest() for _ in range(2))
        assert first == second


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.xdist_group("compiler-tool")
async def test_a_camera_classifier_meets_its_published_figures(tmp_path):
    toolchain = await probe_toolchain(Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain"))
    await asyncio.to_thread(onnx.save, yolov8n_cls(), str(tmp_path / "m.onnx"))
    np.savez(tmp_path / "m.npz", images=photographs(4, 1))
    inputs = CompileInputs(tmp_path / "m.onnx", CAMERA, tmp_path / "m.npz", 2)
    with run_folder(tmp_path / "runs") as folder:
        outcome = await compile_model(toolchain, inputs, folder, Limits(timeout_s=900), Hooks())
    assert outcome.failure is None
    (line,) = outcome.facts.subgraphs
    assert line.latency_us == pytest.approx(495.4, rel=0.02)
    assert line.ddr_bytes == pytest.approx(2_682_784, rel=0.02)
    assert [sum(n.device == d for n in outcome.facts.nodes) for d in ("BPU", "CPU")] == [79, 1]
