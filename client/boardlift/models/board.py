"""Boards, servers and their tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from boardlift.models.figure import Figure, Finding


@dataclass(frozen=True)
class Board:
    """A registered board."""

    id: str
    """Its id."""
    target: str = ""
    """Target it serves."""
    simulated: bool = False
    """True when a stand-in takes the place of silicon."""
    online: bool = False
    """True while it is heard of."""
    in_rotation: bool = False
    """True when it can take work."""
    mode: str = "pull"
    """How it gets its work: "pull" takes it from the queue, "dial" is called by the orchestrator."""
    address: str = ""
    """`host:port` at which it is dialled; empty when it pulls."""
    busy_job: str = ""
    """Job it works for."""
    lease_holder: str = ""
    """Who holds its lease."""
    model: str = ""
    """Board model."""
    soc: str = ""
    """System on chip."""
    os_version: str = ""
    """Operating system."""
    versions: Mapping[str, str] | None = None
    """Versions of its parts."""
    labels: Mapping[str, str] | None = None
    """Free labels."""
    capabilities: tuple[str, ...] = ()
    """What it can do."""
    absent: tuple[str, ...] = ()
    """Facts that could not be read."""
    findings: tuple[Finding, ...] = ()
    """Why it is out of rotation, and warnings."""
    figures: tuple[Figure, ...] = ()
    """Temperatures, clocks, load, memory."""
    memory_bytes: int = 0
    """Memory; 0 when unknown."""
    last_seen: datetime | None = None
    """When it was last heard of."""


@dataclass(frozen=True)
class Tool:
    """A tool and its version."""

    name: str
    """Name of the tool."""
    version: str = ""
    """Its version; empty when absent."""
    parts: Mapping[str, str] | None = None
    """Versions of its parts."""
    simulated: bool = False
    """True when a stand-in takes its place."""
    known: bool = False
    """True when this release was tested with that version."""


@dataclass(frozen=True)
class StoreInfo:
    """An artifact store, as its last sweep left it."""

    objects: int
    """Objects in it."""
    size_bytes: int
    """Their bytes."""
    limit_bytes: int = 0
    """Size above which old objects go early; 0 is no limit."""
    swept: datetime | None = None
    """When the last sweep ended."""
    freed_objects: int = 0
    """Objects it removed."""
    freed_bytes: int = 0
    """Bytes it removed."""
    removed_jobs: int = 0
    """Jobs it removed."""


@dataclass(frozen=True)
class ServerInfo:
    """What a server says about itself."""

    name: str
    """Name of the service."""
    version: str = ""
    """Version of boardlift."""
    tools: tuple[Tool, ...] = ()
    """Tools it found."""
    slots: int = 0
    """Stages that can run at the same time."""
    busy_slots: int = 0
    """Stages running now."""
    findings: tuple[Finding, ...] = ()
    """What is missing, and how to get it."""
    store: StoreInfo | None = None
    """Its artifact store; None before the first sweep."""
    server_time: datetime | None = None
    """Its clock when it answered; None for servers that don't say."""
