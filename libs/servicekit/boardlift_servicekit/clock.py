"""This server's clock, as it is sent to others."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp


def now() -> Timestamp:
    """The time now, UTC."""
    stamp = Timestamp()
    stamp.GetCurrentTime()
    return stamp
