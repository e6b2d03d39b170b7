"""Connect to NATS, make sure the streams exist, and publish tasks, outcomes and events with deterministic ids.

Delivery is at least once. A publish that timed out may have been stored, so every publish that matters carries a
`Nats-Msg-Id` made from what it says, and may be repeated. What decides is never the id but the compare-and-set on the
job record (see the orchestrator); the ids only save work.
"""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import nats
import nats.errors
import nats.js.errors as jetstream_errors
import structlog
from boardlift.errors import UnavailableError
from boardlift.v1 import job_pb2, queue_pb2
from nats.aio.client import Client
from nats.js import JetStreamContext

from boardlift_servicekit.names import check_token

LOST: Final = (
    nats.errors.Error,
    jetstream_errors.NoStreamResponseError,
    jetstream_errors.ServiceUnavailableError,
    asyncio.TimeoutError,
)
"""What a call raises when its outcome is unknown: lost connection, no answer, no leader yet."""

TASK_STREAM: Final = "TASK"
RESULT_STREAM: Final = "RES"
EVENT_STREAM: Final = "EVT"
OUTCOME_CONSUMER: Final = "orch"
TIMER_CONSUMER: Final = "timer"
_log = structlog.get_logger(__name__)
_T = TypeVar("_T")


async def connect(servers: str | list[str], name: str, *, wait_s: float = 20.0, **options: Any) -> Client:
    """Connect and keep reconnecting for ever.

    Args:
        servers: URLs `nats://host:port` or `tls://host:port`, as a list or separated by commas.
        name: Shown in the server's list of connections.
        wait_s: Seconds to wait for the first connection.
        **options: Further options of `nats.connect`, for example `tls`, `user_credentials`, `inbox_prefix`.

    Raises:
        UnavailableError: No server answered in that time.
    """

    async def on_error(error: Exception) -> None:
        _log.warning("nats_error", error=repr(error))  # refused permissions show up only here

    async def on_closed() -> None:
        _log.info("nats_closed")

    settings: dict[str, Any] = {
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.5,
        "ping_interval": 10,
        "drain_timeout": 5,
        "allow_reconnect": True,
        "error_cb": on_error,
        "closed_cb": on_closed,
    }
    urls = servers.split(",") if isinstance(servers, str) else list(servers)
    try:
        return await asyncio.wait_for(nats.connect(urls, name=name, **{**settings, **options}), timeout=wait_s)
    except (OSError, nats.errors.Error, asyncio.TimeoutError) as error:
        raise UnavailableError(
            f"no NATS server answers at {', '.join(urls)}",
            reason="NATS_UNAVAILABLE",
            remedy="Start nats-server, or correct the setting BOARDLIFT_NATS.",
            metadata={"servers": ",".join(urls)},
        ) from error


async def disconnect(client: Client) -> None:
    """Close a connection, whatever state it is in: what waits for a server that is away gets lost."""
    try:
        await client.close()
    except OSError as error:
        _log.info("nats_left_while_away", error=repr(error))


async def retry(call: Callable[[], Awaitable[_T]], attempts: int = 80, pause_s: float = 0.25) -> _T:
    """Repeat an idempotent call until its outcome is known. A timeout means unknown, not failed.

    Raises:
        UnavailableError: The outcome stayed unknown for `attempts` tries.
    """
    for _ in range(attempts):
        try:
            return await call()
        except jetstream_errors.APIError as error:
            if getattr(error, "code", None) != 503:  # KeyWrongLastSequenceError has no code at all
                raise
        except (nats.errors.ConnectionClosedError, nats.errors.ConnectionDrainingError):
            raise
        except LOST:
            pass
        await asyncio.sleep(pause_s)
    raise UnavailableError("NATS does not answer", reason="NATS_UNAVAILABLE", remedy="Look at the nats-server's log.")


def board_consumer(board: str) -> str:
    """Name of the consumer that only this board pulls from."""
    return f"board-{board}"


def pool_consumer(target: str) -> str:
    """Name of the consumer that all boards of a target share."""
    return f"pool-{target}"


async def publish_task(
    js: JetStreamContext, task: queue_pb2.StageTask, *, place: str = "", delay_s: float = 0.0
) -> None:
    """Queue one attempt at a stage.

    Args:
        js: JetStream.
        task: The attempt.
        place: For what boards run (board, diagnose): `pool.<target>` or `id.<board>`.
        delay_s: Seconds to wait; the timer lives in the server and survives everybody's death.
    """
    subject = f"task.board.{place}.{task.job_id}" if place else f"task.{task.stage}.{task.job_id}"
    headers = {"Nats-Msg-Id": f"t:{task.job_id}:{task.stage}:{task.variant}:{task.attempt}"}
    body = task.SerializeToString()
    if delay_s > 0:
        name = f"{task.stage}-{task.variant or '0'}"
        await _publish_later(js, subject, f"task.later.{name}.{task.job_id}", body, headers, delay_s)
    else:
        await retry(lambda: js.publish(subject, body, headers=dict(headers), timeout=2))


async def publish_timer(js: JetStreamContext, job: str, name: str, delay_s: float) -> None:
    """Have the orchestrator look at a job after a delay. One timer per job and name; a later one takes its place."""
    await _publish_later(js, f"task.timer.{job}", f"task.later.{name}.{job}", job.encode(), {}, delay_s)


