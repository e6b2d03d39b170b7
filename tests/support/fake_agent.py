"""A board's agent in the test's own process: says what it is, runs for as long as it is told, counts its runs."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

from boardlift.v1 import board_agent_pb2, board_agent_pb2_grpc, toolchain_pb2, toolchain_pb2_grpc
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.executions import Executions, as_responses, execution_id, request_key
from boardlift_servicekit.server import Host, ServerSettings


class FakeAgent(board_agent_pb2_grpc.BoardAgentServiceServicer, toolchain_pb2_grpc.ServerServiceServicer):
    """Start it with `start`; `go` lets runs end."""

    def __init__(self, board: str, folder: Path, boot_id: str = "boot-1") -> None:
        self.info = board_agent_pb2.BoardInfo(
            id=board, target="rdk-x5", boot_id=boot_id, mode=board_agent_pb2.BoardInfo.MODE_DIAL
        )
        self.executions: Executions[Any] = Executions(folder / board, LocalStore(folder / "store"), slots=1, grace_s=5)
        self.go = asyncio.Event()
        self.go.set()
        self.runs: list[str] = []
        self.stopped = 0
        self.tokens: list[str] = []

    async def start(self, settings: ServerSettings | None = None) -> FakeAgent:
        self.host = Host("fake-agent", settings or ServerSettings())
        services = (
            (board_agent_pb2_grpc.add_BoardAgentServiceServicer_to_server, "BoardAgentService"),
            (toolchain_pb2_grpc.add_ServerServiceServicer_to_server, "ServerService"),
        )
        for add, name in services:
            self.host.add(add, self, f"boardlift.v1.{name}")
        self.info.address = f"127.0.0.1:{await self.host.start()}"
        return self

    async def stop(self) -> None:
        await self.executions.close()
        await self.host.stop()

    async def DescribeBoard(self, request: Any, context: Any) -> Any:
        self.tokens.append(dict(context.invocation_metadata()).get("authorization", ""))
        return board_agent_pb2.DescribeBoardResponse(board=self.info)

    async def RunModel(self, request: Any, context: Any) -> Any:
        async def work(emit: Any) -> Any:
            self.runs.append(request.job_id)
            emit.log("running")
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.stopped += 1
                raise
            return board_agent_pb2.RunResult(board=self.info)

        key = request_key("board", "1", request)
        events = self.executions.run(key, execution_id(context), board_agent_pb2.RunResult, work)
        async for answer in as_responses(board_agent_pb2.RunModelResponse, events):
            yield answer

    async def CancelExecution(self, request: Any, context: Any) -> Any:
        stopped = await self.executions.cancel(request.execution_id)
        return toolchain_pb2.CancelExecutionResponse(stopped=stopped)


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate that holds for `name` only, signed by the lab's CA `ca.crt` in the folder, and its key."""
    authority = ["-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key")]
    if not (folder / "ca.crt").exists():
        _openssl(folder, "ca", "/CN=lab", ["-addext", "basicConstraints=critical,CA:TRUE"])
    use = ["-addext", "basicConstraints=CA:FALSE", "-addext", f"subjectAltName=DNS:{name}"]
    _openssl(folder, name, f"/CN={name}", [*authority, *use])
    return folder / f"{name}.crt", folder / f"{name}.key"


def _openssl(folder: Path, name: str, subject: str, more: list[str]) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key"]
    words = ["openssl", "req", "-x509", *key, "-subj", subject, "-days", "2", "-out", f"{name}.crt", *more]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
