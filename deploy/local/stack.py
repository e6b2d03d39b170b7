"""Start NATS, the four services and one simulated board as processes on this machine; stop them all at the end.

`make up` runs it until Ctrl-C; `demo.py` runs it around one job. State lies in `.boardlift/` in the checkout: `nats`,
one folder per service, `logs/<name>.log`, `endpoints.json`. The same entry points run in containers and on boards.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".boardlift"
BIN = Path(sys.executable).parent
FIRST_PORT = 7400
OFFSETS = {"nats": 22, "orchestrator": 0, "transform": 1, "compiler": 2, "board-agent": 3}
DEFAULT_PORTS = {name: FIRST_PORT + offset for name, offset in OFFSETS.items()}
CLIENT_VARIABLES = {
    "orchestrator": "BOARDLIFT_SERVER",
    "transform": "BOARDLIFT_TRANSFORM",
    "compiler": "BOARDLIFT_COMPILER",
    "board-agent": "BOARDLIFT_AGENT",
}
BOARD_ID = "sim-1"
_WELCOME = "Starting NATS, four services and a simulated board. They run here until Ctrl-C: work in another terminal."


class StackError(Exception):
    """A part did not start; the message names it and its log."""


@dataclass
class Process:
    """One running part."""

    name: str
    """Name of the part and of its log."""
    child: subprocess.Popen[bytes]
    """The process, leader of its own group."""
    address: str
    """Where it listens."""


@dataclass
class Stack:
    """The parts on one machine."""

    state: Path = STATE
    """Folder for data and logs."""
    ports: Mapping[str, int] = field(default_factory=lambda: DEFAULT_PORTS)
    """Port of each part on 127.0.0.1."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables for every part."""
    fresh: bool = False
    """Forget all jobs and stored results first."""
    processes: dict[str, Process] = field(default_factory=dict)
    """Parts that run."""

    def address(self, name: str) -> str:
        """`127.0.0.1:port` of a part."""
        return f"127.0.0.1:{self.ports[name]}"

    def start(self) -> None:
        """Start everything, each part when those it needs are healthy.

        Raises:
            StackError: A port is in use, or a part ended or did not become healthy within 60 s.
        """
        _check_ports(self.ports)
        for name in self.ports if self.fresh else ():
            shutil.rmtree(self.state / name, ignore_errors=True)
        (self.state / "logs").mkdir(parents=True, exist_ok=True)
        self.launch("nats")
        self.launch("orchestrator")
        for name in ("transform", "compiler", "board-agent"):
            self.spawn(name)
        for name in ("transform", "compiler", "board-agent"):
            self._wait_healthy(self.processes[name])
        endpoints = {name: self.address(name) for name in self.ports}
        (self.state / "endpoints.json").write_text(json.dumps(endpoints, indent=1) + "\n")

    def launch(self, name: str) -> None:
        """Start one part and wait until it is healthy."""
        self.spawn(name)
        self._wait_healthy(self.processes[name])

    def spawn(self, name: str) -> None:
        """Start one part without waiting for it."""
        arguments, environment = self._command(name)
        with (self.state / "logs" / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                arguments,
                cwd=self.state,
                env={**_clean_environment(), **environment, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes[name] = Process(name, child, self.address(name))

    def kill(self, name: str) -> None:
        """Kill one part and its group without warning, as a crash would."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.child.pid, signal.SIGKILL)
        process.child.wait()

    def stop(self) -> None:
        """Stop everything, the last started first; nothing is left running."""
        for name in reversed(list(self.processes)):
            child = self.processes.pop(name).child
            child.terminate()
            try:
                child.wait(timeout=15)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)

    def _command(self, name: str) -> tuple[list[str], dict[str, str]]:
        nats = f"nats://{self.address('nats')}"
        shared = {
            "BOARDLIFT_LISTEN": self.address(name),
            "BOARDLIFT_STATE_DIR": str(self.state / name),
            "BOARDLIFT_NATS": nats,
        }
        artifacts = {"BOARDLIFT_ARTIFACTS": self.address("orchestrator")}
        toolchain = {"BOARDLIFT_TOOLCHAIN": str(toolchain_folder())}
        if name == "nats":
            store = self.state / "nats"
            store.mkdir(parents=True, exist_ok=True)
            variables = {
                "BOARDLIFT_NATS_NAME": "local",
                "BOARDLIFT_NATS_LISTEN": self.address("nats"),
                "BOARDLIFT_NATS_MONITOR": "127.0.0.1:-1",
                "BOARDLIFT_NATS_STORE": str(store),
            }
            return [str(BIN / "nats-server"), "-c", str(ROOT / "deploy/nats/nats.conf")], variables
        if name == "orchestrator":
            peers = {"BOARDLIFT_TRANSFORM": self.address("transform"), "BOARDLIFT_COMPILER": self.address("compiler")}
            return _module("boardlift_orchestrator"), {**shared, **peers}
        if name == "transform":
            return _module("boardlift_transform"), {**shared, **artifacts}
        if name == "compiler":
            return _module("boardlift_compiler"), {**shared, **artifacts, **toolchain}
        root = self.state / "board-root"
        subprocess.run([str(BIN / "boardlift-simulated-board"), str(root)], check=True, stdout=subprocess.DEVNULL)
        board = {
            "BOARDLIFT_BOARD_ID": BOARD_ID,
            "BOARDLIFT_BOARD_ROOT": str(root),
            "BOARDLIFT_HRT_MODEL_EXEC": str(BIN / "boardlift-hrt-model-exec"),
            "BOARDLIFT_ORCHESTRATOR": self.address("orchestrator"),
        }
        return _module("boardlift_board_agent"), {**shared, **artifacts, **toolchain, **board}

    def _wait_healthy(self, process: Process, limit_s: float = 60.0) -> None:
        deadline = time.monotonic() + limit_s
        log = self.state / "logs" / f"{process.name}.log"
        while time.monotonic() < deadline:
            if process.child.poll() is not None:
                raise StackError(f"{process.name} ended with code {process.child.returncode}; see {log}")
            if _healthy(process):
                return
            time.sleep(0.1)
        raise StackError(f"{process.name} was not healthy after {limit_s:.0f} s; see {log}")


def toolchain_folder() -> Path:
    """Where the vendor toolchain is or belongs."""
    return Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or STATE / "toolchain")


def free_ports() -> dict[str, int]:
    """One free port per part."""
    with contextlib.ExitStack() as held:
        sockets = {name: held.enter_context(socket.socket()) for name in DEFAULT_PORTS}
        for item in sockets.values():
            item.bind(("127.0.0.1", 0))
        return {name: item.getsockname()[1] for name, item in sockets.items()}


@contextlib.contextmanager
def running(stack: Stack) -> Iterator[Stack]:
    """The stack, started on entry and stopped on exit, also when starting fails or Ctrl-C is pressed.

    Raises:
        StackError: Another stack runs on the same state, a port is in use, or a part did not start.
    """
    stack.state.mkdir(parents=True, exist_ok=True)
    with (stack.state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StackError(f"a stack already runs on {stack.state}; stop it first (Ctrl-C where it runs)") from error
        try:
            stack.start()
            yield stack
        finally:
            stack.stop()


def _check_ports(ports: Mapping[str, int]) -> None:
    busy = []
    for name, port in ports.items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                busy.append(f"{port} ({name})")
    if busy:
        raise StackError(f"in use: port {', '.join(busy)}. Stop what listens there, or take others: make up PORT=7500")


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", name]


def _clean_environment() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _healthy(process: Process) -> bool:
    if process.name == "nats":
        host, _, port = process.address.partition(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=0.5) as link:
            return link.recv(5) == b"INFO "
        return False
    with grpc.insecure_channel(process.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
        except grpc.RpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def main() -> int:
    """Run until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, default=STATE, help="folder for data and logs")
    parser.add_argument("--fresh", action="store_true", help="forget all jobs and stored results first")
    parser.add_argument("--port", type=int, default=FIRST_PORT, help="first port; the others follow")
    arguments = parser.parse_args()
    arguments.state = arguments.state.resolve()  # parts run inside it
    ports = {name: arguments.port + offset for name, offset in OFFSETS.items()}
    stack = Stack(arguments.state, ports, fresh=arguments.fresh)
    print(_WELCOME, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's `make up &` hands it down ignored
    try:
        with running(stack):
            for name in stack.ports:
                print(f"{name:13} {stack.address(name)}")
            print(f"logs          {arguments.state / 'logs'}")
            if arguments.port != FIRST_PORT:
                print("clients       export", *(f"{v}={stack.address(n)}" for n, v in CLIENT_VARIABLES.items()))
            print(f"Ready. In another terminal: {BIN / 'boardlift'} doctor. Ctrl-C here stops everything.", flush=True)
            while all(p.child.poll() is None for p in stack.processes.values()):
                time.sleep(0.5)
            ended = next(p for p in stack.processes.values() if p.child.poll() is not None)
            print(f"{ended.name} ended with code {ended.child.returncode}; stopping.", file=sys.stderr)
            return 3
    except KeyboardInterrupt:
        return 0
    except StackError as error:
        print(f"boardlift: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    raise SystemExit(main())
