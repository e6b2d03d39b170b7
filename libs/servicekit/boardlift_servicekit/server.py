"""Start and stop a gRPC server the same way everywhere: health, reflection, keepalive, TLS, tokens, graceful stop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import structlog
from boardlift.errors import PreconditionError
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from boardlift_servicekit.access import TokenTable
from boardlift_servicekit.interceptors import CallInterceptor
from boardlift_servicekit.loopback import is_loopback
from boardlift_servicekit.settings import from_environment
from boardlift_servicekit.watched_file import WatchedFile

_LOG = structlog.get_logger()
_CANCEL_S = 3.0
_OPTIONS = [
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.so_reuseport", 0),
]


@dataclass(frozen=True)
class ServerSettings:
    """How a server listens."""

    listen: str = "127.0.0.1:0"
    """`host:port`; port 0 takes a free one. Unix sockets as `unix:path`."""
    tls_cert: Path | None = None
    """Server certificate in PEM; set means TLS."""
    tls_key: Path | None = None
    """Key of the certificate in PEM."""
    tls_client_ca: Path | None = None
    """CA of client certificates in PEM; set means that clients must show one."""
    tokens_file: Path | None = None
    """Tokens that may call, see `access.py`; read again when it changes. None lets everybody in, on loopback only."""
    insecure: bool = False
    """Listen beyond loopback without TLS and tokens, for a network that is closed by other means."""
    stop_grace: timedelta = timedelta(seconds=10)
    """Time that running calls get when the server stops."""
    port_file: Path | None = None
    """File that receives the port once the server listens."""

    @classmethod
    def read(cls, default_port: int) -> ServerSettings:
        """Read them from `BOARDLIFT_*`; without BOARDLIFT_LISTEN the server takes its own port on loopback.

        The clients look there when they are told nothing either (`boardlift.connection`).

        Raises:
            InvalidInputError: SETTING_INVALID, see `settings.from_environment`.
        """
        settings = from_environment(cls)
        # An address that is set is kept as it is: port 0 asks for any free one.
        return settings if os.environ.get("BOARDLIFT_LISTEN") else replace(settings, listen=f"127.0.0.1:{default_port}")


class Host:
    """A gRPC server with its services, health and reflection."""

    def __init__(self, name: str, settings: ServerSettings) -> None:
        """Prepare a server called `name`.

        Raises:
            PreconditionError: INSECURE_LISTEN when it would listen beyond loopback unprotected.
        """
        _check_exposure(settings)
        self._name = name
        self._settings = settings
        tokens = WatchedFile(settings.tokens_file, TokenTable.load) if settings.tokens_file else None
        self._server = grpc.aio.server(interceptors=[CallInterceptor(name, tokens)], options=_OPTIONS)
        self._health = health_aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._services: list[str] = []
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._to_run: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._beside: list[asyncio.Task[None]] = []
        self.port = 0

    def add(self, register: Callable[[Any, Any], None], servicer: Any, full_name: str) -> None:
        """Add a servicer by its generated `add_XxxServicer_to_server` function and full name `boardlift.v1.Xxx`."""
        register(servicer, self._server)
        self._services.append(full_name)

    def on_stop(self, close: Callable[[], Awaitable[None]]) -> None:
        """Run `close` after the server has stopped; the last added runs first."""
        self._closers.append(close)

    def beside(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have a coroutine run as a task of its own from when the server serves until it stops."""
        self._to_run.append(run)

    async def start(self) -> int:
        """Listen and serve; returns the port."""
        reflection.enable_server_reflection(
            [*self._services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME],
            self._server,
        )
        self.port = self._bind()
        await self._server.start()
        for service in ("", *self._services):
            await self.set_serving(service, True)
        if self._settings.port_file:
            partial = self._settings.port_file.with_suffix(".tmp")
            partial.write_text(str(self.port))
            partial.replace(self._settings.port_file)
        for run in self._to_run:
            self._beside.append(asyncio.create_task(run()))
            self._beside[-1].add_done_callback(_tell_death)
        _LOG.info("listening", server=self._name, address=self._settings.listen, port=self.port)
        return self.port

    async def set_serving(self, service: str, serving: bool) -> None:
        """Say by gRPC health whether a service can do its work; "" is the whole server."""
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        await self._health.set(service, status)

    async def stop(self) -> None:
        """Answer NOT_SERVING, let running calls end within the grace, then close everything."""
        left = set(self._beside)
        while left:
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=_CANCEL_S)  # again: Python 3.11's wait_for can swallow a cancel
        await self._health.enter_graceful_shutdown()
        await self._server.stop(self._settings.stop_grace.total_seconds())
        for close in reversed(self._closers):
            await close()

    async def run(self) -> None:
        """Start, wait for SIGTERM or SIGINT, stop."""
        await self.start()
        await wait_for_signal()
        _LOG.info("stopping", server=self._name)
        await self.stop()

    def _bind(self) -> int:
        settings = self._settings
        if settings.tls_cert and settings.tls_key:
            client_ca = settings.tls_client_ca.read_bytes() if settings.tls_client_ca else None
            credentials = grpc.ssl_server_credentials(
                [(settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())],
                root_certificates=client_ca,
                require_client_auth=client_ca is not None,
            )
            return int(self._server.add_secure_port(settings.listen, credentials))
        try:
            return int(self._server.add_insecure_port(settings.listen))
        except RuntimeError as error:
            raise PreconditionError(
                f"{self._name} can't listen on {settings.listen}.",
                reason="ADDRESS_IN_USE",
                remedy="Stop what listens there, or set BOARDLIFT_LISTEN to another address.",
                metadata={"address": settings.listen},
            ) from error


def _tell_death(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _LOG.error("a task beside the server has died", exc_info=task.exception())


async def wait_for_signal(signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> None:
    """Return when one of the signals comes."""
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    for number in signals:
        loop.add_signal_handler(number, came.set)
    await came.wait()
    for number in signals:
        loop.remove_signal_handler(number)


def _check_exposure(settings: ServerSettings) -> None:
    protected = settings.tls_cert is not None and (settings.tokens_file or settings.tls_client_ca)
    if protected or settings.insecure or is_loopback(settings.listen):
        return
    raise PreconditionError(
        f"Refusing to listen on {settings.listen} without TLS and tokens.",
        reason="INSECURE_LISTEN",
        remedy="Set BOARDLIFT_TLS_CERT, _TLS_KEY and _TOKENS_FILE, or BOARDLIFT_INSECURE=1 on a closed network.",
        metadata={"listen": settings.listen},
    )
