"""Settings of the board agent, read once from `BOARDLIFT_*` variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.keeper import KeepSettings
from boardlift_servicekit.server import ServerSettings


@dataclass(frozen=True)
class Settings:
    """How the agent runs; the server's and the channel's own settings come beside it."""

    board_id: str = "board-1"
    """Name of the board, `[a-z0-9-]{1,40}`; unique in the lab."""
    target: str = "rdk-x5"
    """What it runs models for."""
    labels: tuple[str, ...] = ()
    """Free labels, `name=value`."""
    state_dir: Path = Path(".boardlift/board")
    """Folder for results, cached artifacts and runs."""
    board_root: Path = Path("/")
    """Where the board's files are read from; a folder of files for a simulated board."""
    hrt_model_exec: str = "hrt_model_exec"
    """The vendor's tool: an absolute path, or a name that is looked for in `BOARDLIFT_TOOL_PATH` (not in PATH)."""
    sampler: tuple[str, ...] = ("auto",)
    """Command of the per-frame timer, words separated by commas; "auto" finds one, "none" does without."""
    tool_path: str = "/usr/bin:/bin:/usr/hobot/bin"
    """PATH of the board's programs."""
    mode: str = "pull"
    """`pull`: the agent takes its work from the queue. `dial`: the orchestrator takes it and calls the agent."""
    dial_address: str = ""
    """`host:port` at which the orchestrator calls in mode dial; empty takes what the agent listens on."""
    orchestrator: str = ""
    """`host:port` of the orchestrator, where the board registers; empty registers nowhere."""
    artifacts: str = ""
    """`host:port` of the artifact service; empty takes the orchestrator's, or keeps artifacts here and serves them."""
    nats: tuple[str, ...] = ()
    """NATS servers to pull work from; empty serves gRPC only. Not used when the board is dialled."""
    nats_credentials: Path | None = None
    """Credentials file (JWT and seed) for NATS; none connects without."""
    infer_timeout: timedelta = timedelta(minutes=2)
    """Longest run of one inference, model load included."""
    perf_timeout: timedelta = timedelta(minutes=5)
    """Longest single run of a measurement."""
    cancel_grace: timedelta = timedelta(seconds=30)
    """Time a run goes on after its last caller's stream broke."""
    failing_retry: timedelta = timedelta(minutes=10)
    """Time after which a board that failed three times in a row gets one more try."""
    governor: str = "performance"
    """Governor that measurements are meant to run under; empty for any. Another one is said in the result."""
    allow_governor: bool = False
    """Permits a run that asks for a governor to have it set while it measures; it is put back afterwards."""
    hot_c: float = field(default=90.0, metadata={"min": 40, "max": 110})
    """Hotter than this, in degrees Celsius, the board takes no work."""
    min_free_disk_bytes: int = field(default=512 << 20, metadata={"min": 0})
    """With less free disk the board takes no work."""
    max_artifact_bytes: int = field(default=2 << 30, metadata={"min": 1 << 20})
    """Largest artifact."""
    log_level: str = "INFO"
    """DEBUG, INFO, WARNING or ERROR."""


@dataclass(frozen=True)
class AllSettings:
    """Everything that is read from the environment."""

    own: Settings
    """The agent's own."""
    server: ServerSettings
    """How it listens."""
    channel: ChannelSettings
    """How it reaches the orchestrator."""
    keep: KeepSettings = field(default_factory=KeepSettings)
    """How long unused files stay."""
