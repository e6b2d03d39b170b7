import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _run(low: float | None, high: float | None, *readers: str) -> PassRun:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4, 3, 6])
    bounds = ["" if v is None else b.constant(np.float32(v)) for v in (low, high)]
    clipped = b.node("Clip", [x, *bounds[: 2 if high is not None else 1]], "" if readers else "y")
    for index, reader in enumerate(readers):
        out = "y" if index == 0 else f"y{index}"
        if reader == "Conv":
            b.node("Conv", [clipped, b.weight(2, 4, 1, 1)], out)
        elif reader == "Turned Conv":
            b.node("Conv", [b.node("Transpose", [clipped], perm=[0, 1, 3, 2]), b.weight(2, 4, 1, 1)], out)
        elif reader == "Turned Concat":
            b.node("Concat", [b.node("Transpose", [clipped], perm=[0, 1, 3, 2])] * 2, out, axis=1)
        else:
            b.node(reader, [clipped, x] if reader in ("Concat", "Mul") else [clipped], out,
                   **({"axis": 1} if reader == "Concat" else {}))  # fmt: skip
    for index in range(max(len(readers), 1)):
        b.output("y" if index == 0 else f"y{index}", None)
    return run_one_pass(b.model(), "split-clip")


@pytest.mark.parametrize("readers", [[], ["Concat"], ["Sigmoid"], ["Turned Concat"], ["Conv", "Concat"]])
def test_a_clip_that_the_tool_would_drop_becomes_two(readers: list[str]) -> None:
    run = _run(-0.5, 0.5, *readers)
    assert run.operators.count("Clip") == 2 and run.max_rel == 0
    run = _run(0, 0.5, *readers)
    assert run.operators[:2] == ["Relu", "Clip"] and run.max_rel == 0


@pytest.mark.parametrize("readers", [["Conv"], ["Mul"], ["Turned Conv"], ["Conv", "Mul"]])
def test_one_whose_threshold_stays_in_force_stays(readers: list[str]) -> None:
    assert _run(-0.5, 0.5, *readers).operators.count("Clip") == 1
    assert "Relu" not in _run(0, 0.5, *readers).operators


@pytest.mark.parametrize(("low", "high"), [(-0.5, 1.0), (None, 0.5), (-0.5, None), (0.1, 0.5)])
def test_others_are_tables_of_their_own_and_stay(low: float | None, high: float | None) -> None:
    assert _run(low, high).operators == ["Clip"]


@pytest.mark.parametrize("front", ["Clip", "LeakyRelu", "PRelu", "Softplus", "Abs", "Turned LeakyRelu"])
@pytest.mark.parametrize(("low", "split"), [(-0.5, True), (0.0, False)])
def test_one_behind_a_table_of_one_threshold_becomes_two(front: str, low: float, split: bool) -> None:
    b = GraphBuilder(11)
    x = b.node("Conv", [b.input("x", [1, 4, 3, 6]), b.weight(4, 4, 1, 1)])
    more = {"Clip": ["", b.constant(np.float32(0.8))], "PRelu": [b.weight(4, 1, 1)]}.get(front, [])
    x = b.node(front.removeprefix("Turned "), [x, *more])
    if front.startswith("Turned"):
        x = b.node("Transpose", [x], perm=[0, 1, 3, 2])
    x = b.node("Clip", [x, b.constant(np.float32(low)), b.constant(np.float32(0.5))])
    b.output(b.node("Conv", [x, b.weight(2, 4, 1, 1)], "y"), None)
    run = run_one_pass(b.model(), "split-clip")
    assert run.operators.count("Clip") - (front == "Clip") == 1 + split and run.max_rel == 0


@pytest.mark.parametrize("front", ["Relu", "MaxPool", "Elu"])
def test_one_behind_anything_else_stays(front: str) -> None:
    b = GraphBuilder(11)
    x = b.node("Conv", [b.input("x", [1, 4, 3, 6]), b.weight(4, 4, 1, 1)])
    x = b.node(front, [x], **({"kernel_shape": [2, 2]} if front == "MaxPool" else {}))
    x = b.node("Clip", [x, b.constant(np.float32(-0.5)), b.constant(np.float32(0.5))])
    b.output(b.node("Conv", [x, b.weight(2, 4, 1, 1)], "y"), None)
    assert run_one_pass(b.model(), "split-clip").operators.count("Clip") == 1
