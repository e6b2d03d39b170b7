"""boardlift: a model goes in, a proven, measured model for the robot's board comes out.

`Client` is the way in (`boardlift.aio.Client` for asyncio), `boardlift.models` holds what it returns,
`boardlift.errors` what it raises, `boardlift.datasets` makes samples, `boardlift.testing` a server for your own tests.
Names load when first used: a service that needs only the stubs or the errors loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boardlift._requests import Model, RunOptions
    from boardlift.client import ArtifactFile, Client, Job
    from boardlift.connection import Connection
    from boardlift.errors import BoardliftError
    from boardlift.models import (
        Artifact,
        Board,
        Figure,
        Gate,
        InputFormat,
        JobEvent,
        JobInfo,
        Variant,
        Verdict,
    )
    from boardlift.stages import StageClient

__version__ = "0.1.0"

_HOMES = {
    "ArtifactFile": "boardlift.client",
    "Client": "boardlift.client",
    "Job": "boardlift.client",
    "Connection": "boardlift.connection",
    "BoardliftError": "boardlift.errors",
    "Model": "boardlift._requests",
    "RunOptions": "boardlift._requests",
    "StageClient": "boardlift.stages",
    **dict.fromkeys(
        ("Artifact", "Board", "Figure", "Gate", "InputFormat", "JobEvent", "JobInfo", "Variant", "Verdict"),
        "boardlift.models",
    ),
}

__all__ = [
    "Artifact",
    "ArtifactFile",
    "Board",
    "BoardliftError",
    "Client",
    "Connection",
    "Figure",
    "Gate",
    "InputFormat",
    "Job",
    "JobEvent",
    "JobInfo",
    "Model",
    "RunOptions",
    "StageClient",
    "Variant",
    "Verdict",
    "__version__",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home:
        return getattr(import_module(home), name)
    if name in ("aio", "datasets", "errors", "models", "testing"):
        return import_module(f"boardlift.{name}")
    raise AttributeError(f"module 'boardlift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "aio", "datasets", "errors", "models", "testing"]
