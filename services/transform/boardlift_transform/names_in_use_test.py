from typing import Any

import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from boardlift_transform.names_in_use import NamesInUse


def _graph() -> ir.Graph:
    """`x -> first -> t -> If -> y`; the branches hold `inner -> z` and `other -> z2`."""
    info = helper.make_tensor_value_info
    branches: dict[str, Any] = {
        side: helper.make_graph([helper.make_node("Relu", ["t"], [out], name)], side, [], [info(out, 1, [2])])
        for side, name, out in (("then_branch", "inner", "z"), ("else_branch", "other", "z2"))
    }
    nodes = [
        helper.make_node("Relu", ["x"], ["t"], "first"),
        helper.make_node("If", ["c"], ["y"], "choice", **branches),
    ]
    inputs = [info("x", TensorProto.FLOAT, [2]), info("c", TensorProto.BOOL, [])]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, [info("y", 1, [2])]))
    onnx.checker.check_model(model)
    return ir.from_proto(model).graph


def test_names_of_inner_graphs_count() -> None:
    names = NamesInUse(_graph())
    assert [names.for_value(n) for n in ("x", "t", "z2", "new", "new")] == ["x_1", "t_1", "z2_1", "new", "new_1"]
    assert [names.for_node(n) for n in ("inner", "first", "new", "x")] == ["inner_1", "first_1", "new", "x"]


def test_what_came_before_the_first_question_counts() -> None:
    graph = _graph()
    names = NamesInUse(graph)
    graph.node(0).outputs[0].name = "later"
    assert names.for_value("later") == "later_1"


def test_a_released_node_name_is_given_once() -> None:
    names = NamesInUse(_graph())
    names.released.add("first")
    assert [names.for_node("first"), names.for_node("first")] == ["first", "first_1"]
