import numpy as np
import onnx_ir as ir
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.polynomial import Polynomial, multiples_in, polynomial_in


def _read(*nodes: tuple[str, list[str]]) -> Polynomial | None:
    """The last node as a polynomial in x; names that are numbers become constants."""
    b = GraphBuilder(17)
    b.input("x", [2, 3])
    b.input("z", [2, 3])
    for number, (op, inputs) in enumerate(nodes):
        given = [b.constant(np.float32(i)) if i[0] in "-0123456789" else i for i in inputs]
        b.node(op, given, f"n{number}")
    b.output(f"n{len(nodes) - 1}", [2, 3])
    graph = ir.from_proto(b.model()).graph
    return polynomial_in(graph.inputs[0], graph.outputs[0])


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ([("Mul", ["x", "3"])], {1: 3}),
        ([("Div", ["x", "4"])], {1: 0.25}),
        ([("Neg", ["x"])], {1: -1}),
        ([("Pow", ["x", "3"]), ("Mul", ["0.5", "n0"]), ("Sub", ["x", "n1"])], {1: 1, 3: -0.5}),
        ([("Mul", ["x", "x"]), ("Add", ["n0", "1"]), ("Mul", ["x", "n1"])], {1: 1, 3: 1}),
        ([("Add", ["x", "2"]), ("Pow", ["n0", "2"])], {0: 4, 1: 4, 2: 1}),
    ],
)
def test_written_out_polynomials_are_read(nodes: list[tuple[str, list[str]]], wanted: Polynomial) -> None:
    assert _read(*nodes) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "nodes",
    [
        [("Mul", ["x", "z"])],
        [("Div", ["2", "x"])],
        [("Div", ["x", "0"])],
        [("Pow", ["x", "0.5"])],
        [("Pow", ["x", "2"]), ("Mul", ["n0", "n0"])],
        [("Exp", ["x"])],
    ],
)
def test_anything_else_is_none(nodes: list[tuple[str, list[str]]]) -> None:
    assert _read(*nodes) is None


def test_multiples_are_told_with_their_factors() -> None:
    b = GraphBuilder(17)
    half = b.node("Mul", [b.constant(np.float32(0.5)), b.input("x", [2, 3])], "half")
    b.node("Div", [half, b.constant(np.float32(4))], "y")
    b.output("y", [2, 3])
    graph = ir.from_proto(b.model()).graph
    found = multiples_in(graph.outputs[0])
    assert [(v.name, f) for v, f in found] == [("y", 1.0), ("half", 0.25), ("x", 0.125)]
    divided = GraphBuilder(17)
    divided.node("Div", [divided.constant(np.float32(4)), divided.input("x", [2, 3])], "y")
    divided.output("y", [2, 3])
    assert len(multiples_in(ir.from_proto(divided.model()).graph.outputs[0])) == 1
