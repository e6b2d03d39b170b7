import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _run(operator: str, **constants: float) -> PassRun:
    b = GraphBuilder(11)
    b.node(operator, [b.input("x", [1, 4, 3, 5])], "y", **constants)
    b.output("y", [1, 4, 3, 5])
    return run_one_pass(b.model(), "decompose-activation")


@pytest.mark.parametrize(
    "constants", [{}, {"alpha": 0.25}, {"alpha": 1 / 6, "beta": 0.4}, {"alpha": 0.9, "beta": -0.1}]
)
def test_a_hard_sigmoid_with_constants_of_its_own_becomes_a_clip(constants: dict[str, float]) -> None:
    run = _run("HardSigmoid", **constants)
    assert run.operators == ["Mul", "Add", "Clip"] and run.max_rel < 1e-6


@pytest.mark.parametrize("constants", [{"alpha": 1.2}, {"gamma": 1.3}, {"alpha": 0.5, "gamma": 2.0}])
def test_a_selu_with_constants_of_its_own_becomes_an_elu(constants: dict[str, float]) -> None:
    run = _run("Selu", **constants)
    assert run.operators == ["Elu", "Mul"] and run.max_rel < 1e-6


@pytest.mark.parametrize(
    ("operator", "constants"),
    [("HardSigmoid", {"alpha": 1 / 6}), ("HardSigmoid", {"alpha": 0.1666667, "beta": 0.5}), ("Selu", {})],
)
def test_the_tools_own_constants_stay(operator: str, constants: dict[str, float]) -> None:
    assert _run(operator, **constants).operators == [operator]
