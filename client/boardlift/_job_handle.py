"""What the handles of a job have in common, sync and async: what was known of it at the last look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from boardlift._render import job_html, reproduce_command
from boardlift._transfer import safe_name
from boardlift.errors import NotFoundError
from boardlift.models import Artifact, JobInfo, Verdict


class JobHandle:
    """A job on the server. `info` is what was known at the last look; `refresh`, `events` and `wait` look again."""

    info: JobInfo

    @property
    def id(self) -> str:
        """Id of the job."""
        return self.info.id

    @property
    def state(self) -> str:
        """State at the last look."""
        return self.info.state

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None while there is none."""
        return self.info.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons of the verdict."""
        return self.info.verdict.reasons if self.info.verdict else ()

    def reproduce(self) -> str:
        """Return the command line that submits it again."""
        return reproduce_command(self.info)

    def __repr__(self) -> str:
        verdict = f", {self.verdict.outcome}" if self.verdict else ""
        return f"Job({self.id!r}, {self.state}{verdict})"

    def _repr_html_(self) -> str:
        return job_html(self.info)


def target_path(artifact: Artifact, target: Path | str | None) -> Path:
    """Return the file an artifact is saved to."""
    name = safe_name(artifact.name or artifact.sha256)
    path = Path(target) if target is not None else Path()
    return path / name if path.is_dir() else path


def report_artifact(info: JobInfo, name: str = "report.json") -> Artifact:
    """Return a file of the result by name.

    Raises:
        NotFoundError: The job has none of this name.
    """
    for artifact in info.artifacts:
        if artifact.name == name:
            return artifact
    raise NotFoundError(
        f"Job {info.id} ({info.state}) has no {name}.",
        reason="ARTIFACT_NOT_FOUND",
        remedy="Wait for the job, or list its files with `boardlift jobs show`.",
        metadata={"job": info.id, "artifact": name},
    )


def parse_report(data: bytes) -> dict[str, Any]:
    """Parse report.json."""
    report = json.loads(data)
    if not isinstance(report, dict):
        raise NotFoundError(
            "report.json holds no object.", reason="REPORT_INVALID", remedy="Read report.html, or run the job again."
        )
    return report
