from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boardlift.errors import PreconditionError
from boardlift.v1 import artifact_pb2, board_agent_pb2
from boardlift_servicekit.artifacts import LocalStore

from boardlift_orchestrator.convert import read_ref
from boardlift_orchestrator.events import Outcome, Started
from boardlift_orchestrator.record import Failure, Ref
from boardlift_orchestrator.results import Results


async def test_what_a_sweep_takes_between_the_look_and_the_reading_is_missing_and_no_fault(tmp_path: Path) -> None:
    async def fetch(artifact: Any) -> Path:
        return tmp_path / "gone"

    with pytest.raises(PreconditionError, match="ARTIFACT_MISSING"):
        await Results(SimpleNamespace(fetch=fetch)).read(artifact_pb2.ArtifactRef(sha256="0" * 64))  # type: ignore[arg-type]


@pytest.mark.parametrize("sha256", ["no bytes of these", "0" * 64, "../../../etc/passwd", ""])
async def test_a_result_that_is_none_is_a_fault_of_who_reported_it(tmp_path: Path, sha256: str) -> None:
    results = Results(LocalStore(tmp_path))
    if sha256 == "no bytes of these":
        sha256 = (await results.store.put_bytes(b"\xff\xff no message", "x")).sha256
    event = Outcome("board", "int8", 1, "b1", Ref(sha256, 7, "x"))
    checked = await results.checked(event)
    assert isinstance(checked, Outcome) and checked.result is None and checked.retryable
    assert checked.failure is not None and checked.failure.code == "RESULT_UNUSABLE" and "b1" in checked.failure.message
    assert not checked.failure.user_fault


async def test_a_result_that_can_be_read_is_taken_as_it_is(tmp_path: Path) -> None:
    results = Results(LocalStore(tmp_path))
    stored = await results.store.put_bytes(board_agent_pb2.RunResult(engine="board").SerializeToString(), "x")
    for event in (
        Outcome("board", "int8", 1, "b1", read_ref(stored)),
        Outcome("board", "int8", 1, "b1", failure=Failure("TOOL_KILLED")),
        Started("board", "int8", 1, "b1"),
    ):
        assert await results.checked(event) is event
