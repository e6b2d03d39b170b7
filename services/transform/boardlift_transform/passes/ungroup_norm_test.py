from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass

MAP = (1, 12, 6, 5)


def grouped(shape: Sequence[int], groups: int, *, plain: bool = True, leak: bool = False) -> onnx.ModelProto:
    """GroupNormalization as exporters write it for opset 11: an InstanceNormalization between two Reshapes."""
    b = GraphBuilder(11, 7, seed=3)
    g = b.node("Reshape", [b.input("x", shape), b.constant([shape[0], groups, -1])])
    values = (
        [np.ones(groups), np.zeros(groups)] if plain else [b.rng.uniform(0.5, 2, groups), b.rng.normal(0, 1, groups)]
    )
    n = b.node("InstanceNormalization", [g, *(b.constant(v.astype(np.float32)) for v in values)], epsilon=1e-3)
    y = b.node("Reshape", [n, b.constant(list(shape))])
    small = [shape[1], *[1] * (len(shape) - 2)]
    b.node("Add", [b.node("Mul", [y, b.weight(*small)]), b.weight(*small)], "y")
    b.output("y", shape)
    if leak:
        b.output(n, [shape[0], groups, int(np.prod(shape[1:])) // groups])
    return b.model()


@pytest.mark.parametrize("groups", [1, 3, 12])
@pytest.mark.parametrize("shape", [MAP, (1, 12, 7), (2, 12, 4, 3, 2)], ids=["map", "sequence", "volume"])
@pytest.mark.parametrize("plain", [True, False])
def test_a_normalisation_between_reshapes_keeps_the_layout(shape: tuple[int, ...], groups: int, plain: bool) -> None:
    run = run_one_pass(grouped(shape, groups, plain=plain), "ungroup-norm")
    counts = Counter(run.operators)
    assert counts["Reshape"] == counts["InstanceNormalization"] == 0
    assert counts["Conv"] == (0 if groups == 12 else 2) and counts["Mul"] == (2 if plain else 3)
    assert run.max_rel < 1e-5


def test_many_channels_are_averaged_in_two_steps() -> None:
    run = run_one_pass(grouped((1, 512, 4, 4), 32), "ungroup-norm")
    weights = [i.dims for i in run.model.graph.initializer if len(i.dims) == 4 and i.dims[1] > 1]
    assert sorted(map(tuple, weights)) == [(32, 512, 1, 1)] * 2 + [(512, 32, 1, 1)] * 2
    assert run.max_rel < 1e-5


def test_the_operator_of_newer_opsets_ends_without_a_reshape() -> None:
    b = GraphBuilder(21)
    x = b.node("Conv", [b.input("x", MAP), b.weight(12, 12, 1, 1)])
    x = b.node("GroupNormalization", [x, b.weight(12), b.weight(12)], num_groups=3)
    b.node("Conv", [x, b.weight(4, 12, 1, 1)], "y")
    b.output("y", [1, 4, 6, 5])
    left = [n.op_type for n in transform(b.model()).model.graph.node]
    assert not {"Reshape", "InstanceNormalization"} & set(left) and left.count("Conv") == 4


def test_what_others_read_in_groups_stays() -> None:
    assert run_one_pass(grouped(MAP, 3, leak=True), "ungroup-norm").operators.count("Reshape") == 2


@pytest.mark.parametrize("operator", ["Softmax", "Relu"])
def test_other_work_on_groups_stays(operator: str) -> None:
    b = GraphBuilder(11, 7)
    g = b.node("Reshape", [b.input("x", MAP), b.constant([1, 3, -1])])
    b.node("Reshape", [b.node(operator, [g]), b.constant(MAP)], "y")
    b.output("y", MAP)
    assert run_one_pass(b.model(), "ungroup-norm").operators == ["Reshape", operator, "Reshape"]


def test_int16_writes_an_instance_normalisation_out() -> None:
    b = GraphBuilder(11, 7)
    b.node("InstanceNormalization", [b.input("x", MAP), b.weight(12), b.weight(12)], "y")
    b.output("y", MAP)
    assert run_one_pass(b.model(), "ungroup-norm").operators == ["InstanceNormalization"]
    run = run_one_pass(b.model(), "ungroup-norm", {"precision": "int16"})
    assert Counter(run.operators)["ReduceMean"] == 2 and "InstanceNormalization" not in run.operators
    assert run.max_rel < 1e-5
