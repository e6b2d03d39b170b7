import pytest

from boardlift_compiler.run_check import check_placement
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.spec import CompileSpec, InputSpec
from boardlift_compiler.toolchain import Toolchain

OPEN = ("N", 3, "H", 32)


async def test_a_shape_that_is_open_is_refused_before_the_tool_starts(models, put, folder, tmp_path):
    path, _ = put(models.small(dims=OPEN))
    outcome = await check_placement(Toolchain(tmp_path, "0"), path, CompileSpec(), folder, Limits(), Hooks())
    assert (outcome.failure.code, outcome.run) == ("DYNAMIC_SHAPE", None)


@pytest.mark.toolchain
@pytest.mark.xdist_group("compiler-tool")
async def test_a_shape_that_is_given_is_the_one_that_is_checked(toolchain, models, put, folder):
    path, _ = put(models.small(dims=OPEN))
    spec = CompileSpec(inputs=(InputSpec("x", shape=(1, 3, 32, 32)),))
    outcome = await check_placement(toolchain, path, spec, folder, Limits(timeout_s=120), Hooks())
    assert outcome.failure is None
    assert {n.node: n.device for n in outcome.facts.nodes} == {"c1": "BPU", "c2": "BPU"}
