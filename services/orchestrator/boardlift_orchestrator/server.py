"""Wire the orchestrator together: queue, engine, dispatchers, services."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import uuid
from typing import Any

import structlog
from boardlift.errors import BoardliftError
from boardlift.v1 import artifact_pb2_grpc, job_pb2_grpc, toolchain_pb2, toolchain_pb2_grpc
from boardlift_servicekit import channels
from boardlift_servicekit.artifact_service import SERVICE as ARTIFACT_SERVICE
from boardlift_servicekit.artifact_service import ArtifactServicer
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.clock import now
from boardlift_servicekit.consume import Consume, Pace, Slots
from boardlift_servicekit.dispatcher import Dispatcher
from boardlift_servicekit.interceptors import ONLY_STORED
from boardlift_servicekit.keeper import store_info
from boardlift_servicekit.lease import Lease
from boardlift_servicekit.messaging import (
    OUTCOME_CONSUMER,
    RESULT_STREAM,
    TASK_STREAM,
    TIMER_CONSUMER,
    connect,
    disconnect,
)
from boardlift_servicekit.server import Host, wait_for_signal
from boardlift_servicekit.stage_calls import GrpcRunner
from boardlift_servicekit.streams import ensure_streams
from nats.aio.client import Client

from boardlift_orchestrator.admission import Admission
from boardlift_orchestrator.boards import BoardServicer
from boardlift_orchestrator.diagnose import QueuedDiagnoses
from boardlift_orchestrator.dial_address import DialRules, read_networks
from boardlift_orchestrator.dial_boards import BoardDialler
from boardlift_orchestrator.dialled_board import DialParts
from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.index import JobIndex
from boardlift_orchestrator.jobs import JobServicer
from boardlift_orchestrator.make_report import ReportRunner
from boardlift_orchestrator.plan_job import Planner
from boardlift_orchestrator.queue_health import QueueHealth
from boardlift_orchestrator.registry import Buckets, Registry
from boardlift_orchestrator.results import Results
from boardlift_orchestrator.retention import Retention
from boardlift_orchestrator.settings import AllSettings
from boardlift_orchestrator.sweep import Sweeper
from boardlift_orchestrator.watch import EventHub, JobFollower

VERSION = "0.1.0"
_OUTCOMES_AT_ONCE = 16
_REPORTS_AT_ONCE = 2
_PLAN_PATIENCE_S = 3.0
_SLOTS_S = 5.0
"""Time between looks at how many slots a service has: it may come back with others, or with a toolchain at last."""
_log = structlog.get_logger(__name__)


class Orchestrator:
    """One replica."""

    def __init__(self, settings: AllSettings, client: Client, host: Host) -> None:
        """Put the parts together; nothing runs yet."""
        own = settings.own
        self._settings = settings
        self._client = client
        self._worker = f"orch-{_host_token()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self._pace = Pace(heartbeat_s=own.heartbeat.total_seconds(), beat_s=max(0.2, own.ack_wait.total_seconds() / 4))
        limits = own.queue_limits()
        store = LocalStore(own.state_dir / "artifacts", own.max_artifact_bytes)
        buckets = Buckets.open(client)
        self.store = store
        self._results = Results(store)
        self._slots: dict[str, int] = {}
        self._stored: dict[str, GrpcRunner] = {}
        registry = Registry(client, buckets, limits)
        self.queue = QueueHealth(client, buckets.jobs)
        self._engine = Engine(client, buckets.jobs, self._results, registry)
        self._engine.check_queue = self.queue.check
        self._hub = EventHub(client)
        lease = Lease(client.jetstream(), "sweeper", self._worker)
        index = JobIndex(buckets.jobs)
        self._sweeper = Sweeper(self._engine, index, registry, self._results, lease, own.sweep_every.total_seconds())
        self._running: list[Any] = []
        self._dialling: list[asyncio.Task[None]] = []
        self._dispatchers: list[Dispatcher] = []
        self._channels: list[Any] = []
        self._boards = BoardDialler(buckets.boards, self._dial_parts(registry))
        follower = JobFollower(self._engine, self._results, self._hub)
        diagnoses = QueuedDiagnoses(client, self._results, registry)
        admission = Admission(self._engine, index, registry, lambda: sum(self._slots.values()), own.active_jobs)
        host.beside(admission.run)
        gc_lease = Lease(client.jetstream(), "retention", self._worker)
        self.retention = Retention(self._engine, index, registry, store, gc_lease, settings.keep, buckets.jobs.identity)
        host.beside(self.retention.run)
        planner = Planner(self._engine, self._results, index, registry, client.jetstream(), self._stored)
        jobs = JobServicer(self._engine, self._results, index, registry, follower, diagnoses, admission, planner)
        boards = BoardServicer(client, registry, buckets)
        host.add(job_pb2_grpc.add_JobServiceServicer_to_server, jobs, "boardlift.v1.JobService")
        host.add(job_pb2_grpc.add_BoardServiceServicer_to_server, boards, "boardlift.v1.BoardService")
        host.add(artifact_pb2_grpc.add_ArtifactServiceServicer_to_server, ArtifactServicer(store), ARTIFACT_SERVICE)
        host.add(toolchain_pb2_grpc.add_ServerServiceServicer_to_server, _Info(self), "boardlift.v1.ServerService")
        host.on_stop(self.stop)

    async def start(self) -> None:
        """Take outcomes, timers and tasks."""
        await self._hub.start()
        slots = Slots(_OUTCOMES_AT_ONCE)
        for stream, name, handler in (
            (RESULT_STREAM, OUTCOME_CONSUMER, self._engine.on_outcome),
            (TASK_STREAM, TIMER_CONSUMER, self._engine.on_timer),
        ):
            consume = Consume(self._client, stream, name, handler, slots=slots, pace=self._pace)
            self._running.append(await consume.start())
        reports = ReportRunner(self._engine, self._results)
        await self._dispatch(reports, "orchestrator", _REPORTS_AT_ONCE)
        own = self._settings.own
        for name, address in (("transform", own.transform), ("compiler", own.compiler)):
            if address:
                task = asyncio.create_task(self._dial(name, address), name=f"dial {name}")
                task.add_done_callback(_leave_when_broken)
                self._dialling.append(task)
        await self._sweeper.start()
        await self._boards.start()

    async def stop(self) -> None:
        """Give everything back to the queue and leave."""
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        await self._sweeper.stop()
        await self._boards.stop()
        await asyncio.gather(*(item.stop() for item in (*self._dispatchers, *self._running)))
        await self._hub.stop()
        for channel in self._channels:
            await channel.close()
        await disconnect(self._client)

    @property
    def busy_slots(self) -> int:
        """Stages dispatched from here now."""
        return self._boards.busy_slots + sum(item.busy_slots for item in self._dispatchers)

    def _dial_parts(self, registry: Registry) -> DialParts:
        own, channel = self._settings.own, self._settings.channel
        rules = DialRules(read_networks(own.dial_networks), channel.tls_ca is not None, self._settings.server.insecure)
        return DialParts(
            client=self._client,
            store=self.store,
            registry=registry,
            rules=rules,
            channel=channel,
            tokens=own.dial_tokens,
            owner=self._worker,
            pace=self._pace,
            life_s=max(3, round(own.ack_wait.total_seconds())),
            patience_s=own.dial_patience.total_seconds(),
        )

    async def _dial(self, name: str, address: str) -> None:
        """Serve a stage service's queue as soon as the service answers, with the slots that it reports at the time."""
        channel = channels.connect(address, self._settings.channel)
        self._channels.append(channel)
        patience_s = self._settings.own.service_patience.total_seconds()
        runner = GrpcRunner(channel, patience_s=patience_s)
        self._stored[name] = GrpcRunner(channel, patience_s=_PLAN_PATIENCE_S, metadata=(ONLY_STORED,))
        dispatcher: Dispatcher | None = None
        told = False
        while True:
            try:
                slots = await runner.slots()
            except BoardliftError as error:
                if not told:
                    _log.warning("service_not_reachable", server=name, address=address, error=error.message)
                told = True
                await asyncio.sleep(0.5)
                continue
            told = False
            if slots != self._slots.get(name):
                _log.info("service_reached", server=name, address=address, slots=slots)
                self._slots[name] = slots
                if dispatcher is None:
                    dispatcher = await self._dispatch(runner, name, slots)
                dispatcher.resize(slots)
            await asyncio.sleep(_SLOTS_S)

    async def _dispatch(self, runner: Any, consumer: str, slots: int) -> Dispatcher:
        dispatcher = Dispatcher(
            self._client,
            self.store,
            runner,
            worker=self._worker,
            consumers=(consumer,),
            slots=slots,
            pace=self._pace,
        )
        self._dispatchers.append(await dispatcher.start())
        return dispatcher


