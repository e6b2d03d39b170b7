"""A build without an estimate is a failure and never a build that takes no time."""

from __future__ import annotations

import asyncio

import pytest
from boardlift.v1 import compiler_pb2, toolchain_pb2
from boardlift_servicekit.artifacts import LocalStore

from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.explore import describe_build as module
from boardlift_compiler.explore.convert import EstimateMissingError, subgraph_times
from boardlift_compiler.explore.describe_build import BuildDescription, describe_build
from boardlift_compiler.read_bin import BinNode, CompiledModel


def subgraph(name: str, us: float | None) -> compiler_pb2.SubgraphEstimate:
    made = compiler_pb2.SubgraphEstimate(name=name)
    made.figures.append(toolchain_pb2.Figure(name="fps", value=1.0))
    if us is not None:
        made.figures.append(toolchain_pb2.Figure(name="estimated_latency_us", value=us))
    return made


def test_a_subgraph_without_a_latency_is_named():
    assert subgraph_times([subgraph("a", 3.0), subgraph("b", 4.0)]) == [3.0, 4.0]
    with pytest.raises(EstimateMissingError, match="b"):
        subgraph_times([subgraph("a", 3.0), subgraph("b", None)])


@pytest.mark.parametrize(
    ("times", "code"), [([3.0, 4.0], ""), ([3.0, None], "ESTIMATE_MISSING"), ([3.0], "ESTIMATE_MISSING")]
)
async def test_every_bpu_subgraph_needs_an_estimate(tmp_path, monkeypatch, times, code):
    nodes = tuple(BinNode(name, "BPU", ("x",), ("y",)) for name in ("a", "b"))
    monkeypatch.setattr(module, "read_bin", lambda data: CompiledModel("m", nodes, {}, b"", {}))
    store = LocalStore(tmp_path, 1 << 20)
    result = compiler_pb2.CompileResult(
        compiled_model=await store.put_bytes(b"bin", "application/octet-stream"),
        subgraphs=[subgraph("ab"[k], us) for k, us in enumerate(times)],
    )
    described = await describe_build(result, store)
    if not code:
        assert isinstance(described, BuildDescription) and described.estimate.bpu_us == 7.0
    else:
        assert isinstance(described, StageFailure) and described.code == code


async def test_a_damaged_compiled_model_is_a_failure(tmp_path):
    store = LocalStore(tmp_path, 1 << 20)
    result = compiler_pb2.CompileResult(compiled_model=await store.put_bytes(b"junk", "application/octet-stream"))
    described = await asyncio.wait_for(describe_build(result, store), 5)
    assert isinstance(described, StageFailure) and described.code == "COMPILED_MODEL_UNREADABLE"
