from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_two_axes_at_once_are_split_and_one_axis_stays() -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4, 1, 1])
    t = b.node("Expand", [x, b.constant([1, 4, 3, 5])])
    t = b.node("Tile", [t, b.constant([1, 1, 2, 3])])
    u = b.node("Expand", [x, b.constant([1, 4, 6, 1])])
    b.node("Add", [t, u], "y")
    b.output("y", [1, 4, 6, 15])
    run = run_one_pass(b.model(), "split-broadcast")
    assert run.operators == ["Add", "Tile", "Tile", "Expand", "Add"]
    assert run.max_rel == 0
