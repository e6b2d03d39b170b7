"""Whole models: bodies, functions, weights, foreign nodes, refusals, hostile input."""

from __future__ import annotations

import re
import time

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from boardlift_transform.opset import InvalidModel, UnsupportedDowngrade, downgrade


def run(model: ModelProto, **feeds) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def ops(model: ModelProto) -> list[str]:
    return [n.op_type for n in model.graph.node]


def check_same(model: ModelProto, result: ModelProto, atol: float = 1e-6, **feeds) -> None:
    for want, got in zip(run(model, **feeds), run(result, **feeds), strict=True):
        assert want.dtype == got.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=atol)


def text(source: str, ir: int = 8, opset: int = 18) -> ModelProto:
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> {source}')


RNG = np.random.default_rng(7)
BODIES = """
g (float[2,3] x, bool c) => (float[2] y) {
  y = If (c) <
    then_branch = t () => (float[2] a) {
      axes = Constant <value_ints: ints = [1]> ()
      s = ReduceMax <keepdims = 0> (x, axes)
      a = Identity (s)
    },
    else_branch = e () => (float[2] b) {
      n = Constant <value_ints: ints = [-1]> ()
      m = ReduceMean <keepdims = 1> (x, n)
      b = Squeeze (m, n)
    }
  >
}
"""


@pytest.mark.parametrize("target", [10, 11, 12, 13])
def test_bodies_of_if_are_converted(target):
    model = text(BODIES)
    result = downgrade(model, target)
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    for c in (True, False):
        check_same(model, result, x=x, c=np.array(c))
    assert result.opset_import[0].version == target
    assert result.ir_version <= 7


def test_bodies_of_loop_see_outer_constants():
    model = text("""
      g (float[1,3] x, int64 n) => (float[1,3] y) <int64[1] axes = {0}> {
        go = Constant <value = bool {1}> ()
        y = Loop (n, go, x) <body = b (int64 i, bool cond, float[1,3] v) => (bool next, float[1,3] w) {
          flat = Squeeze (v, axes)
          twice = Add (flat, flat)
          w = Unsqueeze (twice, axes)
          next = Identity (cond)
        }>
      }""")
    result = downgrade(model)
    x = RNG.normal(size=(1, 3)).astype(np.float32)
    check_same(model, result, x=x, n=np.array(3))


def test_scan_bodies_are_converted():
    model = text("""
      g (float[4,3] x, float[3] s) => (float[3] last, float[4,1] sums) <int64[1] axes = {0}> {
        last, sums = Scan <num_scan_inputs = 1, body = b (float[3] a, float[3] v) => (float[3] c, float[1] d) {
          c = Add (a, v)
          d = ReduceSum <keepdims = 1> (c, axes)
        }> (s, x)
      }""")
    x, s = RNG.normal(size=(4, 3)).astype(np.float32), np.zeros(3, np.float32)
    check_same(model, downgrade(model), x=x, s=s)


def test_functions_are_inlined_each_at_its_own_opset():
    model = parser.parse_model("""
      <ir_version: 9, opset_import: ["" : 20, "local" : 1]>
      g (float[2,4] x) => (float[2,4] y) { h = local.norm <eps = 0.5> (x)  y = local.twice (h) }
      <domain: "local", opset_import: ["" : 20]>
      norm <eps: float = 0.1> (v) => (w) {
        e = Constant <value_float: float = @eps> ()
        axes = Constant <value_ints = [-1]> ()
        q = Mul (v, v)  m = ReduceMean (q, axes)  p = Add (m, e)  r = Sqrt (p)  w = Div (v, r)
      }
      <domain: "local", opset_import: ["" : 12]>
      twice (v) => (w) { s = ReduceSum <axes = [1], keepdims = 1> (v)  w = Add (v, s) }
    """)
    result = downgrade(model)
    assert len(result.functions) == 0
    x = RNG.normal(size=(2, 4)).astype(np.float32)
    want = x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.5)
    want = want + want.sum(1, keepdims=True)
    np.testing.assert_allclose(run(result, x=x)[0], want, rtol=1e-5)


