import hashlib

import grpc
import pytest
import structlog
from boardlift.errors import InvalidInputError, from_rpc_error
from boardlift.v1 import artifact_pb2, artifact_pb2_grpc

from boardlift_servicekit import channels, watched_file
from boardlift_servicekit.artifact_service import SERVICE, ArtifactServicer
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.server import Host, ServerSettings
from boardlift_servicekit.watched_file import WatchedFile


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(watched_file, "LOOK_S", 0.0)


def line(name, token, scope="write"):
    return f"{name} {hashlib.sha256(token.encode()).hexdigest()} {scope}\n"


def replace(path, text):
    partial = path.with_suffix(".new")
    partial.write_text(text)
    partial.replace(path)


async def code_of(channel):
    stub = artifact_pb2_grpc.ArtifactServiceStub(channel)
    try:
        await stub.GetUploadStatus(artifact_pb2.GetUploadStatusRequest(sha256="0" * 64), timeout=5)
    except grpc.aio.AioRpcError as error:
        return from_rpc_error(error).reason
    return "OK"


@pytest.fixture
async def server(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(line("ann", "one"))
    host = Host("test", ServerSettings(tokens_file=tokens))
    store = LocalStore(tmp_path / "store")
    host.add(artifact_pb2_grpc.add_ArtifactServiceServicer_to_server, ArtifactServicer(store), SERVICE)
    port = await host.start()
    own = tmp_path / "own"
    own.write_text("one\n")
    channel = channels.connect(f"127.0.0.1:{port}", ChannelSettings(token_file=own))
    yield tokens, own, channel
    await channel.close()
    await host.stop()


async def test_a_server_takes_new_tokens_and_forgets_revoked_ones_without_a_restart(server):
    tokens, own, channel = server
    assert await code_of(channel) == "OK"
    replace(tokens, line("bob", "two"))
    assert await code_of(channel) == "TOKEN_UNKNOWN"
    replace(tokens, line("bob", "two") + line("ann", "one"))
    assert await code_of(channel) == "OK"
    own.write_text("two\n")
    assert await code_of(channel) == "OK"
    replace(tokens, line("bob", "two", "read"))
    assert await code_of(channel) == "OK"  # a read; the token that the channel sends is the new one


async def test_a_tokens_file_that_is_broken_or_away_changes_nothing(server, tmp_path):
    tokens, _own, channel = server
    replace(tokens, "nonsense\n")
    assert await code_of(channel) == "OK"
    tokens.unlink()
    assert await code_of(channel) == "OK"
    replace(tokens, line("bob", "two"))
    assert await code_of(channel) == "TOKEN_UNKNOWN"


def test_a_file_that_does_not_change_is_read_once(tmp_path):
    path, reads = tmp_path / "x", []
    path.write_text("a")
    watched = WatchedFile(path, lambda p: reads.append(1) or p.read_text())
    assert [watched.value for _ in range(5)] == ["a"] * 5 and len(reads) == 1


def test_each_trouble_is_told_once_until_the_file_is_usable_again(tmp_path):
    path = tmp_path / "x"
    path.write_text("a")
    watched = WatchedFile(path, lambda p: p.read_text())
    with structlog.testing.capture_logs() as logs:
        path.unlink()
        assert [watched.value for _ in range(5)] == ["a"] * 5
        path.write_bytes(b"\xff\xfe")
        assert [watched.value for _ in range(5)] == ["a"] * 5
        path.unlink()
        assert [watched.value for _ in range(5)] == ["a"] * 5
        path.write_text("b")
        assert [watched.value for _ in range(5)] == ["b"] * 5
        path.unlink()
        assert [watched.value for _ in range(5)] == ["b"] * 5
    missing, useless, again = "file_not_readable", "file_not_usable", "file_read_again"
    assert [line["event"] for line in logs] == [missing, useless, missing, again, missing]


def test_a_file_that_is_no_text_is_refused_at_the_start(tmp_path):
    path = tmp_path / "tokens"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match="tokens is not a text") as caught:
        WatchedFile(path, lambda p: p.read_text())
    assert caught.value.reason == "FILE_NOT_TEXT"
