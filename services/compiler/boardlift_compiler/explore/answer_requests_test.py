"""What is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from boardlift.errors import InvalidInputError, from_rpc_error
from boardlift.v1 import artifact_pb2, explore_pb2, explore_pb2_grpc
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.server import ServerSettings

from boardlift_compiler.explore.answer_requests import check_search
from boardlift_compiler.server import start_host
from boardlift_compiler.settings import AllSettings, Settings

REFERENCE = artifact_pb2.ArtifactRef(sha256="0" * 64)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"forms": []}, "NAME_INVALID"),
        ({"forms": [explore_pb2.ModelForm(name="a"), explore_pb2.ModelForm(name="a")]}, "NAME_INVALID"),
        ({"reference_outputs": artifact_pb2.ArtifactRef()}, "REFERENCE_MISSING"),
        ({"factor": 11}, "KNOB_RANGE"),
        ({"finalists": -1}, "KNOB_RANGE"),
        ({"first_samples": 5000}, "KNOB_RANGE"),
    ],
)
def test_searches_that_mean_nothing(change, reason):
    fields = {"forms": [explore_pb2.ModelForm(name="a")], "reference_outputs": REFERENCE, **change}
    with pytest.raises(InvalidInputError) as caught:
        check_search(explore_pb2.SearchVariantsRequest(**fields))
    assert caught.value.reason == reason


async def test_without_a_toolchain_everything_says_how_to_get_it(tmp_path: Path):
    settings = Settings(state_dir=tmp_path / "state", toolchain=tmp_path / "none", work_root=tmp_path / "runs")
    host = await start_host(AllSettings(settings, ServerSettings(), ChannelSettings()))
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{host.port}") as channel:
            stub = explore_pb2_grpc.ExploreServiceStub(channel)
            calls = [
                stub.EstimateLatency(explore_pb2.EstimateLatencyRequest()),
                stub.SearchVariants(explore_pb2.SearchVariantsRequest()).read(),
                stub.MeasureSensitivity(explore_pb2.MeasureSensitivityRequest()).read(),
                stub.TryRemedies(explore_pb2.TryRemediesRequest()).read(),
            ]
            for call in calls:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call
                error = from_rpc_error(caught.value)
                assert error.reason == "TOOLCHAIN_MISSING" and "make toolchain" in error.remedy
    finally:
        await host.stop()
