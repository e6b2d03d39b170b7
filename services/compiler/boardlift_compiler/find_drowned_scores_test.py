import pytest

from boardlift_compiler.find_drowned_scores import find_drowned_scores
from boardlift_compiler.parse_reports import NodeQuantization


def build(depth: float, *, on_bpu: bool, reader: str = "Softmax") -> dict[str, NodeQuantization]:
    """An Add of a mask and what reads it, as the tool reports them."""
    add = NodeQuantization("Add", ("scores", "mask"), ("sum",), ((5.3,) if on_bpu else (), (depth,)), 1.0)
    if on_bpu and reader == "Softmax":
        name = "/s_reducemax_FROM_QUANTIZED_SOFTMAX"
        return {"/add": add, name: NodeQuantization("ReduceMax", ("sum_calibrated",), ("m",), ((depth,),), 1.0)}
    return {"/add": add, "/s": NodeQuantization(reader, ("sum",), ("p",), ((),), 1.0)}


@pytest.mark.parametrize("on_bpu", [True, False])
@pytest.mark.parametrize(("depth", "drowned"), [(1e9, True), (10000.0, True), (500.0, False)])
def test_a_deep_mask_in_front_of_a_softmax_is_named(depth: float, on_bpu: bool, drowned: bool) -> None:
    found = find_drowned_scores(build(depth, on_bpu=on_bpu))
    assert [(f.code, f.subject, f.severity) for f in found] == [("MASK_DROWNS_SCORES", "/add", "error")] * drowned


def test_large_sums_elsewhere_are_none() -> None:
    assert find_drowned_scores(build(1e9, on_bpu=True, reader="Relu")) == []


@pytest.mark.parametrize("moves", [1, 2])
@pytest.mark.parametrize("suffix", ["", "_calibrated"])
def test_moves_between_sum_and_softmax_hide_nothing(moves: int, suffix: str) -> None:
    nodes = build(1e9, on_bpu=False)
    last = "sum"
    for number, kind in enumerate(["Reshape", "Transpose"][:moves]):
        nodes[f"/move{number}"] = NodeQuantization(kind, (last + suffix, "dims"), (f"m{number}",), ((1e9,), ()), 1.0)
        last = f"m{number}"
    nodes["/s"] = NodeQuantization("Softmax", (last + suffix,), ("p",), ((),), 1.0)
    assert [f.subject for f in find_drowned_scores(nodes)] == ["/add"]
