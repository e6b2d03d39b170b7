"""Runs command lines in this process against a fake server."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boardlift.cli.__main__ import run
from boardlift.datasets import Dataset, write_dataset
from boardlift.testing import FakeServer


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def boardlift(
    server: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    for name in ("BOARDLIFT_SERVER", "BOARDLIFT_TRANSFORM", "BOARDLIFT_COMPILER"):
        monkeypatch.setenv(name, server.address)
    monkeypatch.delenv("BOARDLIFT_TOKEN", raising=False)

    def call(*arguments: object) -> Ended:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return call


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.npz"
    samples = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    write_dataset(Dataset({"obs": samples}, {"split": {"calibration": 30, "heldout": 10}}), path)
    return path
