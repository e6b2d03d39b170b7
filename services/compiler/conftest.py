"""Fixtures of the compiler's tests: seeded models and the real toolchain."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from boardlift_compiler.run_compile import CompileInputs, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec
from boardlift_compiler.toolchain import probe_toolchain

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
QUICK = CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O1"))


def load_file(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def models():
    """The builders of `testdata/build_models.py`."""
    return load_file(HERE / "testdata" / "build_models.py")


@pytest.fixture(scope="session")
def testdata():
    return HERE / "testdata"


@pytest.fixture(scope="session")
def shared_logs():
    return ROOT.parent / "shared" / "toolchain" / "logs"


@pytest.fixture(scope="session")
def toolchain():
    root = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain")
    return asyncio.run(probe_toolchain(root))


@pytest.fixture
def folder(tmp_path):
    with run_folder(tmp_path / "runs") as made:
        yield made


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB; None where this user may not mount one."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        yield None
        return
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def put(models, tmp_path):
    """Write a model and its samples; returns (model path, samples path)."""

    def write(model, count=16, pixels=False, name="m", **change):
        path, data = tmp_path / f"{name}.onnx", tmp_path / f"{name}.npz"
        models.save(model, path)
        samples = models.samples(model, count, image=pixels)
        samples.update(change)
        np.savez(data, **samples)
        return path, data

    return write


@pytest.fixture
def build(toolchain, put, tmp_path):
    """Compile a model; returns the outcome with its products read into memory."""

    async def run(model, spec=None, *, hooks=None, **more):
        path, data = put(model, **more)
        with run_folder(tmp_path / "runs") as folder:
            inputs = CompileInputs(path, spec or QUICK, data, 1)
            outcome = await compile_model(toolchain, inputs, folder, Limits(timeout_s=120), hooks or Hooks())
            outcome.kept = {n: p.read_bytes() for n, p in outcome.files.items()}
            if outcome.quantized_model:
                outcome.kept["quantized_model.onnx"] = outcome.quantized_model.read_bytes()
            if outcome.console:
                outcome.kept["console.log"] = outcome.console.read_bytes()
        return outcome

    return run


@pytest.fixture(scope="session")
def error_cases(testdata):
    """Recorded output of the bare tool for 85 wrong uses."""
    return json.loads((testdata / "error_cases.json").read_text())
