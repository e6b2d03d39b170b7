"""Wiring: the gRPC services of the agent, registration, and the queue."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from typing import Any

import structlog
from boardlift.errors import InvalidInputError, UnavailableError
from boardlift.v1 import artifact_pb2_grpc, board_agent_pb2, board_agent_pb2_grpc, toolchain_pb2, toolchain_pb2_grpc
from boardlift_servicekit import messaging
from boardlift_servicekit.artifact_service import SERVICE as ARTIFACT_SERVICE
from boardlift_servicekit.artifact_service import ArtifactServicer
from boardlift_servicekit.artifacts import ArtifactStore, LocalStore, RemoteStore
from boardlift_servicekit.channels import connect
from boardlift_servicekit.clock import now
from boardlift_servicekit.dispatcher import Dispatcher
from boardlift_servicekit.executions import Executions, as_responses, execution_id
from boardlift_servicekit.keeper import Keeper
from boardlift_servicekit.names import check_token
from boardlift_servicekit.server import Host, wait_for_signal

from boardlift_board_agent import __version__
from boardlift_board_agent.bench import Limits, Parts
from boardlift_board_agent.board_tool import BoardTool, passed_variables
from boardlift_board_agent.convert import fact_to_finding
from boardlift_board_agent.dial_mode import DIAL, PULL, check_mode, dial_address
from boardlift_board_agent.find_sampler import find_sampler
from boardlift_board_agent.fleet import Fleet, FleetPlan
from boardlift_board_agent.health import HealthLimits
from boardlift_board_agent.hold_governor import GovernorKeeper
from boardlift_board_agent.identity import Identity
from boardlift_board_agent.registration import Registration
from boardlift_board_agent.runner import Agent, QueueRunner
from boardlift_board_agent.settings import AllSettings, Settings
from boardlift_board_agent.watch_board import BoardWatch

SERVICE = "boardlift.v1.BoardAgentService"
SERVER_SERVICE = "boardlift.v1.ServerService"
_LOG = structlog.get_logger(__name__)


class BoardAgentServicer(board_agent_pb2_grpc.BoardAgentServiceServicer):
    """Serves one board."""

    def __init__(self, agent: Agent) -> None:
        """Serve `agent`."""
        self._agent = agent

    async def DescribeBoard(self, request: board_agent_pb2.DescribeBoardRequest, context: Any) -> Any:
        """What the board is and how it is."""
        return board_agent_pb2.DescribeBoardResponse(board=self._agent.info(), state=await self._agent.state())

    async def RunModel(self, request: board_agent_pb2.RunModelRequest, context: Any) -> AsyncIterator[Any]:
        """Run a compiled model; equal requests share one run."""
        events = self._agent.run(request, execution_id(context))
        async for response in as_responses(board_agent_pb2.RunModelResponse, events):
            yield response

    async def CompareModels(self, request: board_agent_pb2.CompareModelsRequest, context: Any) -> AsyncIterator[Any]:
        """Measure two models in turns."""
        events = self._agent.compare(request, execution_id(context))
        async for response in as_responses(board_agent_pb2.CompareModelsResponse, events):
            yield response

    async def DiagnoseModel(self, request: board_agent_pb2.DiagnoseModelRequest, context: Any) -> AsyncIterator[Any]:
        """Find out why outputs are wrong."""
        events = self._agent.diagnose(request, execution_id(context))
        async for response in as_responses(board_agent_pb2.DiagnoseModelResponse, events):
            yield response


class ServerServicer(toolchain_pb2_grpc.ServerServiceServicer):
    """Says what this server is, and stops runs."""

    def __init__(self, agent: Agent) -> None:
        """Speak for `agent`."""
        self._agent = agent

    async def GetServerInfo(self, request: toolchain_pb2.GetServerInfoRequest, context: Any) -> Any:
        """Describe the server."""
        agent = self._agent
        version = agent.watch.version
        tool = toolchain_pb2.ToolchainInfo(
            name="hrt_model_exec",
            version=version.dnn if version else "",
            parts={"hbrt": version.hbrt} if version and version.hbrt else {},
            simulated=agent.watch.simulated,
        )
        snapshot = await agent.watch.look()
        return toolchain_pb2.GetServerInfoResponse(
            name="board-agent",
            version=__version__,
            tools=[tool],
            slots=1,
            busy_slots=agent.executions.busy,
            findings=[fact_to_finding(fact) for fact in snapshot.facts],
            server_time=now(),
        )

    async def CancelExecution(self, request: toolchain_pb2.CancelExecutionRequest, context: Any) -> Any:
        """Stop a run at once."""
        stopped = await self._agent.executions.cancel(request.execution_id)
        return toolchain_pb2.CancelExecutionResponse(stopped=stopped)


async def serve(settings: AllSettings) -> None:
    """Run the agent until SIGTERM or SIGINT."""
    own = settings.own
    check_mode(settings)
    identity = Identity(own.state_dir)
    channel = connect(own.orchestrator, settings.channel) if own.orchestrator else None
    apart = own.artifacts and own.artifacts != own.orchestrator
    artifacts = connect(own.artifacts, settings.channel) if apart else channel
    local = LocalStore(own.state_dir / "artifacts", own.max_artifact_bytes)
    store: ArtifactStore = RemoteStore(artifacts, local) if artifacts is not None else local
    agent = await make_agent(own, store, identity.boot_id)
    host = Host("board-agent", settings.server)
    host.add(board_agent_pb2_grpc.add_BoardAgentServiceServicer_to_server, BoardAgentServicer(agent), SERVICE)
    host.add(toolchain_pb2_grpc.add_ServerServiceServicer_to_server, ServerServicer(agent), SERVER_SERVICE)
    if artifacts is None:
        host.add(artifact_pb2_grpc.add_ArtifactServiceServicer_to_server, ArtifactServicer(local), ARTIFACT_SERVICE)
    host.on_stop(agent.executions.close)
    Keeper(local, [own.state_dir / "results"], settings.keep, executions=[agent.executions]).attach(host)
    port = await host.start()
    if own.mode == DIAL:
        agent.dial_address = dial_address(settings, port)
    queue = asyncio.create_task(_work_for_orchestrator(own, agent, store, channel)) if channel is not None else None
    stop = asyncio.create_task(wait_for_signal())
    try:
        await asyncio.wait({stop, *([queue] if queue else [])}, return_when=asyncio.FIRST_COMPLETED)
        if queue is not None and queue.done():
            queue.result()
    finally:
        stop.cancel()
        if queue is not None:
            queue.cancel()
            await asyncio.gather(queue, return_exceptions=True)
        await host.stop()
        for opened in {id(c): c for c in (channel, artifacts) if c is not None}.values():
            await opened.close()
        identity.release()


async def serve_fleet(settings: AllSettings, boards: int) -> None:
    """Run light boards until SIGTERM or SIGINT.

    Args:
        settings: orchestrator and NATS must be set; `board_id` is the prefix.
        boards: how many.

    Raises:
        InvalidInputError: FLEET_SETTINGS_MISSING.
    """
    own = settings.own
    if not own.orchestrator or not own.nats:
        raise InvalidInputError(
            "A fleet needs an orchestrator and NATS.",
            reason="FLEET_SETTINGS_MISSING",
            remedy="Set BOARDLIFT_ORCHESTRATOR and BOARDLIFT_NATS.",
        )
    channel = connect(own.artifacts or own.orchestrator, settings.channel)
    store = RemoteStore(channel, LocalStore(own.state_dir / "artifacts", own.max_artifact_bytes))
    plan = FleetPlan(boards, own.nats, own.orchestrator, prefix=own.board_id, target=own.target)
    fleet = Fleet(plan, store, settings.channel)
    await fleet.start()
    try:
        await wait_for_signal()
    finally:
        await fleet.stop()
        await channel.close()


async def make_agent(own: Settings, store: ArtifactStore, boot_id: str) -> Agent:
    """Build the agent from its settings and look at the board for the first time.

    Args:
        own: settings.
        store: artifacts.
        boot_id: this start.

    Raises:
        InvalidInputError: a bad board id, target or label.
    """
    check_token("board id", own.board_id)
    check_token("target", own.target)
    runs = own.state_dir.absolute() / "runs"
    shutil.rmtree(runs, ignore_errors=True)  # what a killed agent left
    runs.mkdir(parents=True, mode=0o700)
    tool = BoardTool(
        own.hrt_model_exec,
        own.tool_path,
        find_sampler(own.sampler, own.hrt_model_exec, own.tool_path, own.board_root),
        passed_variables(dict(os.environ)),
    )
    limits = HealthLimits(hot_c=own.hot_c, disk_free_bytes=own.min_free_disk_bytes, governor=own.governor)
    keeper = GovernorKeeper(own.board_root, own.state_dir.absolute() / "governor.json", own.allow_governor)
    keeper.restore()  # a killed agent may have left one set
    watch = BoardWatch(own.board_root, runs, tool, limits, own.failing_retry.total_seconds(), keeper)
    await watch.start()
    more = (("percentiles", bool(tool.sampler)), ("governor", keeper.permitted))
    capabilities = ("model_info", "infer", "perf", *(name for name, able in more if able))
    return Agent(
        board_id=own.board_id,
        target=own.target,
        labels=read_labels(own.labels),
        boot_id=boot_id,
        capabilities=capabilities,
        parts=Parts(
            store, tool, watch, runs, Limits(own.infer_timeout.total_seconds(), own.perf_timeout.total_seconds())
        ),
        executions=Executions(own.state_dir / "results", store, slots=1, grace_s=own.cancel_grace.total_seconds()),
    )


def read_labels(pairs: tuple[str, ...]) -> dict[str, str]:
    """`name=value` pairs -> labels.

    Raises:
        InvalidInputError: LABEL_INVALID.
    """
    labels = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name or len(pair) > 120:
            raise InvalidInputError(
                f"{pair!r} is not a label.", reason="LABEL_INVALID", remedy="Write labels as name=value."
            )
        labels[name] = value
    return labels


async def _work_for_orchestrator(own: Settings, agent: Agent, store: ArtifactStore, channel: Any) -> None:
    """Register and pull until cancelled.

    Raises:
        UnavailableError: NATS_CLOSED: without it the board would go on to say that it takes work, and take none.
    """
    registration = Registration(agent, channel)
    registration.start()
    client = dispatcher = None
    closed = asyncio.Event()

    async def on_closed() -> None:
        closed.set()

    try:
        if own.nats and own.mode == PULL:
            options: dict[str, Any] = {"inbox_prefix": f"_INBOX_{own.board_id}", "closed_cb": on_closed}
            if own.nats_credentials:
                options["user_credentials"] = str(own.nats_credentials)
            client = await messaging.connect(list(own.nats), f"board-{own.board_id}", **options)
            await registration.registered.wait()  # its consumers exist from then on
            names = (messaging.board_consumer(own.board_id), messaging.pool_consumer(own.target))
            dispatcher = Dispatcher(client, store, QueueRunner(agent), worker=own.board_id, consumers=names, slots=1)
            await client.subscribe(f"ctl.board.{own.board_id}", cb=registration.on_lease)
            await registration.hold(dispatcher)
            await dispatcher.start()
            _LOG.info("pulling", consumers=names)
        await closed.wait()
        raise UnavailableError(
            "NATS has closed the connection for good.",
            reason="NATS_CLOSED",
            remedy="Look at the nats-server's log; renew BOARDLIFT_NATS_CREDENTIALS if they have expired.",
        )
    finally:
        if dispatcher is not None:
            await dispatcher.stop()
        if client is None or client.is_closed:
            await registration.leave()
        else:
            await registration.stop(client)
        if client is not None:
            await messaging.disconnect(client)