def test_a_function_that_calls_itself_is_refused():
    model = parser.parse_model("""
      <ir_version: 9, opset_import: ["" : 20, "l" : 1]>
      g (float[2] x) => (float[2] y) { y = l.a (x) }
      <domain: "l", opset_import: ["" : 20, "l" : 1]> a (v) => (w) { w = l.b (v) }
      <domain: "l", opset_import: ["" : 20, "l" : 1]> b (v) => (w) { u = Relu (v)  w = l.a (u) }
    """)
    with pytest.raises(InvalidModel, match="calls itself"):
        downgrade(model)


PEER_FAULTS = {
    "softmax on an inner axis": ("g (float[2,3,4,5] x) => (float[2,3,4,5] y) { y = Softmax <axis = 1> (x) }", 13),
    "log-softmax on an inner axis": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = LogSoftmax <axis = 1> (x) }", 13),
    "hardmax default axis": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = Hardmax (x) }", 13),
    "identity and relu": ("g (float[2,3] x) => (float[2,3] y) { a = Relu (x)  y = Identity (a) }", 16),
    "dilated average": (
        "g (float[1,2,9,9] x) => (float[1,2,7,7] y) { y = AveragePool <kernel_shape=[2,2], dilations=[2,2]> (x) }", 19,
    ),
    "grouped normalisation": (
        "g (float[2,4,3] x) => (float[2,4,3] y) <float[4] s = {1,2,3,4}, float[4] b = {0,1,0,1}> "
        "{ y = GroupNormalization <num_groups = 2> (x, s, b) }", 21,
    ),
    "resize with axes": (
        "g (float[1,2,4,4] x) => (float[1,2,8,8] y) <float[2] s = {2,2}> { y = Resize <axes = [2,3]> (x, , s) }", 18,
    ),
    "sum of nothing": (
        "g (float[2,3] x) => (float[2,3] y) { y = ReduceSum <noop_with_empty_axes = 1> (x) }", 13,
    ),
    "window in the padding": (
        "g (float[1,1,2,2] x) => (float[1,1,1,1] y) { y = MaxPool <kernel_shape = [3,3], strides = [3,3], "
        "pads = [1,1,1,1], ceil_mode = 1> (x) }", 22,
    ),
    "uneven split": (
        "g (float[7,2] x) => (float[3,2] a, float[3,2] b, float[1,2] c) { a, b, c = Split <num_outputs = 3> (x) }", 18,
    ),
    "part of a shape": ("g (float[2,3,4] x) => (int64[2] y) { y = Shape <start = 1> (x) }", 15),
}  # fmt: skip
"""Models that public converters turn into wrong numbers or illegal graphs, or refuse."""


@pytest.mark.parametrize("target", [10, 11, 12, 13])
@pytest.mark.parametrize("name", PEER_FAULTS)
def test_what_others_get_wrong_is_right(name, target):
    source, opset = PEER_FAULTS[name]
    model = text(source, opset=opset)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    if opset > target:
        check_same(model, downgrade(model, target), x=RNG.normal(size=shape).astype(np.float32))


def test_the_argument_is_never_changed():
    model = text("g (float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 0> (x) }")
    before = model.SerializeToString(deterministic=True)
    downgrade(model)
    assert model.SerializeToString(deterministic=True) == before


def test_a_model_below_the_target_keeps_its_opset():
    model = text("g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }", ir=3, opset=9)
    result = downgrade(model, 11)
    assert result.opset_import[0].version == 9
    assert ops(result) == ["Relu"]


FOREIGN = """<ir_version: 8, opset_import: ["" : 17, "acme" : 2]>
g (float[2,3] x) => (float[2,3] y) { a = Relu (x)  b = acme.Magic <k = 3> (a)  y = Relu (b) }"""


def test_foreign_nodes_pass_with_their_domain():
    result = downgrade(parser.parse_model(FOREIGN))
    assert [(o.domain, o.version) for o in result.opset_import] == [("", 11), ("acme", 2)]
    assert ops(result) == ["Relu", "Magic", "Relu"]


def test_foreign_nodes_can_be_refused():
    with pytest.raises(UnsupportedDowngrade, match=r"acme\.Magic") as why:
        downgrade(parser.parse_model(FOREIGN), foreign_domains="refuse")
    assert why.value.offences[0].op == "acme.Magic"


