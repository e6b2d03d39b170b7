"""This server's clock: as it is sent to others, and whether it was set."""

from __future__ import annotations

import time

from google.protobuf.timestamp_pb2 import Timestamp


def now() -> Timestamp:
    """The time now, UTC."""
    stamp = Timestamp()
    stamp.GetCurrentTime()
    return stamp


class ClockWatch:
    """Notices that the clock was set since this process began to watch it; sleep of the machine is none of that."""

    def __init__(self) -> None:
        """Watch from now on."""
        self._offset = self._now_offset()

    def jumped_s(self) -> float:
        """By how many seconds the clock was set since: forward above 0, back below."""
        return self._now_offset() - self._offset

    @staticmethod
    def _now_offset() -> float:
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
