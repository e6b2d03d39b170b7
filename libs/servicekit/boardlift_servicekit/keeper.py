"""Keep a service's state folder from growing for ever: a periodic sweep of its cached artifacts and stored results.

Everything here can be had again: an artifact from the artifact service, a result by running its stage. A service that
keeps artifacts of its own accord (no artifact service) is swept in the same way; what a caller wants to keep for longer
than `keep_unused` it must fetch, or use.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import structlog
from boardlift.v1 import toolchain_pb2

from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.executions import Executions
from boardlift_servicekit.server import Host
from boardlift_servicekit.stored_results import sweep_results
from boardlift_servicekit.sweep_store import Swept, sweep_partials, sweep_store

_LOG = structlog.get_logger(__name__)
_SUMMARY: Final = "last_sweep.json"
_FIRST_S: Final = 60.0


@dataclass(frozen=True)
class KeepSettings:
    """How long unused files stay; every service reads these."""

    keep_unused: timedelta = timedelta(days=7)
    """Time for which an artifact or a stored result stays after its last use when no kept job names it."""
    keep_fresh: timedelta = field(default=timedelta(hours=6), metadata={"min": timedelta(seconds=1)})
    """What was used within this time always stays, and what was used since the oldest running stage began."""
    keep_partial: timedelta = timedelta(days=1)
    """Time for which a broken upload can be gone on with."""
    max_store_bytes: int = field(default=0, metadata={"min": 0})
    """Size above which the store gives up what was used longest ago, even before `keep_unused`; 0 is no limit."""
    tidy_every: timedelta = field(default=timedelta(minutes=15), metadata={"min": timedelta(milliseconds=100)})
    """Time between sweeps."""

    def fresh_since(self, now: float, running_since: float) -> float:
        """Time since which whatever was used stays, in seconds since the epoch.

        Args:
            now: Seconds since the epoch.
            running_since: When the oldest running stage began; infinity when none runs. It names what it has made only
                at its end.
        """
        return min(now - self.keep_fresh.total_seconds(), running_since)

    def unused_since(self, now: float, running_since: float = math.inf) -> float:
        """Time before which something must have been used last to go when there is room, in seconds since the epoch."""
        return min(now - self.keep_unused.total_seconds(), self.fresh_since(now, running_since))

    def first_s(self) -> float:
        """Seconds from start to the first sweep."""
        return min(_FIRST_S, self.tidy_every.total_seconds())


class Keeper:
    """Sweeps one service's folder."""

    def __init__(
        self,
        store: LocalStore,
        results: Sequence[Path],
        settings: KeepSettings,
        *,
        scratch: tuple[Path, str] | None = None,
        executions: Iterable[Executions[Any]] = (),
    ) -> None:
        """Sweep the `store`, the folders of stored `results`, and scratch folders of killed runs.

        Args:
            store: Artifacts.
            results: Folders of stored results.
            settings: How long things stay.
            scratch: A folder, and how the names of scratch folders in it begin.
            executions: What runs here: nothing that it may have made goes before it ends.
        """
        self._store = store
        self._scratch = scratch
        self._executions = tuple(executions)
        self._results = results
        self._settings = settings

    def attach(self, host: Host) -> None:
        """Sweep from the host's start to its end."""
        host.beside(self._run)

    async def _run(self) -> None:
        pause_s = self._settings.first_s()
        while True:
            await asyncio.sleep(pause_s)
            pause_s = self._settings.tidy_every.total_seconds()
            try:
                await asyncio.to_thread(self.tidy)
            except Exception:  # noqa: BLE001 - the outermost boundary of this task: the next round tries again
                _LOG.exception("sweep_failed")

    def tidy(self) -> Swept:
        """Sweep once."""
        now, settings = time.time(), self._settings
        running = min((item.running_since for item in self._executions), default=math.inf)
        fresh, unused = settings.fresh_since(now, running), settings.unused_since(now, running)
        freed = sweep_results(self._results, unused)
        freed += sweep_partials(self._store, now - settings.keep_partial.total_seconds())
        if self._scratch is not None:
            _remove_scratch(*self._scratch, min(now - settings.keep_partial.total_seconds(), running))
        swept = Swept(freed_bytes=freed) + sweep_store(self._store, (), unused)
        if settings.max_store_bytes and swept.size_bytes > settings.max_store_bytes:
            swept += sweep_store(self._store, (), fresh, settings.max_store_bytes)
        write_summary(self._store, swept, settings.max_store_bytes)
        return swept


def _remove_scratch(folder: Path, prefix: str, unused_since: float) -> None:
    for path in folder.glob(f"{prefix}*"):
        if path.is_dir() and not path.is_symlink() and path.stat().st_mtime < unused_since:
            shutil.rmtree(path, ignore_errors=True)


def write_summary(store: LocalStore, swept: Swept, limit_bytes: int, removed_jobs: int = 0) -> None:
    """Leave what a sweep came to in the store's folder, for `store_info` of every server that shares it."""
    if swept.freed_objects or swept.freed_bytes or removed_jobs:
        _LOG.info("swept", jobs=removed_jobs, **asdict(swept))
    path = store.root / _SUMMARY
    partial = path.with_suffix(f".{time.monotonic_ns()}.tmp")
    summary = {**asdict(swept), "limit_bytes": limit_bytes, "removed_jobs": removed_jobs, "time": time.time()}
    try:
        partial.write_text(json.dumps(summary))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)  # on a full disk


def store_info(store: LocalStore) -> toolchain_pb2.StoreInfo | None:
    """What the last sweep of a store came to; None before the first one."""
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
        found = json.loads((store.root / _SUMMARY).read_text())
        info = toolchain_pb2.StoreInfo(
            objects=found["objects"],
            size_bytes=found["size_bytes"],
            limit_bytes=found["limit_bytes"],
            freed_objects=found["freed_objects"],
            freed_bytes=found["freed_bytes"],
            removed_jobs=found["removed_jobs"],
        )
        info.sweep_time.FromNanoseconds(int(found["time"] * 1e9))
        return info
    return None
