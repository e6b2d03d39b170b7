from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def _experts() -> GraphBuilder:
    b = GraphBuilder(11)
    x = b.input("x", [1, 64, 1, 1])
    b.node("Conv", [x, b.weight(16, 8, 1, 1), b.weight(16)], "y", group=8)
    b.output("y", [1, 16, 1, 1])
    return b


def test_blocks_become_one_matrix() -> None:
    run = run_one_pass(_experts().model(), "dense-grouped-conv")
    assert [list(w.dims) for w in run.model.graph.initializer if len(w.dims) == 4] == [[16, 64, 1, 1]]
    assert run.max_rel < 1e-6


def test_the_size_guard_holds() -> None:
    run = run_one_pass(_experts().model(), "dense-grouped-conv", {"max_elements": 100})
    assert "1024 elements" in run.result.skipped[0].reason
