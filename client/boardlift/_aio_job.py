"""The handle of a job in the async SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boardlift._job_handle import JobHandle, parse_report, report_artifact, target_path
from boardlift._outcome import error_of
from boardlift.models import Artifact, JobEvent, JobInfo

if TYPE_CHECKING:
    from boardlift.aio import Client


class ArtifactFile:
    """One file of a job's result."""

    def __init__(self, client: Client, artifact: Artifact) -> None:
        """Made by `Job.artifacts`."""
        self._client = client
        self.artifact = artifact

    async def save(self, target: Path | str | None = None) -> Path:
        """Download and verify; `target` is a file or an existing folder, default the working folder."""
        return await self._client.fetch(self.artifact, target_path(self.artifact, target))

    def __repr__(self) -> str:
        return f"ArtifactFile({self.artifact.name!r}, {self.artifact.size_bytes} bytes)"


class Job(JobHandle):
    """A job on the server; `info` is what was known at the last look. Errors as in the sync `Job`."""

    def __init__(self, client: Client, info: JobInfo) -> None:
        """Made by `Client.run` and `Client.job`."""
        self._client = client
        self.info = info

    @property
    def artifacts(self) -> Mapping[str, ArtifactFile]:
        """Files of the result by name."""
        return {artifact.name: ArtifactFile(self._client, artifact) for artifact in self.info.artifacts}

    async def refresh(self) -> JobInfo:
        """Look again."""
        self.info = await self._client.get_job(self.id)
        return self.info

    async def events(self, after_sequence: int = 0, timeout: float | None = None) -> AsyncIterator[JobEvent]:
        """Yield events until the job ends, across dropped lines and restarted servers."""
        async for event in self._client.watch(self.id, after_sequence, timeout):
            if event.job is not None:
                self.info = event.job
            yield event

    async def wait(self, timeout: float | None = None) -> Job:
        """Wait for the end and return the job itself, whose `verdict` is set then, whatever it says."""
        if not self.info.done:
            async for _ in self.events(timeout=timeout):
                pass
            await self.refresh()
        error = error_of(self.info)
        if error:
            raise error
        return self

    async def cancel(self) -> JobInfo:
        """Ask it to stop; it ends within seconds."""
        self.info = await self._client.cancel_job(self.id)
        return self.info

    async def clone(self, **changes: Any) -> Job:
        """Submit it again with something changed; see `Client.clone`."""
        return await self._client.clone(self.id, **changes)

    async def report(self) -> dict[str, Any]:
        """Return the report as a dict."""
        return parse_report(await self._client.fetch_bytes(report_artifact(self.info).sha256))
