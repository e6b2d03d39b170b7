from collections.abc import Callable

import numpy as np
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass

ERF = ["Div", "Erf", "Add", "Mul", "Mul"]
SIGMOID = ["Mul", "Mul", "Add", "Mul", "Sigmoid", "Mul"]


class Writer(GraphBuilder):
    """Products and sums with numbers."""

    def op(self, kind: str, left: str | float, right: str | float) -> str:
        return self.node(kind, [v if isinstance(v, str) else self.constant(np.float32(v)) for v in (left, right)])

    def gelu(self, x: str, form: str) -> str:
        return FORMS[form](self, x)

    def cubic(self, x: str) -> str:
        return self.op("Mul", 0.7978845608, self.op("Add", x, self.op("Mul", 0.044715, self.op("Pow", x, 3))))

    def plus_one(self, kind: str, argument: str) -> str:
        return self.op("Add", self.node(kind, [argument]), 1)


FORMS: dict[str, Callable[[Writer, str], str]] = {
    "torch": lambda b, x: b.op("Mul", b.op("Mul", x, b.plus_one("Erf", b.op("Div", x, 2**0.5))), 0.5),
    "dynamo": lambda b, x: b.op("Mul", b.op("Mul", 0.5, x), b.plus_one("Erf", b.op("Mul", 2**-0.5, x))),
    "halved sum": lambda b, x: b.op("Mul", x, b.op("Mul", 0.5, b.plus_one("Erf", b.op("Div", x, 2**0.5)))),
    "divided": lambda b, x: b.op("Div", b.op("Mul", b.plus_one("Erf", b.op("Div", x, 2**0.5)), x), 2),
    "new": lambda b, x: b.op("Mul", b.op("Mul", x, 0.5), b.plus_one("Tanh", b.cubic(x))),
    "jax": lambda b, x: b.op("Mul", x, b.op("Mul", 0.5, b.plus_one("Tanh", b.cubic(x)))),
    "fast": lambda b, x: b.op(
        "Mul",
        b.op("Mul", 0.5, x),
        b.plus_one(
            "Tanh",
            b.op(
                "Mul",
                b.op("Mul", x, 0.7978845608),
                b.op("Add", 1, b.op("Mul", b.op("Mul", 0.044715, x), x)),
            ),
        ),
    ),
}


def _model(form: str, shape: tuple[int, ...] = (1, 6, 1, 5)) -> GraphBuilder:
    b = Writer(11)
    x = b.node("Mul", [b.input("x", shape), b.weight(*[1] * len(shape), scale=3)])
    b.node("Relu", [b.gelu(x, form)], "y")
    b.output("y", shape)
    return b


@pytest.mark.parametrize("form", [f for f in FORMS if f != "torch"])
@pytest.mark.parametrize("shape", [(1, 6, 1, 5), (2, 3, 4), (1, 9)])
def test_every_form_of_gelu_becomes_the_cheapest(form: str, shape: tuple[int, ...]) -> None:
    run = run_one_pass(_model(form, shape).model(), "suit-gelu")
    wanted = SIGMOID if "Tanh" in [n.op_type for n in _model(form).nodes] else ERF
    assert run.operators == ["Mul", *wanted, "Relu"] and run.max_rel < 2e-6


def test_the_form_of_the_table_stays() -> None:
    run = run_one_pass(_model("torch").model(), "suit-gelu")
    assert run.operators == ["Mul", *ERF, "Relu"] and not run.result.applied


def test_the_factors_of_a_feature_map_are_one_number_per_place() -> None:
    run = run_one_pass(_model("new").model(), "suit-gelu")
    assert sorted(tuple(w.dims) for w in run.model.graph.initializer) == [(1, 1, 1, 1), (1, 1, 1, 5), (1, 1, 1, 5)]


NEARLY: dict[str, Callable[[Writer, str], str]] = {
    "not halved": lambda b, x: b.op("Mul", x, b.plus_one("Erf", b.op("Div", x, 2**0.5))),
    "another width": lambda b, x: b.op("Mul", b.op("Mul", 0.5, x), b.plus_one("Erf", b.op("Mul", 0.9, x))),
    "plain tanh": lambda b, x: b.op("Mul", b.op("Mul", 0.5, x), b.plus_one("Tanh", x)),
    "even": lambda b, x: b.op("Mul", b.op("Mul", 0.5, x), b.plus_one("Tanh", b.op("Add", b.cubic(x), 0.1))),
    "another sum": lambda b, x: b.op("Mul", b.op("Mul", 0.5, x), b.op("Add", b.node("Tanh", [b.cubic(x)]), 1.1)),
    "of something else": lambda b, x: b.op(
        "Mul", b.op("Mul", 0.5, b.node("Relu", [x])), b.plus_one("Tanh", b.cubic(x))
    ),
    "divided by it": lambda b, x: b.op("Div", 0.5, b.op("Mul", x, b.plus_one("Tanh", b.cubic(x)))),
}


@pytest.mark.parametrize("form", NEARLY)
def test_what_only_looks_like_gelu_stays(form: str) -> None:
    b = Writer(11)
    NEARLY[form](b, b.input("x", [1, 6, 1, 5]))
    b.nodes[-1].output[0] = "y"
    b.output("y", [1, 6, 1, 5])
    run = run_one_pass(b.model(), "suit-gelu")
    assert run.operators == [n.op_type for n in b.nodes] and not run.result.applied


def test_a_sum_that_others_read_stays() -> None:
    b = Writer(11)
    x = b.input("x", [1, 6, 1, 5])
    total = b.plus_one("Tanh", b.cubic(x))
    b.node("Mul", [b.op("Mul", x, 0.5), total], "y")
    b.node("Relu", [total], "z")
    b.output("y", [1, 6, 1, 5])
    b.output("z", [1, 6, 1, 5])
    assert not run_one_pass(b.model(), "suit-gelu").result.applied


@pytest.mark.parametrize(("approximate", "function"), [("none", "Erf"), ("tanh", "Sigmoid")])
@pytest.mark.parametrize("precision", ["int8", "int16"])
def test_plans_suit_the_operator_of_opset_20_and_an_output_keeps_its_name(
    approximate: str, function: str, precision: str
) -> None:
    b = GraphBuilder(20, 9)
    h = b.node("MatMul", [b.input("x", ["n", 5, 8]), b.weight(8, 12)])
    b.node("Gelu", [h], "y", approximate=approximate)
    b.output("y", ["n", 5, 12])
    result = transform(b.model(), precision=precision)
    operators = [n.op_type for n in result.model.graph.node]
    assert (
        operators.count(function) == 1
        and "Tanh" not in operators
        and operators.count("Mul") == len([o for o in (ERF if function == "Erf" else SIGMOID) if o == "Mul"])
    )
    assert result.proof.batch == "proven"
