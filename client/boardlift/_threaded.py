"""Calls that last run in a thread of their own, so that Ctrl-C strikes in our code and never in gRPC's.

Python raises KeyboardInterrupt wherever the main thread is. Between two instructions of gRPC's own code that leaves a
lock of the channel held for ever: the next call on it hangs, and so does closing it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
CLOSE_PATIENCE_S = 2.0


def in_thread(items: Iterator[T]) -> Iterator[T]:
    """Yield what `items` gives; it runs in a thread that ends with it, or with the process.

    Raises:
        BaseException: What `items` raises.
    """
    ready: queue.SimpleQueue[tuple[list[T], BaseException | None, bool]] = queue.SimpleQueue()

    def work() -> None:
        try:
            for item in items:
                ready.put(([item], None, False))
            ready.put(([], None, True))
        except BaseException as error:  # noqa: BLE001  (raised again where the items are wanted)
            ready.put(([], error, True))

    threading.Thread(target=work, name="boardlift-call", daemon=True).start()
    while True:
        came, error, ended = ready.get()
        if error is not None:
            raise error
        yield from came
        if ended:
            return


def close_after(error: type[BaseException] | None, close: Callable[[], None]) -> None:
    """Close a connection; after an interrupt, which may have broken it, without waiting for ever."""
    if error is None or not issubclass(error, KeyboardInterrupt):
        close()
        return
    closing = threading.Thread(target=close, name="boardlift-close", daemon=True)
    closing.start()
    closing.join(CLOSE_PATIENCE_S)
