import asyncio
import hashlib
import os
from pathlib import Path

import grpc
import pytest
from boardlift.errors import BoardliftError, ExhaustedError, InvalidInputError, UnavailableError, from_rpc_error
from boardlift.v1 import artifact_pb2 as pb
from boardlift.v1 import artifact_pb2_grpc

from boardlift_servicekit import artifact_service, artifacts
from boardlift_servicekit.artifact_service import SERVICE, ArtifactServicer
from boardlift_servicekit.artifacts import LocalStore, RemoteStore, upload_parts
from boardlift_servicekit.server import Host, ServerSettings
from boardlift_servicekit.sweep_store import discard

DATA = bytes(range(256)) * 5000
REF = pb.ArtifactRef(sha256=hashlib.sha256(DATA).hexdigest(), size_bytes=len(DATA), media_type="x")


@pytest.fixture
async def remote(tmp_path):
    store = LocalStore(tmp_path / "server", max_artifact_bytes=2_000_000)
    host = Host("test", ServerSettings())
    host.add(artifact_pb2_grpc.add_ArtifactServiceServicer_to_server, ArtifactServicer(store), SERVICE)
    port = await host.start()
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    yield store, channel
    await channel.close()
    await host.stop()


async def reason_of(call):
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = from_rpc_error(caught.value)
    assert isinstance(error, BoardliftError)
    return error.reason


async def test_round_trip_through_two_caches(remote, tmp_path):
    store, channel = remote
    writer = RemoteStore(channel, LocalStore(tmp_path / "writer"))
    reader = RemoteStore(channel, LocalStore(tmp_path / "reader"))
    ref = await writer.put_bytes(DATA, "application/onnx")
    assert ref.sha256 == hashlib.sha256(DATA).hexdigest()
    assert store.has(ref.sha256)
    assert (await reader.fetch(ref)).read_bytes() == DATA


async def test_upload_resumes_where_it_broke(remote, tmp_path):
    store, channel = remote
    stub = artifact_pb2_grpc.ArtifactServiceStub(channel)
    ref = pb.ArtifactRef(sha256=hashlib.sha256(DATA).hexdigest(), size_bytes=len(DATA))
    (tmp_path / "data").write_bytes(DATA)

    async def half():
        yield pb.UploadArtifactRequest(header=pb.UploadHeader(artifact=ref))
        yield pb.UploadArtifactRequest(chunk=DATA[:1000])

    assert await reason_of(stub.UploadArtifact(half())) == "SIZE_MISMATCH"
    status = await stub.GetUploadStatus(pb.GetUploadStatusRequest(sha256=ref.sha256))
    assert status.committed_size_bytes == 1000
    await stub.UploadArtifact(upload_parts(tmp_path / "data", ref, 1000))
    assert store.path(ref.sha256).read_bytes() == DATA
    assert (await stub.UploadArtifact(upload_parts(tmp_path / "data", ref))).already_stored


async def test_wrong_bytes_are_refused_and_forgotten(remote):
    store, channel = remote
    stub = artifact_pb2_grpc.ArtifactServiceStub(channel)
    ref = pb.ArtifactRef(sha256="0" * 64, size_bytes=3)

    async def parts():
        yield pb.UploadArtifactRequest(header=pb.UploadHeader(artifact=ref))
        yield pb.UploadArtifactRequest(chunk=b"abc")

    assert await reason_of(stub.UploadArtifact(parts())) == "DIGEST_MISMATCH"
    assert not store.partial_path("0" * 64).exists()


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n", "/" * 64])
async def test_a_digest_is_never_a_path(remote, digest):
    stub = artifact_pb2_grpc.ArtifactServiceStub(remote[1])
    assert await reason_of(stub.GetUploadStatus(pb.GetUploadStatusRequest(sha256=digest))) == "DIGEST_INVALID"


async def test_too_large_is_refused_before_any_byte(remote):
    stub = artifact_pb2_grpc.ArtifactServiceStub(remote[1])

    async def parts():
        yield pb.UploadArtifactRequest(
            header=pb.UploadHeader(artifact=pb.ArtifactRef(sha256="a" * 64, size_bytes=10**12))
        )

    assert await reason_of(stub.UploadArtifact(parts())) == "ARTIFACT_TOO_LARGE"


