"""What the estimate says beside its figures; the figures of a real build are in `explore_server_test.py`."""

from boardlift.v1 import explore_pb2
from boardlift_servicekit.artifacts import LocalStore

from boardlift_compiler.explore.run_estimate import estimate_latency
from boardlift_compiler.history import History
from boardlift_compiler.run_mapper import Limits
from boardlift_compiler.run_stages import StageRunner
from boardlift_compiler.toolchain import Toolchain
from boardlift_compiler.wire import BYTES, Field, write_field, write_text


async def test_a_tool_version_that_was_not_tested_is_said(tmp_path):
    graph = write_text(2, "model")  # its name, and no node
    compiled = write_field(Field(3, BYTES, 0, memoryview(b"")), graph)
    store = LocalStore(tmp_path / "artifacts", 1 << 20)
    history = History(tmp_path / "history")
    runner = StageRunner(Toolchain(tmp_path, "1.99.0"), store, tmp_path / "runs", Limits(), history, 1)
    request = explore_pb2.EstimateLatencyRequest(compiled_model=await store.put_bytes(compiled, "x/y"))
    response = await estimate_latency(request, runner, store)
    assert "TOOL_VERSION_UNTESTED" in {f.code for f in response.findings}
