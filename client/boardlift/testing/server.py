"""The fake server: all services on one port, with faults on demand."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import grpc

from boardlift.testing.artifacts import ArtifactServicer
from boardlift.testing.compiler import CompilerServicer
from boardlift.testing.explore import ExploreServicer
from boardlift.testing.jobs import JobServicer
from boardlift.testing.scenario import Scenario
from boardlift.testing.stages import BoardServicer, ServerServicer, TransformServicer
from boardlift.v1 import (
    artifact_pb2_grpc,
    compiler_pb2_grpc,
    explore_pb2_grpc,
    job_pb2_grpc,
    toolchain_pb2_grpc,
    transform_pb2_grpc,
)


class FakeServer:
    """A boardlift server in this process; a context manager."""

    def __init__(
        self, scenario: Scenario | None = None, *, token: str = "", tls: tuple[bytes, bytes] | None = None
    ) -> None:
        """Prepare a server.

        Args:
            scenario: What becomes of jobs.
            token: Bearer token that callers must show; empty lets everybody in.
            tls: Private key and certificate in PEM; None serves plain text.
        """
        scenario = scenario or Scenario()
        self.artifacts = ArtifactServicer()
        self.jobs = JobServicer(scenario, self.artifacts)
        self.boards = BoardServicer()
        self.server = ServerServicer()
        self._faults = _Faults(token)
        self._server = grpc.server(ThreadPoolExecutor(max_workers=16), interceptors=[self._faults])
        artifact_pb2_grpc.add_ArtifactServiceServicer_to_server(self.artifacts, self._server)
        job_pb2_grpc.add_JobServiceServicer_to_server(self.jobs, self._server)
        job_pb2_grpc.add_BoardServiceServicer_to_server(self.boards, self._server)
        toolchain_pb2_grpc.add_ServerServiceServicer_to_server(self.server, self._server)
        self.transform = TransformServicer(scenario, self.artifacts)
        transform_pb2_grpc.add_TransformServiceServicer_to_server(self.transform, self._server)
        self.compiler = CompilerServicer(scenario, self.artifacts)
        compiler_pb2_grpc.add_CompilerServiceServicer_to_server(self.compiler, self._server)
        self.explore = ExploreServicer()
        explore_pb2_grpc.add_ExploreServiceServicer_to_server(self.explore, self._server)
        if tls:
            credentials = grpc.ssl_server_credentials([tls])
            self.port = self._server.add_secure_port("localhost:0", credentials)
        else:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        self.address = f"localhost:{self.port}" if tls else f"127.0.0.1:{self.port}"

    def __enter__(self) -> FakeServer:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fake in self.jobs.jobs.values():
            fake.stop.set()
        self._server.stop(0).wait()

    @property
    def calls(self) -> dict[str, int]:
        """Method name -> number of calls so far."""
        return dict(self._faults.calls)

    def fail(
        self, method: str, times: int = 1, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE, after: int = 0
    ) -> None:
        """Make the next calls of a method fail, streams after that many messages, short ones after their effect."""
        self._faults.add(method, times, code, after)


class _Faults(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Counts calls, checks the token, and fails calls as told."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._plans: dict[str, list[tuple[grpc.StatusCode, int]]] = defaultdict(list)
        self._lock = threading.Lock()
        self.calls: dict[str, int] = defaultdict(int)

    def add(self, method: str, times: int, code: grpc.StatusCode, after: int) -> None:
        with self._lock:
            self._plans[method] += [(code, after)] * times

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        handler = continuation(details)
        metadata = dict(details.invocation_metadata or ())
        with self._lock:
            self.calls[method] += 1
            plan = self._plans[method].pop(0) if self._plans[method] else None
        if self._token and metadata.get("authorization") != f"Bearer {self._token}":
            plan = (grpc.StatusCode.UNAUTHENTICATED, 0)
        return _broken(handler, *plan) if plan and handler else handler


def _broken(handler: Any, code: grpc.StatusCode, after: int) -> Any:
    """Return a handler that ends with a status, a streamed answer after some messages, a streamed request likewise.

    A short call with `after` has its effect first: only its answer is lost.
    """

    def fail(context: Any) -> Any:
        context.abort(code, "a fault on demand")

    def unary(request: Any, context: Any) -> Any:
        if after:
            handler.unary_unary(request, context)
        fail(context)

    def streamed_answer(request: Any, context: Any) -> Any:
        for position, message in enumerate(handler.unary_stream(request, context)):
            if position >= after:
                fail(context)
            yield message
        fail(context)

    def streamed_request(requests: Any, context: Any) -> Any:
        def some() -> Any:
            for position, request in enumerate(requests):
                if position >= after:
                    fail(context)
                yield request

        return handler.stream_unary(some(), context)

    kinds = (
        (handler.unary_stream, grpc.unary_stream_rpc_method_handler, streamed_answer),
        (handler.stream_unary, grpc.stream_unary_rpc_method_handler, streamed_request),
    )
    for behaviour, make, broken in kinds:
        if behaviour:
            return make(broken, handler.request_deserializer, handler.response_serializer)
    return grpc.unary_unary_rpc_method_handler(unary, handler.request_deserializer, handler.response_serializer)
