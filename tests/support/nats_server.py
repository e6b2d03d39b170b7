"""A real nats-server below a folder, for tests of the queue helpers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from support.stack import Stack


@contextlib.contextmanager
def running_nats(folder: Path) -> Iterator[Stack]:
    """Start only the NATS server of a stack; `nats_url` tells where, `nats.kill()` and `nats.start()` break it."""
    stack = Stack(folder)
    try:
        stack.nats.start()
        stack.wait_for_nats()
        yield stack
    finally:
        stack.stop()