def test_all_offences_come_at_once_with_reason_and_remedy():
    model = text("""
      g (float[?] x, int64[?] k, float[4,?,2] z) => (float[?] y, float[1] w, int32[?] b) {
        y = ReduceMax <keepdims = 0> (z, k)
        w = STFT (z, k)
        b = BitCast <to = 6> (x)
      }""", opset=26)  # fmt: skip
    with pytest.raises(UnsupportedDowngrade) as why:
        downgrade(model)
    found = why.value
    assert [(o.op, o.version) for o in found.offences] == [("ReduceMax", 20), ("STFT", 17), ("BitCast", 26)] or [
        o.op for o in found.offences
    ] == ["ReduceMax", "STFT", "BitCast"]
    assert all(o.reason and o.remedy and o.node for o in found.offences)
    assert found.reason == "UNSUPPORTED_DOWNGRADE"
    assert found.metadata["count"] == "3"
    assert not found.retryable


def test_initialisers_need_not_be_inputs_and_shared_ones_stay_shared():
    s = numpy_helper.from_array(np.full(4, 0.5, np.float32), "s")
    node = helper.make_node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y"])
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 4, 3, 3]) for n in "xy"]
    graph = helper.make_graph([node], "g", value[:1], value[1:], [s])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    result = downgrade(model)
    assert [t.name for t in result.graph.initializer] == ["s"]
    check_same(model, result, x=RNG.normal(size=(2, 4, 3, 3)).astype(np.float32))


def test_an_overridable_default_that_became_an_attribute_is_no_input_any_more():
    model = text("g (float[2,3] x, int64[1] axes) => (float[2,1] y) { y = ReduceSum (x, axes) }")
    model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axes"))
    result = downgrade(model)
    assert [i.name for i in result.graph.input] == ["x"]
    assert ops(result) == ["ReduceSum"]


def test_external_data_stays_external(tmp_path):
    w = RNG.normal(size=(64, 64)).astype(np.float32)
    model = text(
        "g (float[2,64] x) => (float[2,64] y) { h = MatMul (x, w)  y = Relu (h) }".replace("w)", "w)"), opset=17
    )
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    bare = onnx.load(path, load_external_data=False)
    result = downgrade(bare)
    assert result.graph.initializer[0].data_location == TensorProto.EXTERNAL
    onnx.save(result, tmp_path / "down.onnx")
    loaded = onnx.load(tmp_path / "down.onnx")
    x = RNG.normal(size=(2, 64)).astype(np.float32)
    np.testing.assert_allclose(run(loaded, x=x)[0], np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


def test_given_shapes_are_declared_in_the_result():
    model = text(
        "g (float[N,L,1] s) => (float[?,?,?,2] y) <int64 hop = {8}, int64 size = {16}> { y = STFT (s, hop, , size) }"
    )
    model.graph.input[0].type.tensor_type.shape.dim[2].ClearField("dim_value")
    with pytest.raises(UnsupportedDowngrade, match="give input_shapes"):
        downgrade(model)
    result = downgrade(model, input_shapes={"s": [1, 64, 1]})
    dims = [d.dim_value for d in result.graph.input[0].type.tensor_type.shape.dim]
    assert dims == [1, 64, 1]
    check_same(model, result, atol=1e-4, s=RNG.normal(size=(1, 64, 1)).astype(np.float32))


@pytest.mark.parametrize("opset", [9, 14, 28])
def test_a_target_that_is_not_offered_is_refused(opset):
    with pytest.raises(ValueError, match="choose one of"):
        downgrade(text("g (float[1] x) => (float[1] y) { y = Relu (x) }"), opset)


def test_an_opset_from_the_future_is_refused_by_number():
    model = text("g (float[1] x) => (float[1] y) { y = Relu (x) }", opset=999)
    with pytest.raises((UnsupportedDowngrade, InvalidModel), match="999"):
        downgrade(model)


def make_cycle() -> ModelProto:
    return text("g (float[1] x) => (float[1] y) { a = Add (x, b)  b = Relu (a)  y = Relu (b) }")


def make_duplicate() -> ModelProto:
    return text("g (float[1] x) => (float[1] y) { y = Relu (x)  y = Relu (x) }")


def make_missing() -> ModelProto:
    return text("g (float[1] x) => (float[1] y) { y = Add (x, nowhere) }")


def make_clash() -> ModelProto:
    return text("g (float[2,3] x, float[4,5] z) => (float[2,3] y) { y = Add (x, z) }")


def make_empty() -> ModelProto:
    return ModelProto()


@pytest.mark.parametrize("make", [make_cycle, make_duplicate, make_missing, make_clash, make_empty])
def test_a_broken_model_is_named_as_such(make):
    with pytest.raises(InvalidModel) as why:
        downgrade(make())
    assert why.value.reason == "INVALID_MODEL"
    assert why.value.remedy


def nested(depth: int) -> ModelProto:
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y0"])], "g0", [], [helper.make_value_info("y0", kind)]
    )
    for i in range(1, depth):
        other = helper.make_graph(
            [helper.make_node("Identity", ["x"], [f"z{i}"])], f"e{i}", [], [helper.make_value_info(f"z{i}", kind)]
        )
        node = helper.make_node("If", ["c"], [f"y{i}"], then_branch=graph, else_branch=other)
        graph = helper.make_graph([node], f"g{i}", [], [helper.make_value_info(f"y{i}", kind)])
    graph.input.append(helper.make_value_info("x", kind))
    graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("depth", [8, 22, 24])
