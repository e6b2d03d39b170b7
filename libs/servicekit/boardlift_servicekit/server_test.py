import asyncio
import hashlib

import grpc
import pytest
from boardlift.errors import (
    InternalError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    from_rpc_error,
)
from boardlift.v1 import toolchain_pb2 as pb
from boardlift.v1 import toolchain_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from boardlift_servicekit import server
from boardlift_servicekit.channels import ChannelSettings, connect
from boardlift_servicekit.server import Host, ServerSettings


class Servicer(toolchain_pb2_grpc.ServerServiceServicer):
    async def GetServerInfo(self, request, context):
        return pb.GetServerInfoResponse(name="test")

    async def CancelExecution(self, request, context):
        raise ValueError("a secret detail")


async def started(settings):
    host = Host("test", settings)
    host.add(toolchain_pb2_grpc.add_ServerServiceServicer_to_server, Servicer(), "boardlift.v1.ServerService")
    await host.start()
    return host


async def error_of(call):
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return from_rpc_error(caught.value)


async def test_health_and_call(tmp_path):
    host = await started(ServerSettings(port_file=tmp_path / "port"))
    assert (tmp_path / "port").read_text() == str(host.port)
    async with connect(f"127.0.0.1:{host.port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        ok = await health.Check(health_pb2.HealthCheckRequest(service="boardlift.v1.ServerService"))
        assert ok.status == health_pb2.HealthCheckResponse.SERVING
        stub = toolchain_pb2_grpc.ServerServiceStub(channel)
        assert (await stub.GetServerInfo(pb.GetServerInfoRequest())).name == "test"
    await host.stop()


async def test_an_unexpected_exception_is_internal_and_says_nothing_of_itself():
    host = await started(ServerSettings())
    async with connect(f"127.0.0.1:{host.port}") as channel:
        error = await error_of(
            toolchain_pb2_grpc.ServerServiceStub(channel).CancelExecution(pb.CancelExecutionRequest())
        )
    assert isinstance(error, InternalError)
    assert "secret" not in str(error)
    assert error.metadata["exception"] == "ValueError"
    await host.stop()


async def test_tokens_and_scopes(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"# people\neve {hashlib.sha256(b'look').hexdigest()} read\n")
    host = await started(ServerSettings(tokens_file=tokens))
    address = f"127.0.0.1:{host.port}"
    (tmp_path / "good").write_text("look\n")
    (tmp_path / "bad").write_text("guess\n")
    async with connect(address) as channel:
        stub = toolchain_pb2_grpc.ServerServiceStub(channel)
        assert isinstance(await error_of(stub.GetServerInfo(pb.GetServerInfoRequest())), UnauthenticatedError)
    async with connect(address, ChannelSettings(token_file=tmp_path / "bad")) as channel:
        stub = toolchain_pb2_grpc.ServerServiceStub(channel)
        assert isinstance(await error_of(stub.GetServerInfo(pb.GetServerInfoRequest())), UnauthenticatedError)
    async with connect(address, ChannelSettings(token_file=tmp_path / "good")) as channel:
        stub = toolchain_pb2_grpc.ServerServiceStub(channel)
        assert (await stub.GetServerInfo(pb.GetServerInfoRequest())).name == "test"
        assert isinstance(await error_of(stub.CancelExecution(pb.CancelExecutionRequest())), PermissionDeniedError)
    await host.stop()


async def test_refuses_to_listen_unprotected_beyond_loopback():
    with pytest.raises(PreconditionError) as caught:
        Host("test", ServerSettings(listen="0.0.0.0:0"))
    assert caught.value.reason == "INSECURE_LISTEN"
    Host("test", ServerSettings(listen="0.0.0.0:0", insecure=True))


@pytest.mark.parametrize(
    ("listen", "expected"),
    [(None, "127.0.0.1:7499"), ("", "127.0.0.1:7499"), ("127.0.0.1:0", "127.0.0.1:0"), ("unix:/x", "unix:/x")],
)
def test_an_address_that_is_set_is_kept(monkeypatch, listen, expected):
    """Two servers told to take a free port must never meet on a fixed one."""
    if listen is None:
        monkeypatch.delenv("BOARDLIFT_LISTEN", raising=False)
    else:
        monkeypatch.setenv("BOARDLIFT_LISTEN", listen)
    assert ServerSettings.read(7499).listen == expected


async def test_a_task_beside_the_server_that_loses_a_cancel_does_not_keep_it_from_stopping(monkeypatch):
    monkeypatch.setattr(server, "_CANCEL_S", 0.1)
    host, poked, rounds = Host("test", ServerSettings()), asyncio.Event(), []

    async def look():
        while True:
            await asyncio.wait_for(poked.wait(), 60)
            poked.clear()
            rounds.append(1)

    host.beside(look)
    await host.start()
    await asyncio.sleep(0.05)
    poked.set()
    await asyncio.sleep(0)  # Python 3.11: done, but not told yet, wait_for takes the cancel that comes now for its own
    await asyncio.wait_for(host.stop(), 10)
    assert all(task.done() for task in host._beside)
