from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boardlift.errors import PreconditionError
from boardlift.v1 import artifact_pb2

from boardlift_orchestrator.results import Results


async def test_what_a_sweep_takes_between_the_look_and_the_reading_is_missing_and_no_fault(tmp_path: Path) -> None:
    async def fetch(artifact: Any) -> Path:
        return tmp_path / "gone"

    with pytest.raises(PreconditionError, match="ARTIFACT_MISSING"):
        await Results(SimpleNamespace(fetch=fetch)).read(artifact_pb2.ArtifactRef(sha256="0" * 64))  # type: ignore[arg-type]
