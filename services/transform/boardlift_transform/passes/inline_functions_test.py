import onnx
from onnx import TensorProto, helper

from boardlift_transform.run_one_pass import run_one_pass


def test_function_call_becomes_its_nodes() -> None:
    body = [helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Add", ["r", "a"], ["b"])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    function = helper.make_function("local", "ReluAdd", ["a"], ["b"], body, opsets[:1])
    node = helper.make_node("ReluAdd", ["x"], ["y"], domain="local", name="call")
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in "xy"]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8)
    onnx.checker.check_model(model)
    run = run_one_pass(model, "inline-functions")
    assert run.operators == ["Relu", "Add"]
    assert not run.model.functions
    assert run.max_rel == 0
