from collections import Counter

import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def shuffled(
    block: int, channels: int, mode: str, *, conv: bool = True, last: bool = False, precision: str = ""
) -> PassRun:
    b = GraphBuilder(11)
    t = b.input("x", [1, 4 if conv else channels * block**2, 5, 3])
    if conv:
        t = b.node("Conv", [t, b.weight(channels * block**2, 4, 1, 1), b.weight(channels * block**2)])
    t = b.node("DepthToSpace", [t], "y" if last else "", blocksize=block, mode=mode)
    if not last:
        b.node("Relu", [t], "y")
    b.output("y", [1, channels, 5 * block, 3 * block])
    return run_one_pass(b.model(), "split-depth-to-space", {"precision": precision})


@pytest.mark.parametrize("mode", ["CRD", "DCR"])
@pytest.mark.parametrize("conv", [True, False])
@pytest.mark.parametrize(("block", "steps"), [(4, 2), (8, 3)])
def test_powers_of_two_become_blocks_of_two(block: int, steps: int, conv: bool, mode: str) -> None:
    run = shuffled(block, 3, mode, conv=conv)
    sizes = [a.i for n in run.model.graph.node for a in n.attribute if a.name == "blocksize"]
    assert sizes == [2] * steps
    assert ("Gather" in run.operators) is not conv
    assert run.max_rel == 0


@pytest.mark.parametrize("mode", ["CRD", "DCR"])
@pytest.mark.parametrize("conv", [True, False])
@pytest.mark.parametrize("channels", [1, 3])
def test_block_three_of_few_channels_becomes_moves(channels: int, conv: bool, mode: str) -> None:
    run = shuffled(3, channels, mode, conv=conv)
    counts = Counter(run.operators)
    assert counts["Transpose"] == 2 * channels and counts["DepthToSpace"] == 0
    assert counts["Concat"] == counts["Split"] == (channels > 1)
    assert run.max_rel == 0


@pytest.mark.parametrize("mode", ["CRD", "DCR"])
def test_block_three_of_many_channels_becomes_a_convolution_in_int8_only(mode: str) -> None:
    run = shuffled(3, 5, mode, precision="int8")
    assert run.operators == ["Conv", "ConvTranspose", "Relu"] and run.max_rel == 0
    kept = shuffled(3, 5, mode, precision="int16")
    assert "DepthToSpace" in kept.operators and kept.result.skipped


def test_block_two_and_a_last_node_in_int8_stay() -> None:
    assert shuffled(2, 3, "CRD").operators == ["Conv", "DepthToSpace", "Relu"]
    assert shuffled(3, 1, "CRD", last=True, precision="int8").operators == ["Conv", "DepthToSpace"]
    assert "DepthToSpace" not in shuffled(3, 1, "CRD", last=True, precision="int16").operators
