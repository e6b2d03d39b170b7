"""Which artifacts a job names: its specification, what that names, every stage's result, and what those name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import structlog
from boardlift.v1 import job_pb2
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.stored_results import artifacts_in
from google.protobuf.message import DecodeError

from boardlift_orchestrator.record import Failure, JobRecord, Ref
from boardlift_orchestrator.requests import RESULT_TYPES

_log = structlog.get_logger(__name__)


class References:
    """Reads what jobs name; what an ended job names is read once."""

    def __init__(self, store: LocalStore) -> None:
        """Read from `store`, without counting that as a use."""
        self._store = store
        self._ended: dict[str, tuple[float, frozenset[str]]] = {}

    def known(self, job_id: str, created: float) -> frozenset[str] | None:
        """Return what an ended job names when it has been read before; a later job of its id is another one."""
        read, found = self._ended.get(job_id, (0.0, None))
        return found if read == created else None

    def read(self, job: JobRecord) -> frozenset[str]:
        """Return the digests that a job names.

        Raises:
            OSError: The store can't be read; nothing may be removed then.
        """
        found = frozenset(sys.intern(digest) for digest in self._digests(job))  # jobs share most of them
        if job.state.ended:
            self._ended[job.id] = (job.created, found)
        return found

    def keep_only(self, job_ids: set[str]) -> None:
        """Forget the jobs that are gone."""
        for job_id in self._ended.keys() - job_ids:
            del self._ended[job_id]

    def _digests(self, job: JobRecord) -> Iterator[str]:
        yield job.spec.sha256
        yield from self._inside(job.spec, job_pb2.JobSpec)
        yield from _of_failure(job.error)
        for stage in job.stages:
            yield from _of_failure(stage.failure)
            if stage.result is not None:
                yield stage.result.sha256
                yield from self._inside(stage.result, RESULT_TYPES[stage.stage])

    def _inside(self, ref: Ref, kind: Any) -> list[str]:
        try:
            message = kind.FromString(self._store.path(ref.sha256).read_bytes())
        except FileNotFoundError:
            return []  # what it named can't be known any more, and the job can't be read anyway
        except DecodeError:
            _log.error("stored_message_unreadable", sha256=ref.sha256, kind=kind.__name__)
            return []
        return [item.sha256 for item in artifacts_in(message)]


def _of_failure(failure: Failure | None) -> list[str]:
    return [failure.log.sha256] if failure is not None and failure.log is not None else []
