"""Random nests of Loop and If through the passes that take them out, against onnxruntime on the graph as it was."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from boardlift_transform import transform
from boardlift_transform.edit_graph import Array
from boardlift_transform.run_one_pass import run_one_pass

Nodes = list[onnx.NodeProto]
PAIRS = ("Add", "Mul", "Sub")


class Nest:
    """Writes one model; all values but conditions are float [1,4]."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def pick(self, names: Sequence[str]) -> str:
        return str(self.rng.choice(list(names)))

    def add(self, nodes: Nodes, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        nodes.append(helper.make_node(op, list(inputs), [self.name()], **attributes))
        return str(nodes[-1].output[0])

    def block(self, depth: int, values: Sequence[str], nodes: Nodes) -> str:
        known = list(values)
        for _ in range(int(self.rng.integers(1, 4))):
            kind = self.rng.random() if depth else 0.0
            if kind < 0.5:
                op = self.pick((*PAIRS, "Relu", "Identity"))
                made = self.add(nodes, op, [self.pick(known) for _ in range(2 if op in PAIRS else 1)])
                known.append(self.add(nodes, "Tanh", [made]))
            elif kind < 0.75:
                sides = {f"{side}_branch": self.branch(depth - 1, known) for side in ("then", "else")}
                known.append(self.add(nodes, "If", [self.condition(known, nodes)], **sides))
            else:
                known.append(self.loop(depth, known, nodes))
        return known[-1]

    def condition(self, values: Sequence[str], nodes: Nodes) -> str:
        most = self.add(nodes, "ReduceMax", [self.pick(values)], keepdims=0)
        return self.add(nodes, self.pick(("Greater", "Less")), [most, self.pick(("low", "high"))])

    def branch(self, depth: int, values: Sequence[str]) -> onnx.GraphProto:
        nodes: Nodes = []
        out = self.add(nodes, "Identity", [self.block(depth, values, nodes)])
        return helper.make_graph(nodes, self.name(), [], [_info(out)])

    def loop(self, depth: int, values: Sequence[str], nodes: Nodes) -> str:
        step, go, state = self.name(), self.name(), self.name()
        inner: Nodes = []
        made = self.block(depth - 1, [*values, state], inner)
        made = self.add(inner, "Tanh", [self.add(inner, "Mul", [made, self.add(inner, "Cast", [step], to=1)])])
        kind, outs = self.rng.random(), [self.name()]
        if kind < 0.5:
            again = self.add(inner, "Identity", [go])
        elif kind < 0.75:
            again = self.condition([*values, made], inner)
        else:
            few = self.add(inner, "Less", [step, self.pick(("one", "two"))])
            again = self.add(inner, "And", [few, go])
        ends = [_info(again, TensorProto.BOOL, []), _info(made)]
        if kind < 0.25:
            outs.append(self.name())
            ends.append(_info(self.add(inner, "Identity", [made])))
        starts = [_info(step, TensorProto.INT64, []), _info(go, TensorProto.BOOL, []), _info(state)]
        body = helper.make_graph(inner, self.name(), starts, ends)
        reads = [self.pick(("one", "two", "three")), self.pick(("yes", "")), self.pick(values)]
        nodes.append(helper.make_node("Loop", reads, outs, body=body))
        if len(outs) == 1:
            return outs[0]
        return self.add(nodes, "Add", [outs[0], self.add(nodes, "ReduceMean", [outs[1]], axes=[0], keepdims=0)])

    def model(self) -> onnx.ModelProto:
        nodes: Nodes = []
        values = ["x", self.loop(3, ["x", "z"], nodes), self.block(3, ["x", "z"], nodes)]
        nodes.append(helper.make_node("Add", values[1:], ["y"]))
        constants: dict[str, Array] = {"low": np.asarray(0, np.float32), "high": np.asarray(0.3, np.float32)}
        constants |= {"yes": np.asarray(True), "one": np.asarray(1), "two": np.asarray(2), "three": np.asarray(3)}
        weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
        graph = helper.make_graph(nodes, "nest", [_info("x"), _info("z")], [_info("y"), _info(values[1])], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=7)


def _info(name: str, dtype: int = TensorProto.FLOAT, shape: Sequence[int] = (1, 4)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, list(shape))


@pytest.mark.parametrize("seed", range(20))
def test_a_random_nest_gives_the_same_without_control_flow(seed: int) -> None:
    model = Nest(seed).model()
    onnx.checker.check_model(model)
    run = run_one_pass(model, "if-to-where", before=["unroll-loop"])
    assert not {"If", "Loop"} & set(run.operators) and run.max_rel < 1e-6


@pytest.mark.parametrize("seed", [3, 7])
def test_a_random_nest_goes_through_the_whole_plan(seed: int) -> None:
    result = transform(Nest(seed).model())
    assert result.proof.passed and not {"If", "Loop"} & {n.op_type for n in result.model.graph.node}
