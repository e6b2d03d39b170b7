"""Settings of the transform service, read once from `BOARDLIFT_*` variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.keeper import KeepSettings
from boardlift_servicekit.server import ServerSettings


@dataclass(frozen=True)
class Settings:
    """How the service runs; the server's and the channel's own settings come beside it."""

    state_dir: Path = Path(".boardlift/transform")
    """Folder for the local store (or cache) and stored results."""
    artifacts: str = ""
    """`host:port` of the ArtifactService; empty keeps artifacts in `state_dir` only."""
    slots: int = field(default=2, metadata={"min": 1, "max": 64})
    """Transforms that run at the same time."""
    max_artifact_bytes: int = field(default=4 << 30, metadata={"min": 1 << 20})
    """Largest artifact."""
    max_inline_bytes: int = field(default=3 << 20, metadata={"min": 1 << 10, "max": 3 << 20})
    """Largest model that may come inside a request."""
    log_level: str = "INFO"
    """DEBUG, INFO, WARNING or ERROR."""


@dataclass(frozen=True)
class AllSettings:
    """Everything that is read from the environment."""

    own: Settings
    """The service's own."""
    server: ServerSettings
    """How it listens."""
    channel: ChannelSettings
    """How it reaches the artifact service."""
    keep: KeepSettings = field(default_factory=KeepSettings)
    """How long unused files stay."""
