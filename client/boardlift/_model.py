"""A model that lies on the server."""

from __future__ import annotations

from dataclasses import dataclass

from boardlift.models import Artifact


@dataclass(frozen=True)
class Model:
    """A model on the server: its file and the weight files it keeps outside itself."""

    artifact: Artifact
    """The ONNX file."""
    external: tuple[Artifact, ...] = ()
    """Weight files; `name` is the name the model spells."""
    name: str = ""
    """File name as the user knows it."""
    inputs: tuple[str, ...] = ()
    """Names of what the file takes; empty when they are not known."""
    outputs: tuple[str, ...] = ()
    """Names of what the file gives; empty when they are not known."""
