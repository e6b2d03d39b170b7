"""The handle of a job in the sync SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boardlift._job_handle import JobHandle, parse_report, report_artifact, target_path
from boardlift._outcome import error_of
from boardlift.models import Artifact, JobEvent, JobInfo

if TYPE_CHECKING:
    from boardlift.client import Client


class ArtifactFile:
    """One file of a job's result."""

    def __init__(self, client: Client, artifact: Artifact) -> None:
        """Made by `Job.artifacts`."""
        self._client = client
        self.artifact = artifact

    def save(self, target: Path | str | None = None) -> Path:
        """Download and verify; `target` is a file or an existing folder, default the working folder.

        Raises:
            BoardliftError: The bytes can't be had or don't match their digest.
        """
        return self._client.fetch(self.artifact, target_path(self.artifact, target))

    def __repr__(self) -> str:
        return f"ArtifactFile({self.artifact.name!r}, {self.artifact.size_bytes} bytes)"


class Job(JobHandle):
    """A job on the server. `info` is what was known at the last look; `refresh`, `events` and `wait` look again."""

    def __init__(self, client: Client, info: JobInfo) -> None:
        """Made by `Client.run` and `Client.job`."""
        self._client = client
        self.info = info

    @property
    def artifacts(self) -> Mapping[str, ArtifactFile]:
        """Files of the result by name."""
        return {artifact.name: ArtifactFile(self._client, artifact) for artifact in self.info.artifacts}

    def refresh(self) -> JobInfo:
        """Look again."""
        self.info = self._client.get_job(self.id)
        return self.info

    def events(self, after_sequence: int = 0, timeout: float | None = None) -> Iterator[JobEvent]:
        """Yield events until the job ends, across dropped lines and restarted servers.

        Raises:
            DeadlineError: `timeout` seconds passed.
            UnavailableError: The server stayed away longer than retries last.
        """
        for event in self._client.watch(self.id, after_sequence, timeout):
            if event.job is not None:
                self.info = event.job
            yield event

    def wait(self, timeout: float | None = None) -> Job:
        """Wait for the end and return the job itself, whose `verdict` is set then, whatever it says.

        Raises:
            InvalidInputError: The input can't be used.
            CancelledError: The job was cancelled.
            InternalError: The machinery failed.
            DeadlineError: `timeout` seconds passed; the job goes on.
        """
        if not self.info.done:
            for _ in self.events(timeout=timeout):
                pass
            self.refresh()
        error = error_of(self.info)
        if error:
            raise error
        return self

    def cancel(self) -> JobInfo:
        """Ask it to stop; it ends within seconds."""
        self.info = self._client.cancel_job(self.id)
        return self.info

    def clone(self, **changes: Any) -> Job:
        """Submit it again with something changed; see `Client.clone`."""
        return self._client.clone(self.id, **changes)

    def report(self) -> dict[str, Any]:
        """Return the report as a dict.

        Raises:
            NotFoundError: There is none yet.
        """
        return parse_report(self._client.fetch_bytes(report_artifact(self.info).sha256))
