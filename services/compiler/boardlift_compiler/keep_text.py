"""Keep what costs only time when it is lost: a small file, replaced as a whole, and no failure when that can't be."""

from __future__ import annotations

import secrets
from pathlib import Path

import structlog

_LOG = structlog.get_logger()


def keep_text(path: Path, text: str) -> bool:
    """Replace a file, its folder made when absent; several threads may write the same one.

    Returns:
        False when it can't be written, which is logged: the work that made the text is none the worse.
    """
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError:
        _LOG.exception("not_kept", file=path.name)
        try:
            partial.unlink(missing_ok=True)
        except OSError:
            _LOG.exception("remains_not_removed", file=partial.name)
        return False
    return True