def test_deep_nesting_is_converted_or_refused_by_name(depth):
    try:
        downgrade(nested(depth))  # protobuf itself ends at a hundred levels, four to a graph
    except InvalidModel as why:
        assert depth > 20
        assert "deep" in str(why)


def test_unicode_and_empty_names_survive():
    model = text("g (float[2,3] x) => (float[2,3] y) { a = HardSwish (x)  y = Mish (a) }", opset=20)
    for i, node in enumerate(model.graph.node):
        node.name = f"узел/节点 {i}"
    check_same(model, downgrade(model), x=RNG.normal(size=(2, 3)).astype(np.float32))


def test_new_names_never_clash_with_old_ones():
    model = text("g (float[2,3] x) => (float[2,3] y) { z = Gelu (x)  y = Add (z, z) }", opset=20)
    names = re.findall(r"\w+/\w+", " ".join(o for n in downgrade(model).graph.node for o in n.output))
    clash = text("g (float[2,3] x) => (float[2,3] y) { z = Gelu (x)  y = Add (z, z) }", opset=20)
    clash.graph.input[0].name = clash.graph.node[0].input[0] = names[0]
    result = downgrade(clash)
    onnx.checker.check_model(result, full_check=True)


def chain(n: int) -> ModelProto:
    nodes = [
        helper.make_node(("Gelu", "Relu", "HardSwish", "Identity")[i % 4], [f"v{i}"], [f"v{i + 1}"], name=f"n{i}")
        for i in range(n)
    ]
    ends = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [1, 8]) for v in ("v0", f"v{n}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def test_time_stays_linear_in_nodes():
    def seconds(n: int) -> float:
        model = chain(n)
        start = time.process_time()
        downgrade(model)
        return (time.process_time() - start) / n

    seconds(200)
    small, large = min(seconds(1000) for _ in range(2)), seconds(8000)
    assert large < 3 * small + 1e-4, f"{small:.2e} s a node at 1,000, {large:.2e} at 8,000"


def test_doubles_are_never_narrowed():
    source = "g (double[2,8] x) => (double[2,8] y, float[2,1] m) <double[8] s = {1,1,1,1,1,1,1,1}> "
    model = text(source + "{ y, m = LayerNormalization (x, s) }", opset=17)
    x = RNG.normal(size=(2, 8)) + 1e6
    got = run(downgrade(model), x=x)
    away = x - x.mean(1, keepdims=True)
    np.testing.assert_allclose(got[0], away / np.sqrt((away * away).mean(1, keepdims=True) + 1e-5), rtol=1e-8)
    assert got[1].dtype == np.float32


def test_an_empty_optional_input_counts_as_left_out():
    model = text("""g (float[1,2,4,4] x) => (float[1,2,8,8] y) <float[0] none = {}, int64[2] size = {8,8}> {
      y = Resize <axes = [2,3]> (x, none, none, size) }""")
    check_same(model, downgrade(model), x=RNG.normal(size=(1, 2, 4, 4)).astype(np.float32))
