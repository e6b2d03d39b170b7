"""A twin of a published model compiles to the published figures; `benchmarks/published_figures.py` has more of them."""

import asyncio
import hashlib
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from boardlift_compiler.run_compile import CompileInputs, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec, InputSpec
from boardlift_compiler.toolchain import probe_toolchain
from support.published_detectors import SIDE, yolo11n, yolov8n
from support.published_models import photographs, yolo11n_cls, yolov8n_cls

ROOT = Path(__file__).resolve().parents[2]
PREPROCESS = 12  # what the vendor's preprocess node adds
CAMERA = CompileSpec(
    inputs=(InputSpec("images", "rgb", "nv12", norm_type="data_scale", scale=(1 / 255,)),),
    calibration=CalibrationSpec("max"),
    compiler=CompilerKnobs("O3"),
)


def test_twins_have_the_published_size_and_are_the_same_every_time():
    published = ((yolo11n_cls, 2_807_049), (yolov8n, 3_151_908), (yolo11n, 2_616_265))
    for build, parameters in published:
        assert sum(math.prod(t.dims) for t in build().graph.initializer) + PREPROCESS == parameters
    for build in (yolov8n_cls, *(build for build, _ in published)):
        first, second = (hashlib.sha256(build().SerializeToString()).hexdigest() for _ in range(2))
        assert first == second


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.timeout(900)
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


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("compiler-tool")
async def test_a_detector_has_the_published_rows(tmp_path):
    """At O0: rows are decided before the tool optimises for latency, which takes minutes at O3."""
    toolchain = await probe_toolchain(Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain"))
    await asyncio.to_thread(onnx.save, yolov8n(), str(tmp_path / "m.onnx"))
    np.savez(tmp_path / "m.npz", images=photographs(2, 1, SIDE))
    spec = replace(CAMERA, compiler=CompilerKnobs("O0"))
    with run_folder(tmp_path / "runs") as folder:
        inputs = CompileInputs(tmp_path / "m.onnx", spec, tmp_path / "m.npz", 2)
        outcome = await compile_model(toolchain, inputs, folder, Limits(timeout_s=900), Hooks())
    assert outcome.failure is None
    assert [sum(n.device == d for n in outcome.facts.nodes) for d in ("BPU", "CPU")] == [175, 0]
    assert len(outcome.facts.subgraphs) == 1
