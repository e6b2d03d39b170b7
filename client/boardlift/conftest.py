"""Fixtures of the client's tests: a fake server, a model file, samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from boardlift.client import Client
from boardlift.testing import FakeServer

# Smallest bytes that are a protobuf message with an ONNX graph: ir_version 8, graph { name: "g" }.
MODEL_BYTES = b"\x08\x08:\x03\x12\x01g"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


@pytest.fixture
def client(server: FakeServer) -> Iterator[Client]:
    with Client(server.address, token="") as connected:
        yield connected


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "policy.onnx"
    path.write_bytes(MODEL_BYTES)
    return path


@pytest.fixture
def samples() -> dict[str, np.ndarray]:
    return {"obs": np.arange(12, dtype=np.float32).reshape(4, 3)}
