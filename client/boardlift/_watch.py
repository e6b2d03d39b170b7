"""Follow a job across broken lines: what to ask for next, what is new, when it is over. Sans-IO.

A server begins every stream with the job as it is (under the sequence that was asked for), then sends the events behind
that sequence. So an ended state at the beginning is news about the job, not the end of the story.
"""

from __future__ import annotations

from boardlift._convert import to_event
from boardlift._retry import Retry
from boardlift.errors import BoardliftError, DeadlineError
from boardlift.models import JobEvent
from boardlift.v1 import job_pb2


class Watch:
    """The state of one watcher."""

    def __init__(self, job_id: str, after_sequence: int, retry: Retry) -> None:
        """Start after a sequence; 0 is the beginning."""
        self._job_id = job_id
        self._retry = retry
        self._streams = 0
        self._messages = 0
        self._done = False
        self.sequence = after_sequence
        self.ended = False

    def request(self) -> job_pb2.WatchJobRequest:
        """Return the request of the next stream: for what has not been seen yet."""
        self._streams += 1
        self._messages = 0
        return job_pb2.WatchJobRequest(job_id=self._job_id, after_sequence=self.sequence)

    def receive(self, message: job_pb2.WatchJobResponse) -> JobEvent | None:
        """Take an event; None when it brings nothing new."""
        self._retry.succeeded()
        self._messages += 1
        event = to_event(message)
        fresh = event.sequence > self.sequence
        self.sequence = max(self.sequence, event.sequence)
        if event.job is not None:
            self._done = event.job.done
            self.ended = self._done and (fresh or self._messages > 1)
        repeated = not fresh and self._messages == 1 and self._streams > 1
        return None if repeated else event

    def close_stream(self) -> float:
        """Note that the server ended the stream in peace; return how long to sleep before the next one."""
        self.ended = self.ended or self._done
        return 0.0 if self.ended else 0.2

    def pause_s(self, error: BoardliftError) -> float:
        """Return how long to sleep after a broken line, or raise when it is not that.

        Raises:
            DeadlineError: The watcher's time is over; the job goes on.
        """
        if isinstance(error, DeadlineError):
            raise DeadlineError(
                f"Job {self._job_id} has not ended in the time given; it goes on.",
                remedy=f"Follow it: boardlift jobs watch {self._job_id}",
                metadata={"job": self._job_id},
            ) from error
        return self._retry.pause_s(error)
