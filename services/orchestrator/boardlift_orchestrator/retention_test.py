from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boardlift.errors import PreconditionError
from boardlift_servicekit.artifacts import LocalStore

from boardlift_orchestrator.retention import Retention
from boardlift_orchestrator.settings import RetentionSettings


async def test_nothing_goes_by_age_once_the_clock_was_set(tmp_path: Path) -> None:
    asked: list[str] = []

    async def forget_old(before: float) -> list[str]:
        asked.append("boards")
        return []

    index: Any = SimpleNamespace(unreadable=frozenset())
    registry: Any = SimpleNamespace(forget_old=forget_old)
    nobody: Any = None
    retention = Retention(nobody, index, registry, LocalStore(tmp_path), nobody, RetentionSettings(), nobody)
    assert retention.findings() == []
    jump = SimpleNamespace(jumped_s=lambda: 40 * 86400.0)
    retention._clock = jump  # type: ignore[assignment]
    with pytest.raises(PreconditionError, match="CLOCK_WAS_SET"):
        await retention.sweep()
    assert asked == []
    (finding,) = retention.findings()
    assert finding.code == "CLOCK_WAS_SET" and "+960.0 hours" in finding.message
