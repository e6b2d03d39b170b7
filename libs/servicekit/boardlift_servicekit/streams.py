"""Make sure that the streams, buckets and consumers exist. Idempotent: every orchestrator does it at start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import nats.js.errors as jetstream_errors
from boardlift.errors import InvalidInputError, PreconditionError
from nats.js import JetStreamContext, api

from boardlift_servicekit.messaging import (
    EVENT_STREAM,
    OUTCOME_CONSUMER,
    RESULT_STREAM,
    TASK_STREAM,
    TIMER_CONSUMER,
    board_consumer,
    pool_consumer,
    retry,
)
from boardlift_servicekit.names import check_token

STAGE_CONSUMERS: Final[Mapping[str, tuple[str, ...]]] = {
    "transform": ("ingest", "transform"),
    "compiler": ("check", "compile", "simulate"),
    "orchestrator": ("verdict",),
}
"""Which stages the shared consumer of each service takes. Boards have consumers of their own."""
MINIMUM_API_LEVEL: Final = 2
_EXISTS_OTHERWISE: Final = 10058


@dataclass(frozen=True)
class QueueLimits:
    """How the queue is kept."""

    replicas: int = 1
    """Copies of every stream; 3 on a cluster of three servers."""
    ack_wait_s: float = 15.0
    """Seconds without a sign of life after which a message is handed to somebody else."""
    event_bytes: int = 4 << 30
    """Bytes of job histories that are kept; beyond them the oldest events go, whatever their age."""


async def ensure_streams(js: JetStreamContext, limits: QueueLimits) -> None:
    """Create or update all streams and shared consumers. Idempotent; every orchestrator calls it at start.

    Raises:
        PreconditionError: The server is older than 2.12 or has no JetStream.
        UnavailableError: The server does not answer.
    """
    await _require_level(js)
    work: dict[str, Any] = {"retention": "workqueue", "duplicate_window": 600.0, "max_consumers": 8192}
    streams = [
        api.StreamConfig(
            name=TASK_STREAM,
            subjects=["task.>"],
            allow_msg_schedules=True,
            allow_msg_ttl=True,
            max_msg_size=786432,
            **work,
        ),
        api.StreamConfig(name=RESULT_STREAM, subjects=["res.>"], max_msg_size=131072, **work),
        api.StreamConfig(
            name=EVENT_STREAM,
            subjects=["evt.>"],
            allow_direct=True,
            max_age=30 * 86400.0,
            max_bytes=limits.event_bytes,
        ),
        *(_bucket(name, marker_s) for name, marker_s in (("JOB", 0), ("BOARD", 0), ("LEASE", 0), ("PRESENCE", 60))),
    ]
    for config in streams:
        await _ensure_stream(js, config.evolve(storage="file", num_replicas=limits.replicas))
    for name, stages in STAGE_CONSUMERS.items():
        await ensure_consumer(js, TASK_STREAM, name, [f"task.{stage}.>" for stage in stages], limits)
    await ensure_consumer(js, TASK_STREAM, TIMER_CONSUMER, ["task.timer.>"], limits)
    await ensure_consumer(js, RESULT_STREAM, OUTCOME_CONSUMER, ["res.>"], limits)


async def ensure_board_consumers(js: JetStreamContext, board: str, target: str, limits: QueueLimits) -> None:
    """Create the consumer for one board's own tasks and the one for its target's pool."""
    check_token("board id", board)
    check_token("target", target)
    await ensure_consumer(js, TASK_STREAM, board_consumer(board), [f"task.board.id.{board}.*"], limits)
    await ensure_consumer(js, TASK_STREAM, pool_consumer(target), [f"task.board.pool.{target}.*"], limits)


async def delete_board_consumer(js: JetStreamContext, board: str) -> None:
    """Remove the consumer for one board's own tasks; one that does not exist is fine."""
    check_token("board id", board)
    try:
        await retry(lambda: js.delete_consumer(TASK_STREAM, board_consumer(board)))
    except jetstream_errors.NotFoundError:
        return


async def ensure_consumer(
    js: JetStreamContext, stream: str, name: str, subjects: list[str], limits: QueueLimits
) -> None:
    """Create or update a durable pull consumer."""
    config = api.ConsumerConfig(
        name=name,
        durable_name=name,
        filter_subjects=subjects if len(subjects) > 1 else None,
        filter_subject=subjects[0] if len(subjects) == 1 else None,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=limits.ack_wait_s,
        max_deliver=-1,  # the job record counts: the server's own count does not survive a crash
        max_ack_pending=5000,
        max_waiting=4096,
    )
    await retry(lambda: js.add_consumer(stream, config))


async def _require_level(js: JetStreamContext) -> None:
    try:
        info = await retry(js.account_info)
    except jetstream_errors.APIError as error:
        raise PreconditionError(
            "this NATS server has no JetStream",
            reason="NATS_WITHOUT_JETSTREAM",
            remedy="Start nats-server with deploy/nats/nats.conf.",
        ) from error
    level = getattr(info.api, "level", None) or 0
    if level < MINIMUM_API_LEVEL:
        raise PreconditionError(
            f"this NATS server is too old: JetStream API level {level}, needed {MINIMUM_API_LEVEL}",
            reason="NATS_TOO_OLD",
            remedy="Install nats-server 2.12 or newer.",
            metadata={"level": str(level)},
        )


async def _ensure_stream(js: JetStreamContext, config: api.StreamConfig) -> None:
    try:
        await retry(lambda: js.add_stream(config))
    except jetstream_errors.BadRequestError as error:
        if error.err_code != _EXISTS_OTHERWISE:
            raise InvalidInputError(
                f"NATS refuses stream {config.name}: {error.description}",
                reason="NATS_STREAM_REFUSED",
                remedy="Give NATS the room it names, or remove the stream's foreign settings.",
                metadata={"stream": str(config.name)},
            ) from error
        await retry(lambda: js.update_stream(config))


def _bucket(name: str, marker_s: int) -> api.StreamConfig:
    """Return the stream of a key-value bucket with per-key life times; markers make an expiry visible to watchers."""
    return api.StreamConfig(
        name=f"KV_{name}",
        subjects=[f"$KV.{name}.>"],
        max_msgs_per_subject=1,
        allow_rollup_hdrs=True,
        allow_msg_ttl=True,
        allow_direct=True,
        deny_delete=True,
        discard=api.DiscardPolicy.NEW,
        subject_delete_marker_ttl=marker_s or None,
    )
