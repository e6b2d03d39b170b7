from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_mean_of_three_with_broadcast() -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4])
    b.node("Mean", [x, b.node("Sigmoid", [x]), b.input("z", [3, 1])], "y")
    b.output("y", [3, 4])
    run = run_one_pass(b.model(), "replace-mean")
    assert "Mean" not in run.operators
    assert run.max_rel < 1e-6
