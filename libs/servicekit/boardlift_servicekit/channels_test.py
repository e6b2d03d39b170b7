import grpc
import pytest
from boardlift.errors import InvalidInputError
from boardlift.v1 import toolchain_pb2, toolchain_pb2_grpc

from boardlift_servicekit.channels import ChannelSettings, connect


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text("sesame\n")
    return path


@pytest.mark.parametrize("address", ["192.0.2.1:7400", "orchestrator:7400", "ipv4:192.0.2.1:7403", "dns:///x:1"])
async def test_a_token_does_not_leave_the_machine_unencrypted(token, address):
    with pytest.raises(InvalidInputError) as caught:
        connect(address, ChannelSettings(token_file=token))
    assert caught.value.reason == "PLAINTEXT_TOKEN" and address in caught.value.message and caught.value.remedy
    await connect(address).close()  # without a token there is nothing to lose
    await connect(address, ChannelSettings(token_file=token, insecure=True)).close()


async def test_a_token_goes_to_this_machine_without_tls(token):
    seen = []

    class Server(toolchain_pb2_grpc.ServerServiceServicer):
        async def GetServerInfo(self, request, context):
            seen.append(dict(context.invocation_metadata())["authorization"])
            return toolchain_pb2.GetServerInfoResponse()

    server = grpc.aio.server()
    toolchain_pb2_grpc.add_ServerServiceServicer_to_server(Server(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    for address in (f"127.0.0.1:{port}", f"ipv4:127.0.0.1:{port}"):
        async with connect(address, ChannelSettings(token_file=token)) as channel:
            await toolchain_pb2_grpc.ServerServiceStub(channel).GetServerInfo(toolchain_pb2.GetServerInfoRequest())
    assert seen == ["Bearer sesame"] * 2
    await server.stop(None)
