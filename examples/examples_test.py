"""The examples are what their READMEs say: reproducible, in sane ranges, and usable as a dataset."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime
from boardlift.datasets import StepsOptions, build_from_steps

FOLDER = Path(__file__).parent
LOGS = sorted((FOLDER / "quadruped_policy" / "logs").glob("*.steps.jsonl"))


def load(script: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(script).stem, FOLDER / script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_policy_bytes_are_the_same_everywhere(tmp_path):
    digest = load("quadruped_policy/build_policy.py").write_model(tmp_path / "policy.onnx")
    assert digest == "2ae0d6911a889043c6e900175d37c64ec869f74d647eee0b5f0ee8b66604bba3"


def test_shipped_logs_are_what_the_generator_writes(tmp_path):
    written = load("quadruped_policy/make_log.py").write_logs(tmp_path)
    assert [path.read_bytes() for path in sorted(written)] == [path.read_bytes() for path in LOGS]


def test_shipped_logs_stay_small_and_named_synthetic():
    assert sum(path.stat().st_size for path in LOGS) < 1_500_000
    assert all(path.name.startswith("synthetic_") for path in LOGS)


def test_policy_runs_on_the_log_in_sane_ranges(tmp_path):
    load("quadruped_policy/build_policy.py").write_model(tmp_path / "policy.onnx")
    dataset = build_from_steps(LOGS, StepsOptions(synthetic=True))
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    actions, value, latent = session.run(["actions", "value", "latent"], {"obs": dataset.arrays["obs"]})
    assert actions.shape == (320, 12) and value.shape == (320, 1) and latent.shape == (320, 512)
    assert 0.3 < actions.std() < 1.5 and np.abs(actions).max() < 6


def test_go1_model_is_the_published_one_and_runs_on_its_dataset():
    module = load("go1_joystick/make_dataset.py")
    digest = hashlib.sha256(module.MODEL.read_bytes()).hexdigest()
    assert digest == "ace1a6d78c986da442b02afc8d7ba899cff12adfebe2b6a71ff62906d45a1b5a"
    samples = module.build_dataset().arrays["obs"]
    session = onnxruntime.InferenceSession(module.MODEL)
    actions = np.stack([session.run(None, {"obs": sample[None]})[0] for sample in samples])
    assert actions.shape == (320, 1, 12) and 0.05 < np.abs(actions).mean() < 1
