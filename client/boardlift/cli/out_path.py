"""Where a command saves something: refused before the work, not after it, when nothing can be written there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class OutPath(click.Path):
    """A file or a folder to be written; folders on the way to it are made when it is."""

    def __init__(self, *, folder: bool) -> None:
        """Take a folder, or a file."""
        super().__init__(path_type=Path, file_okay=not folder, dir_okay=folder)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Path:
        """Return the path.

        Raises:
            click.BadParameter: It is of the other kind, a folder on the way is a file, or it may not be written to.
        """
        path = Path(os.fsdecode(super().convert(value, parameter, context)))
        there = next(parent for parent in (path if self.dir_okay else path.parent, *path.parents) if parent.exists())
        if not there.is_dir():
            self.fail(f"{there} is a file, no folder.", parameter, context)
        if not os.access(there, os.W_OK | os.X_OK):
            self.fail(f"nothing may be written to {there}.", parameter, context)
        return path


OUT_FILE = OutPath(folder=False)
OUT_FOLDER = OutPath(folder=True)