class _Info(toolchain_pb2_grpc.ServerServiceServicer):
    """Says what this server is."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        """Describe `orchestrator`."""
        self._orchestrator = orchestrator

    async def GetServerInfo(self, request: toolchain_pb2.GetServerInfoRequest, context: Any) -> Any:
        """Describe the server."""
        orchestrator = self._orchestrator
        return toolchain_pb2.GetServerInfoResponse(
            name="orchestrator",
            version=VERSION,
            busy_slots=orchestrator.busy_slots,
            findings=[*orchestrator.retention.findings(), *orchestrator.queue.findings()],
            store=store_info(orchestrator.store),
            server_time=now(),
        )

    async def CancelExecution(self, request: toolchain_pb2.CancelExecutionRequest, context: Any) -> Any:
        """Stop nothing: jobs are cancelled by `CancelJob`."""
        return toolchain_pb2.CancelExecutionResponse(stopped=False)


async def serve(settings: AllSettings) -> None:
    """Run one replica until it is told to stop, or NATS has closed the connection for good."""
    own = settings.own
    leaving = False

    async def on_closed() -> None:
        if not leaving:
            _log.error("nats_closed_for_good")  # an expired credential: a restart reads the new one
            signal.raise_signal(signal.SIGTERM)

    options: dict[str, Any] = {"user_credentials": str(own.nats_credentials)} if own.nats_credentials else {}
    wait_s = own.nats_wait.total_seconds()
    client = await connect(list(own.nats), "boardlift-orchestrator", wait_s=wait_s, closed_cb=on_closed, **options)
    await ensure_streams(client.jetstream(), own.queue_limits())
    host = Host("orchestrator", settings.server)
    orchestrator = Orchestrator(settings, client, host)
    await orchestrator.start()
    health = asyncio.create_task(orchestrator.queue.run(host), name="follow health")
    health.add_done_callback(_leave_when_broken)
    await host.start()
    await wait_for_signal()
    leaving = True
    _log.info("stopping", server="orchestrator")
    health.cancel()
    await host.stop()


def _leave_when_broken(task: asyncio.Task[None]) -> None:
    """End the process when a task that must live has died: whoever started it starts a whole one again."""
    if not task.cancelled() and task.exception() is not None:
        _log.error("task_died", task=task.get_name(), exc_info=task.exception())
        signal.raise_signal(signal.SIGTERM)


def _host_token() -> str:
    name = "".join(c if c.isalnum() else "-" for c in socket.gethostname().lower())
    return name.strip("-")[:12] or "host"
