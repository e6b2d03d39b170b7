"""One caller of a running execution: the events that it has yet to take, bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Any

from boardlift.errors import UnavailableError

MOST_EVENTS = 4096
"""Events that wait for a caller at most: the lines that are kept for late callers, and as many again."""


class Reader:
    """Takes events without ever waiting; a caller that falls too far behind loses them and is told so."""

    def __init__(self, principal: str, events: Iterable[Any] = (), most: int = MOST_EVENTS) -> None:
        """Begin with events that came before.

        Args:
            principal: Who calls.
            events: What the caller has missed so far.
            most: Events that may wait.
        """
        self.principal = principal
        self._events = deque(events)
        self._most = most
        self._wake = asyncio.Event()
        self._closed = False
        self.lost = False

    def put(self, event: Any) -> bool:
        """Add an event; False when the reader is too far behind: then it is closed and gets an error."""
        if len(self._events) >= self._most:
            self._events.clear()
            self.lost = True
            self.close()
            return False
        self._events.append(event)
        self._wake.set()
        return True

    def close(self) -> None:
        """No event comes any more."""
        self._closed = True
        self._wake.set()

    async def events(self) -> AsyncIterator[Any]:
        """Yield the events until the reader is closed.

        Raises:
            UnavailableError: READER_TOO_SLOW; the run goes on, and the same call attaches to it again.
        """
        while True:
            while self._events:
                yield self._events.popleft()
            if self.lost:
                raise UnavailableError(
                    f"The caller is more than {self._most} events behind.",
                    reason="READER_TOO_SLOW",
                    remedy="Make the same call again: the run goes on, and its latest lines come first.",
                )
            if self._closed:
                return
            self._wake.clear()
            await self._wake.wait()
