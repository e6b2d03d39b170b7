"""What a running stage says, on its way to the watchers of its job."""

from __future__ import annotations

import time
from typing import Any

from boardlift.v1 import job_pb2, queue_pb2, toolchain_pb2
from nats.aio.client import Client

from boardlift_servicekit.messaging import publish_stage_event


class EventTap:
    """Publishes a stage's events for the job's watchers, thinned out: a log line costs the server a disk write."""

    PROGRESS_S = 0.5
    LINES_PER_S = 10.0
    BURST = 40.0

    def __init__(self, client: Client, task: queue_pb2.StageTask) -> None:
        """Publish over `client` what happens to `task`."""
        self._client = client
        self._task = task
        self._last_progress = 0.0
        self._held: toolchain_pb2.Progress | None = None
        self._allowance = self.BURST
        self._looked = time.monotonic()
        self._left_out = 0

    async def emit(self, item: Any) -> None:
        """Publish an event, hold it back, or count it as left out."""
        now = time.monotonic()
        if isinstance(item, toolchain_pb2.Progress):
            if now - self._last_progress < self.PROGRESS_S:
                self._held = item
                return
            self._last_progress, self._held = now, None
            await self._publish(progress=item)
            return
        self._allowance = min(self.BURST, self._allowance + (now - self._looked) * self.LINES_PER_S)
        self._looked = now
        if self._allowance < 1:
            self._left_out += 1
            return
        self._allowance -= 1
        await self._tell_left_out()
        await self._publish(log=item)

    async def close(self) -> None:
        """Publish what was held back."""
        if self._held is not None:
            await self._publish(progress=self._held)
        await self._tell_left_out()

    async def _tell_left_out(self) -> None:
        if self._left_out:
            lines = "line" if self._left_out == 1 else "lines"
            text = f"({self._left_out} {lines} left out here; the stage's log has them all)"
            self._left_out = 0
            await self._publish(log=toolchain_pb2.LogLine(text=text, source="boardlift"))

    async def _publish(self, **event: Any) -> None:
        if self._client.is_closed:
            return
        message = job_pb2.WatchJobResponse(stage=self._task.stage, variant=self._task.variant, **event)
        message.event_time.GetCurrentTime()
        await publish_stage_event(self._client, message, self._task.job_id)