async def test_download_from_an_offset_and_of_unknown_bytes(remote):
    store, channel = remote
    stub = artifact_pb2_grpc.ArtifactServiceStub(channel)
    ref = await store.put_bytes(DATA, "x")
    call = stub.DownloadArtifact(pb.DownloadArtifactRequest(sha256=ref.sha256, read_offset=len(DATA) - 10))
    assert b"".join([a.chunk async for a in call]) == DATA[-10:]
    missing = RemoteStore(channel, LocalStore(store.path("a" * 64).parent.parent / "cache"))
    with pytest.raises(BoardliftError) as caught:
        await missing.fetch(pb.ArtifactRef(sha256="a" * 64))
    assert caught.value.reason == "ARTIFACT_MISSING"


async def test_a_download_that_has_begun_outlives_a_sweep(tmp_path):
    store = LocalStore(tmp_path)
    ref = await store.put_bytes(DATA, "x")
    answers = ArtifactServicer(store).DownloadArtifact(pb.DownloadArtifactRequest(sha256=ref.sha256), None)
    first = await anext(answers)
    assert discard(store, ref.sha256, float("inf"))
    assert first.artifact.size_bytes == len(DATA)
    assert b"".join([answer.chunk async for answer in answers]) == DATA


async def test_size_limit_of_a_local_store(tmp_path):
    store = LocalStore(tmp_path, max_artifact_bytes=10)
    with pytest.raises(InvalidInputError):
        await store.put_bytes(b"x" * 11, "x")
    assert not list((tmp_path / "uploads").iterdir())


async def test_the_same_bytes_sent_twice_at_once_are_stored_once(remote, tmp_path):
    store, channel = remote
    stub = artifact_pb2_grpc.ArtifactServiceStub(channel)
    ref = pb.ArtifactRef(sha256=hashlib.sha256(DATA).hexdigest(), size_bytes=len(DATA))

    async def parts():
        yield pb.UploadArtifactRequest(header=pb.UploadHeader(artifact=ref))
        for start in range(0, len(DATA), 10_000):
            await asyncio.sleep(0)
            yield pb.UploadArtifactRequest(chunk=DATA[start : start + 10_000])

    await asyncio.gather(*(stub.UploadArtifact(parts()) for _ in range(8)))
    assert store.path(ref.sha256).read_bytes() == DATA
    assert not list(store.partial_path(ref.sha256).parent.iterdir())


async def test_transfers_go_on_when_the_server_restarts_in_between(tmp_path):
    store = LocalStore(tmp_path / "server")

    class Flaky(ArtifactServicer):
        """Breaks the first upload and the first download in the middle."""

        broken = 0

        async def UploadArtifact(self, requests, context):
            if Flaky.broken == 0:
                Flaky.broken = 1
                own = self._take_partial((await anext(requests)).header)
                own.write_bytes((await anext(requests)).chunk)
                own.replace(store.partial_path(REF.sha256))
                raise UnavailableError("going away")
            return await super().UploadArtifact(requests, context)

        async def DownloadArtifact(self, request, context):
            async for answer in super().DownloadArtifact(request, context):
                yield answer
                if Flaky.broken == 1 and answer.chunk:
                    Flaky.broken = 2
                    raise UnavailableError("going away")

    host = Host("test", ServerSettings())
    host.add(artifact_pb2_grpc.add_ArtifactServiceServicer_to_server, Flaky(store), SERVICE)
    port = await host.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert await RemoteStore(channel, LocalStore(tmp_path / "a")).put_bytes(DATA, "x") == REF
        assert (await RemoteStore(channel, LocalStore(tmp_path / "b")).fetch(REF)).read_bytes() == DATA
    assert Flaky.broken == 2
    await host.stop()


async def test_a_full_disk_is_named_wherever_it_shows_and_nothing_is_left_on_it(remote, tmp_path, monkeypatch):
    store, channel = remote

    def on_a_full_disk(dir, prefix):
        name = Path(dir) / f"{prefix}full"
        name.touch()
        return os.open("/dev/full", os.O_WRONLY), str(name)

    monkeypatch.setattr(artifacts.tempfile, "mkstemp", on_a_full_disk)
    for data in (b"small enough to show only when the file is closed", DATA):
        with pytest.raises(ExhaustedError) as caught:
            await store.put_bytes(data, "x")
        assert caught.value.reason == "DISK_FULL"
    monkeypatch.setattr(artifact_service.secrets, "token_hex", lambda _size: "full")
    (store.uploads / f"{REF.sha256}.full.taken").symlink_to("/dev/full")
    (tmp_path / "data").write_bytes(DATA)
    stub = artifact_pb2_grpc.ArtifactServiceStub(channel)
    assert await reason_of(stub.UploadArtifact(upload_parts(tmp_path / "data", REF))) == "DISK_FULL"
    assert list(store.uploads.iterdir()) == []
