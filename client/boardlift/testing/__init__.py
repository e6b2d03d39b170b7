"""A boardlift server for your own tests: real gRPC on a free port, made-up results that say so.

    from boardlift.testing import FakeServer

    def test_my_pipeline():
        with FakeServer() as server, boardlift.Client(server.address) as client:
            job = client.run("policy.onnx", {"obs": samples}, ["int8"]).wait()
            assert job.verdict.passed

Every figure it gives is of kind "simulated" and of source "boardlift.testing"; nothing is compiled and nothing is run.
"""

from boardlift.testing.scenario import Scenario, StageScript
from boardlift.testing.server import FakeServer

__all__ = ["FakeServer", "Scenario", "StageScript"]
