import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize(
    ("inner", "perm", "mode"),
    [
        ([1, 2, 3, 3, 4, 5], [0, 1, 4, 2, 5, 3], b"CRD"),
        ([1, 3, 3, 2, 4, 5], [0, 3, 4, 1, 5, 2], b"DCR"),
        ([1, 2, 3, 3, 4, 5], [0, 1, 4, 3, 5, 2], None),
    ],
)
def test_pixel_shuffle_is_recognised(inner: list[int], perm: list[int], mode: bytes | None) -> None:
    b = GraphBuilder(11)
    t = b.node("Reshape", [b.input("x", [1, 18, 4, 5]), b.constant(inner)])
    t = b.node("Transpose", [t], perm=perm)
    b.node("Reshape", [t, b.constant([1, 2, 12, 15])], "y")
    b.output("y", [1, 2, 12, 15])
    run = run_one_pass(b.model(), "fuse-depth-to-space")
    modes = [a.s for n in run.model.graph.node for a in n.attribute if a.name == "mode"]
    assert modes == ([mode] if mode else [])
    assert run.max_rel == 0
