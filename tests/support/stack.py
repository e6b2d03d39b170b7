"""Processes for tests: a real nats-server, orchestrators, and quick stand-ins for the stage services (test only)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATS_SERVER = Path(sys.executable).parent / "nats-server"
NATS_CONFIG = ROOT / "deploy/nats/nats.conf"
FAKES = Path(__file__).with_name("fake_services.py")


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Process:
    """A program that can be killed and started again."""

    argv: list[str]
    environment: dict[str, str]
    log: Path
    running: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self) -> None:
        self.starts += 1
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(
                self.argv, env={**os.environ, **self.environment}, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.running is not None and self.running.poll() is None:
            self.running.send_signal(number)
            self.running.wait(timeout=20)
        self.running = None


@dataclass
class Stack:
    """Everything that a job needs, as processes below one folder."""

    folder: Path
    orchestrators: int = 1
    workers: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    fakes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ports = [free_port() for _ in range(2 + self.orchestrators + self.workers)]
        self.nats_port, self.monitor_port = self.ports[:2]
        self.orchestrator_ports = self.ports[2 : 2 + self.orchestrators]
        self.worker_ports = self.ports[2 + self.orchestrators :]
        self.nats_url = f"nats://127.0.0.1:{self.nats_port}"
        self.nats = Process([str(NATS_SERVER), "-c", str(NATS_CONFIG)], self._nats_settings(), self.folder / "nats.log")
        self.services = [
            Process([sys.executable, str(FAKES)], self._fake_settings(port, index), self.folder / f"fakes{index}.log")
            for index, port in enumerate(self.worker_ports)
        ]
        self.servers = [
            Process(
                [sys.executable, "-m", "boardlift_orchestrator"],
                self._orchestrator_settings(port, self.worker_ports[index % self.workers]),
                self.folder / f"orchestrator{index}.log",
            )
            for index, port in enumerate(self.orchestrator_ports)
        ]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.orchestrator_ports[0]}"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.txt"

    def start(self) -> None:
        self.nats.start()
        self.wait_for_nats()
        for process in (*self.servers, *self.services):
            process.start()
        for port in (*self.orchestrator_ports, *self.worker_ports):
            wait_for_port(port)

    def stop(self) -> None:
        for process in (*self.services, *self.servers, self.nats):
            process.kill()

    def wait_for_nats(self) -> None:
        url = f"http://127.0.0.1:{self.monitor_port}/healthz"
        for _ in range(200):
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1) as answer:
                if answer.status == 200:
                    return
            time.sleep(0.05)
        raise TimeoutError(self.nats.log.read_text())

    def _nats_settings(self) -> dict[str, str]:
        return {
            "BOARDLIFT_NATS_NAME": "n1",
            "BOARDLIFT_NATS_LISTEN": f"127.0.0.1:{self.nats_port}",
            "BOARDLIFT_NATS_MONITOR": f"127.0.0.1:{self.monitor_port}",
            "BOARDLIFT_NATS_STORE": str(self.folder / "jetstream"),
        }

    def _orchestrator_settings(self, port: int, services: int) -> dict[str, str]:
        return {
            "BOARDLIFT_LISTEN": f"127.0.0.1:{port}",
            "BOARDLIFT_NATS": self.nats_url,
            "BOARDLIFT_STATE_DIR": str(self.folder / "data"),
            "BOARDLIFT_TRANSFORM": f"127.0.0.1:{services}",
            "BOARDLIFT_COMPILER": f"127.0.0.1:{services}",
            "BOARDLIFT_ACK_WAIT": "3",
            "BOARDLIFT_HEARTBEAT": "1",
            "BOARDLIFT_SWEEP_EVERY": "3",
            "BOARDLIFT_STOP_GRACE": "1",
            **self.settings,
        }

    def _fake_settings(self, port: int, index: int) -> dict[str, str]:
        return {
            "FAKE_PORT": str(port),
            "FAKE_NATS_URL": self.nats_url,
            "FAKE_ORCHESTRATOR": self.address,
            "FAKE_FOLDER": str(self.folder / "fakes"),
            "FAKE_LEDGER": str(self.ledger),
            "FAKE_BOARD": f"fake-{index}",
            **self.fakes,
        }


def wait_for_port(port: int) -> None:
    """Return when something listens on the port."""
    for _ in range(400):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


@contextlib.contextmanager
def running(stack: Stack) -> Iterator[Stack]:
    """Start a stack and stop it whatever happens."""
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
