import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from boardlift_compiler.foresee import BORDER_CODES, foresee
from boardlift_compiler.foresee_constants import CODES, foresee_constants
from boardlift_compiler.read_model import ModelSummary, read_model
from boardlift_compiler.spec import CompileSpec


def model_of(
    op: str, readers: tuple[str, ...] = (), bounds: tuple[float, ...] = (), **attributes: float
) -> ModelSummary:
    """The operator behind a Conv and a chain of readers behind it."""
    names = [f"bound{k}" for k in range(len(bounds))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["t"], name="conv")]
    own = [] if "Clip" in readers else names
    nodes.append(helper.make_node(op, ["t", *own], ["t0"], name="node", **attributes))
    for k, reader in enumerate(readers):
        more = {"Conv": ["w"], "Concat": ["x"], "Mul": ["x"], "Clip": names}.get(reader, [])
        extra = {"axis": 1} if reader == "Concat" else {}
        nodes.append(helper.make_node(reader, [f"t{k}", *more], [f"t{k + 1}"], name=f"reader{k}", **extra))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6])],
        [helper.make_tensor_value_info(f"t{len(readers)}", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), "w"),
            *(numpy_helper.from_array(np.float32(v), n) for v, n in zip(bounds, names, strict=True)),
        ],
    )
    return read_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)]).SerializeToString())


@pytest.mark.parametrize(
    ("bounds", "readers", "lost"),
    [
        ((-1, 1), (), True),
        ((0, 6), (), True),
        ((-1, 1), ("Concat",), True),
        ((-1, 1), ("Transpose", "Sigmoid"), True),
        ((-1, 1), ("Transpose", "Conv"), False),
        ((0, 6), ("Mul", "Sigmoid"), False),
        ((-1, 2), (), False),
        ((-1,), (), False),
    ],
)
def test_a_clip_is_lost_where_another_threshold_is_in_force(
    bounds: tuple[float, ...], readers: tuple[str, ...], lost: bool
) -> None:
    found = list(foresee_constants(model_of("Clip", readers, bounds)))
    assert [(f.code, f.subject, f.severity) for f in found] == [("CLIP_LOST", "node", "error")] * lost


@pytest.mark.parametrize(
    ("front", "bounds", "lost"),
    [
        ("LeakyRelu", (-1, 1), True),
        ("Softplus", (-1, 1), True),
        ("LeakyRelu", (0, 1), False),
        ("Relu", (-1, 1), False),
        ("Elu", (-1, 1), False),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_clip_behind_a_table_of_one_threshold_is_lost(
    front: str, bounds: tuple[float, float], lost: bool, turned: bool
) -> None:
    model = model_of(front, ("Transpose", "Clip", "Conv") if turned else ("Clip", "Conv"), bounds)
    assert [f.code for f in foresee_constants(model)] == ["CLIP_LOST"] * lost


@pytest.mark.parametrize(
    ("op", "constants", "ignored"),
    [
        ("HardSigmoid", {}, True),
        ("HardSigmoid", {"alpha": 1 / 6}, False),
        ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.4}, True),
        ("Selu", {}, False),
        ("Selu", {"gamma": 1.3}, True),
        ("Elu", {"alpha": 0.5}, False),
    ],
)
def test_constants_that_are_not_the_tables(op: str, constants: dict[str, float], ignored: bool) -> None:
    found = list(foresee_constants(model_of(op, **constants)))
    assert [f.code for f in found] == ["ACTIVATION_CONSTANTS_IGNORED"] * ignored


@pytest.mark.parametrize(
    ("group", "op", "wrong"), [(2, "Add", True), (2, "Sub", True), (1, "Add", False), (2, "Mul", False)]
)
def test_a_constant_behind_a_grouped_conv_transpose(group: int, op: str, wrong: bool) -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["t"], name="up", group=group),
        helper.make_node(op, ["t", "c"], ["y"], name="node"),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, 6, 6]) for n in "xy"]
    weights = {"w": np.ones((4, 4 // group, 1, 1), np.float32), "c": np.ones((4, 1, 1), np.float32)}
    tensors = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)]).SerializeToString()
    found = list(foresee_constants(read_model(raw)))
    assert [(f.code, f.subject) for f in found] == [("GROUPED_BIAS_WRONG", "node")] * wrong


def test_a_check_tells_it_and_a_compile_keeps_it() -> None:
    found = foresee(CompileSpec(), model_of("HardSigmoid"))
    assert [f.code for f in found] == ["ACTIVATION_CONSTANTS_IGNORED"]
    assert CODES <= BORDER_CODES
