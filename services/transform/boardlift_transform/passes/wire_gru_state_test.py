import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize("as_output", [True, False])
def test_state_gets_a_reader(as_output: bool) -> None:
    b = GraphBuilder(11)
    x = b.input("x", [4, 1, 6])
    t = b.node(
        "GRU", [x, b.weight(1, 15, 6), b.weight(1, 15, 5), b.weight(1, 30)], "y" if as_output else "", hidden_size=5
    )
    if not as_output:
        b.node("Relu", [t], "y")
    b.output("y", [4, 1, 1, 5])
    run = run_one_pass(b.model(), "wire-gru-state")
    gru = next(n for n in run.model.graph.node if n.op_type == "GRU")
    assert len(gru.output) == 2 and any(gru.output[1] in n.input for n in run.model.graph.node)
    assert run.max_rel == 0


@pytest.mark.parametrize(("direction", "ways"), [("reverse", 1), ("bidirectional", 2)])
def test_any_direction_gets_a_reader(direction: str, ways: int) -> None:
    b = GraphBuilder(11)
    weights = [b.weight(ways, 15, 6), b.weight(ways, 15, 5), b.weight(ways, 30)]
    b.node("GRU", [b.input("x", [4, 1, 6]), *weights], "y", hidden_size=5, direction=direction)
    b.output("y", [4, ways, 1, 5])
    run = run_one_pass(b.model(), "wire-gru-state")
    assert [len(n.output) for n in run.model.graph.node if n.op_type == "GRU"] == [2]
    assert run.max_rel == 0


def test_a_state_that_is_read_is_left_alone() -> None:
    b = GraphBuilder(11)
    b.node("GRU", [b.input("x", [4, 1, 6]), b.weight(1, 15, 6), b.weight(1, 15, 5)], "g", outputs=2, hidden_size=5)
    b.output("g_0", [4, 1, 1, 5])
    b.output("g_1", [1, 1, 5])
    assert not run_one_pass(b.model(), "wire-gru-state").result.applied
