"""Settings of the compiler service, read once from `BOARDLIFT_*` variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.keeper import KeepSettings
from boardlift_servicekit.server import ServerSettings


@dataclass(frozen=True)
class Settings:
    """How the compiler runs; the server's and the channel's own settings come beside it."""

    state_dir: Path = Path(".boardlift/compiler")
    """Folder for results, cached artifacts and the history of run times."""
    toolchain: Path = Path(".boardlift/toolchain")
    """Environment of the vendor toolchain (`bin/hb_mapper` in it)."""
    artifacts: str = ""
    """`host:port` of the artifact service; empty keeps artifacts here and serves them."""
    work_root: Path = Path("/tmp")  # noqa: S108  # run folders are private (0700) and their names unguessable
    """Where run folders are made. A short, equal path everywhere makes builds equal everywhere."""
    slots: int = field(default=0, metadata={"min": 0, "max": 256})
    """Runs at the same time; 0 chooses by cores and memory."""
    warm_start: bool = True
    """Start the tool by forking a process that has imported it already; off means a fresh process per run."""
    compile_timeout: timedelta = timedelta(hours=4)
    """Longest run of the tool."""
    silence_timeout: timedelta = timedelta(minutes=10)
    """Longest time without output outside the vendor's compiler."""
    tool_memory_bytes: int = field(default=0, metadata={"min": 0})
    """Address space per tool process; 0 is no limit."""
    cancel_grace: timedelta = timedelta(seconds=30)
    """Time a run goes on after its last caller's stream broke."""
    max_artifact_bytes: int = field(default=4 << 30, metadata={"min": 1 << 20})
    """Largest artifact."""
    log_level: str = "INFO"
    """DEBUG, INFO, WARNING or ERROR."""


@dataclass(frozen=True)
class AllSettings:
    """Everything that is read from the environment."""

    own: Settings
    """The compiler's own."""
    server: ServerSettings
    """How it listens."""
    channel: ChannelSettings
    """How it reaches the artifact service."""
    keep: KeepSettings = field(default_factory=KeepSettings)
    """How long unused files stay."""
