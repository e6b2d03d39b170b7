"""Settings of the orchestrator, read once from `BOARDLIFT_*` variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.keeper import KeepSettings
from boardlift_servicekit.server import ServerSettings
from boardlift_servicekit.streams import QueueLimits


@dataclass(frozen=True)
class Settings:
    """How the orchestrator runs; the server's and the channels' own settings come beside it."""

    state_dir: Path = Path(".boardlift/orchestrator")
    """Folder for artifacts; shared by all replicas."""
    nats: tuple[str, ...] = ("nats://127.0.0.1:7422",)
    """NATS servers, comma separated."""
    nats_credentials: Path | None = None
    """Credentials file (JWT and seed) for NATS; none connects without."""
    nats_wait: timedelta = timedelta(seconds=20)
    """Time to wait for NATS at start."""
    nats_replicas: int = field(default=1, metadata={"min": 1, "max": 5})
    """Copies of every stream; 3 on a cluster of three servers."""
    transform: str = "127.0.0.1:7401"
    """`host:port` of the transform service; empty when its workers pull by themselves."""
    compiler: str = "127.0.0.1:7402"
    """`host:port` of the compiler service; empty when its workers pull by themselves."""
    ack_wait: timedelta = timedelta(seconds=15)
    """Time without a sign of life after which a task goes to another worker."""
    heartbeat: timedelta = timedelta(seconds=5)
    """Time between the queue's signs of life."""
    sweep_every: timedelta = timedelta(seconds=20)
    """Time between looks at jobs that nothing happens to."""
    active_jobs: int = field(default=0, metadata={"min": 0, "max": 100_000})
    """Jobs that may have stages at the stage services; others wait for their turn. 0 goes by the services' slots."""
    max_event_bytes: int = field(default=4 << 30, metadata={"min": 16 << 20})
    """Bytes of job histories in the queue; beyond them the oldest events go early. Each NATS server must have them."""
    service_patience: timedelta = timedelta(seconds=60)
    """Time for which an unreachable service is waited for before an attempt counts as failed."""
    dial_networks: tuple[str, ...] = ()
    """Networks (`192.0.2.0/24`) in which boards may be dialled; elsewhere only where a board registered from."""
    dial_tokens: Path | None = None
    """Folder with the token to send to each dialled board, in a file named after its id; boards without get none."""
    dial_patience: timedelta = timedelta(seconds=10)
    """Time for which a dialled board that stops answering is waited for before its stage goes elsewhere."""
    max_artifact_bytes: int = field(default=4 << 30, metadata={"min": 1 << 20})
    """Largest artifact."""
    log_level: str = "INFO"
    """DEBUG, INFO, WARNING or ERROR."""

    def queue_limits(self) -> QueueLimits:
        """How the queue is kept."""
        return QueueLimits(
            replicas=self.nats_replicas, ack_wait_s=self.ack_wait.total_seconds(), event_bytes=self.max_event_bytes
        )


@dataclass(frozen=True)
class RetentionSettings(KeepSettings):
    """How long jobs and what they name stay."""

    keep_jobs: timedelta = field(default=timedelta(days=30), metadata={"min": timedelta(0)})
    """Time for which a job stays after its end, with its files."""
    keep_boards: timedelta = field(default=timedelta(days=90), metadata={"min": timedelta(hours=1)})
    """Time for which a board is listed after its latest sign of life; one that comes back registers anew."""


@dataclass(frozen=True)
class AllSettings:
    """Everything that is read from the environment."""

    own: Settings
    """The orchestrator's own."""
    server: ServerSettings
    """How it listens."""
    channel: ChannelSettings
    """How it reaches the stage services."""
    keep: RetentionSettings
    """How long jobs and files stay."""