async def publish_outcome(js: JetStreamContext, outcome: queue_pb2.StageOutcome) -> None:
    """Report how an attempt ended. The first report of an attempt counts."""
    message_id = f"r:{outcome.job_id}:{outcome.stage}:{outcome.variant}:{outcome.attempt}"
    subject = f"res.{outcome.worker}.{outcome.job_id}"
    body = outcome.SerializeToString()
    await retry(lambda: js.publish(subject, body, headers={"Nats-Msg-Id": message_id}, timeout=2))


async def publish_started(client: Client, outcome: queue_pb2.StageOutcome) -> None:
    """Report that an attempt has begun. Nothing depends on its arrival."""
    await _publish_if_possible(client, f"res.{outcome.worker}.{outcome.job_id}", outcome.SerializeToString())


async def publish_job_event(js: JetStreamContext, event: job_pb2.WatchJobResponse, job: str, revision: int) -> None:
    """Record a change of a job for its watchers, once per revision of its record."""
    headers = {"Nats-Msg-Id": f"e:{job}:{revision}"}
    body = event.SerializeToString()
    await retry(lambda: js.publish(f"evt.job.{job}.job", body, headers=dict(headers), timeout=2))


async def publish_stage_event(client: Client, event: job_pb2.WatchJobResponse, job: str) -> None:
    """Record progress or a log line for a job's watchers; may get lost."""
    await _publish_if_possible(client, f"evt.job.{job}.{event.WhichOneof('event')}", event.SerializeToString())


async def publish_note(js: JetStreamContext, event: job_pb2.WatchJobResponse, job: str, name: str) -> None:
    """Record a line for a job's watchers, at most once in two minutes under the same name."""
    headers = {"Nats-Msg-Id": f"n:{job}:{name}"}
    body = event.SerializeToString()
    await retry(lambda: js.publish(f"evt.job.{job}.log", body, headers=dict(headers), timeout=2))


async def publish_stop(client: Client, stop: queue_pb2.StopStage) -> None:
    """Tell whoever runs it to stop a job's stage, or all of its stages."""
    await client.publish(f"ctl.job.{stop.job_id}", stop.SerializeToString())


async def purge_tasks(js: JetStreamContext, job: str, prefix: str = "") -> None:
    """Remove a job's queued tasks; with a prefix such as `task.board.id.b1` only those."""
    check_token("job id", job)
    for subject in [f"{prefix}.{job}"] if prefix else [f"task.*.{job}", f"task.*.*.{job}", f"task.*.*.*.{job}"]:
        await retry(lambda subject=subject: js.purge_stream(TASK_STREAM, subject=subject))  # type: ignore[misc]


async def purge_events(js: JetStreamContext, job: str) -> None:
    """Remove a job's history; nobody can watch it any more."""
    check_token("job id", job)
    await retry(lambda: js.purge_stream(EVENT_STREAM, subject=f"evt.job.{job}.*"))


@dataclass(frozen=True)
class StoredMessage:
    """A message as it lies in a stream."""

    subject: str
    """Its subject."""
    sequence: int
    """Its sequence in the stream."""
    data: bytes
    """Its body; empty for a marker that a key was removed."""


async def read_after(
    client: Client, stream: str, subject: str, after: int, *, most: int = 256, timeout_s: float = 2.0
) -> tuple[list[StoredMessage], bool]:
    """Read stored messages of a subject by one request, without a consumer.

    Args:
        client: The connection.
        stream: Stream with direct reads allowed.
        subject: Subject, with wildcards.
        after: Sequence after which to read; 0 reads from the start.
        most: Messages to read at most; the server may send fewer.
        timeout_s: Longest wait for the next message.

    Returns:
        The messages in order, and whether there are more.

    Raises:
        UnavailableError: The server stopped answering.
    """
    request = {"seq": after + 1, "next_by_subj": subject, "batch": most}
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox, pending_msgs_limit=0, pending_bytes_limit=0)
    found: list[StoredMessage] = []
    try:
        await client.publish(f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode(), reply=inbox)
        while True:
            message = await subscription.next_msg(timeout=timeout_s)
            headers = message.headers or {}
            status = headers.get("Status")
            if status in ("204", "404"):
                return found, status == "204" and int(headers.get("Nats-Num-Pending", "0")) > 0
            if status:
                raise UnavailableError(
                    f"Reading {stream} failed: {headers}",
                    reason="NATS_READ_FAILED",
                    remedy="Look into NATS's log; nothing is lost meanwhile.",
                )
            found.append(StoredMessage(headers["Nats-Subject"], int(headers["Nats-Sequence"]), message.data))
    except (nats.errors.Error, asyncio.TimeoutError) as error:
        raise UnavailableError(
            f"NATS does not answer for {stream}.",
            reason="NATS_UNAVAILABLE",
            remedy="Look whether NATS runs and is reached; nothing is lost meanwhile.",
        ) from error
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()


async def _publish_if_possible(client: Client, subject: str, body: bytes) -> None:
    """Publish what may get lost: a stage must not end because nobody can be told how far it is.

    While the server is away the client holds messages back, and refuses more when it holds too many.
    """
    try:
        await client.publish(subject, body)
    except nats.errors.Error as error:
        _log.debug("not_published", subject=subject, error=repr(error))


async def _publish_later(
    js: JetStreamContext, target: str, subject: str, body: bytes, headers: Mapping[str, str], delay_s: float
) -> None:
    due = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=delay_s)
    timed = {
        **headers,
        "Nats-Schedule": f"@at {due.isoformat(timespec='milliseconds').replace('+00:00', 'Z')}",
        "Nats-Schedule-Target": target,
    }
    await retry(lambda: js.publish(subject, body, headers=dict(timed), timeout=2))
