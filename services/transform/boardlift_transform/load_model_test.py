import itertools
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from boardlift_transform import Refusal, transform
from boardlift_transform.build_test_models import GraphBuilder, elu_policy
from boardlift_transform.load_model import load_model


def reason_of(model: onnx.ModelProto | bytes | Path, **options: object) -> str:
    with pytest.raises(Refusal) as caught:
        transform(model, **options)  # type: ignore[arg-type]
    assert caught.value.message
    return caught.value.reason


def _relus(count: int) -> onnx.ModelProto:
    names = ["x", *[f"t{i}" for i in range(count - 1)], "y"]
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise(names)]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"not a model", elu_policy().SerializeToString()[:5000]])
def test_damaged_files(data: bytes) -> None:
    assert reason_of(data) == "MODEL_CORRUPT"


def test_names_that_are_no_text() -> None:
    data = _relus(2).SerializeToString().replace(b"Relu", b"Re\xfeu")
    assert reason_of(data) == "MODEL_CORRUPT"


def test_absent_file_and_folder(tmp_path: Path) -> None:
    assert reason_of(tmp_path / "absent.onnx") == "MODEL_NOT_READABLE"
    assert reason_of(tmp_path) == "MODEL_NOT_READABLE"


def test_empty_graphs() -> None:
    model = _relus(1)
    del model.graph.node[:]
    assert reason_of(model) == "MODEL_EMPTY"
    model = _relus(1)
    del model.graph.output[:]
    assert reason_of(model) == "MODEL_EMPTY"


def test_cycle_and_duplicate_and_missing() -> None:
    model = _relus(3)
    model.graph.node[0].input[0] = "t1"
    assert reason_of(model) == "GRAPH_CYCLIC"
    model = _relus(3)
    model.graph.node[1].output[0] = "t0"
    assert reason_of(model) == "DUPLICATE_NAME"
    model = elu_policy()
    del model.graph.initializer[0]
    assert reason_of(model) == "VALUE_UNDEFINED"


def test_nodes_out_of_order_are_sorted() -> None:
    model = _relus(50)
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert transform(model).proof.passed


@pytest.mark.parametrize("dims", [[1 << 62, 2], [1 << 31, 1 << 31], [1] * 100])
def test_huge_dimensions(dims: list[int]) -> None:
    model = _relus(1)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, dims))
    assert reason_of(model) == "SHAPE_TOO_LARGE"
    model = elu_policy()
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend(dims)
    assert reason_of(model) in ("SHAPE_TOO_LARGE", "INITIALIZER_SIZE")


def test_weights_shorter_than_their_shape() -> None:
    model = elu_policy()
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    assert reason_of(model) == "INITIALIZER_SIZE"


def test_unknown_domain_operator_and_opset() -> None:
    model = _relus(2)
    model.graph.node[0].domain = "com.vendor"
    model.opset_import.append(helper.make_opsetid("com.vendor", 1))
    assert reason_of(model) == "FOREIGN_DOMAIN"
    model = _relus(2)
    model.graph.node[0].op_type = "Nonsense"
    assert reason_of(model) == "MODEL_DOES_NOT_RUN"
    model = _relus(2)
    model.opset_import[0].version = 99
    assert reason_of(model) == "OPSET_UNKNOWN"


def test_unicode_names_survive() -> None:
    b = GraphBuilder(11)
    b.node("Relu", [b.input("Gelenk ü 关节", [1, 4])], "Ausgabe ø")
    b.output("Ausgabe ø", [1, 4])
    result = transform(b.model())
    assert [e.before.name for e in result.io_map] == ["Gelenk ü 关节", "Ausgabe ø"]


def _external(folder: Path, location: str) -> Path:
    model = elu_policy()
    weight = model.graph.initializer[0]
    (folder / "w.bin").write_bytes(weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_weights_beside_the_model_are_read(tmp_path: Path) -> None:
    assert load_model(_external(tmp_path, "w.bin")).proto.graph.initializer[0].raw_data


def _weight_inside(location: str, place: str) -> onnx.ModelProto:
    """`y = x + 1`, the ones in another file and held by a Constant, or by a branch of an If."""
    ones = onnx.TensorProto(name="ones", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    ones.external_data.add(key="location", value=location)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in ("x", "y"))
    nodes = [helper.make_node("Constant", [], ["ones"], value=ones), helper.make_node("Add", ["x", "ones"], ["y"])]
    if place == "branch":
        out = helper.make_tensor_value_info("sum", TensorProto.FLOAT, [1, 4])
        branch = helper.make_graph([helper.make_node("Add", ["x", "ones"], ["sum"])], "then", [], [out], [ones])
        other = helper.make_graph([helper.make_node("Identity", ["x"], ["sum"])], "else", [], [out])
        always = helper.make_tensor("always", TensorProto.BOOL, [], [True])
        nodes = [helper.make_node("Constant", [], ["always"], value=always),
                 helper.make_node("If", ["always"], ["y"], then_branch=branch, else_branch=other)]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("place", ["constant", "branch"])
def test_external_weights_inside_of_nodes_are_read(tmp_path: Path, place: str) -> None:
    (tmp_path / "w.bin").write_bytes(np.ones(4, np.float32).tobytes())
    (tmp_path / "m.onnx").write_bytes(_weight_inside("w.bin", place).SerializeToString())
    result = transform(tmp_path / "m.onnx", samples={"x": np.full((2, 4), 2, np.float32)})
    assert all((r["y"] == 3).all() for r in result.proof.reference)
    assert reason_of(_weight_inside("/etc/hostname", place)) == "EXTERNAL_DATA_PATH"


@pytest.mark.parametrize("location", ["/etc/hostname", "../w.bin", "a/../../w.bin", "", "a\\..\\w.bin"])
def test_external_paths_that_leave_the_folder(tmp_path: Path, location: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    path = _external(inner, location)
    (tmp_path / "w.bin").write_bytes(b"secret")
    assert reason_of(path) == "EXTERNAL_DATA_PATH"


def test_external_symlinks_missing_files_and_wrong_ranges(tmp_path: Path) -> None:
    path = _external(tmp_path, "link.bin")
    assert reason_of(path) == "EXTERNAL_DATA_MISSING"
    (tmp_path / "link.bin").symlink_to("/etc/hostname")
    assert reason_of(path) == "EXTERNAL_DATA_PATH"
    model = onnx.load(str(_external(tmp_path, "w.bin")), load_external_data=False)
    model.graph.initializer[0].external_data.add(key="offset", value="99999999")
    path.write_bytes(model.SerializeToString())
    assert reason_of(path) == "EXTERNAL_DATA_RANGE"


def test_model_given_as_bytes_needs_its_weight_file_by_name(tmp_path: Path) -> None:
    path = _external(tmp_path, "w.bin")
    assert reason_of(path.read_bytes()) == "EXTERNAL_DATA_MISSING"
    files = {"w.bin": tmp_path / "w.bin"}
    assert transform(path.read_bytes(), external=files, outputs=["actions"]).proof.passed


def test_more_than_two_gibibytes(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.truncate((1 << 31) + 10)  # sparse: costs no disk
    assert reason_of(path) == "MODEL_TOO_LARGE"


def _nested(depth: int) -> onnx.ModelProto:
    out = helper.make_tensor_value_info("r0", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["r0"])], "g0", [], [out])
    for level in range(1, depth):
        node = helper.make_node("If", ["c"], [f"r{level}"], then_branch=graph, else_branch=_small(level))
        out = helper.make_tensor_value_info(f"r{level}", TensorProto.FLOAT, None)
        graph = helper.make_graph([node], f"g{level}", [], [out])
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])]
    inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=_small(depth))
    top = helper.make_graph([node], "top", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])])
    return helper.make_model(top, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)


def _small(level: int) -> onnx.GraphProto:
    out = helper.make_tensor_value_info(f"e{level}", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node("Neg", ["x"], [f"e{level}"])], f"e{level}", [], [out])


def test_deep_nesting_and_control_flow_that_is_not_constant() -> None:
    assert reason_of(_nested(28)) == "NESTING_TOO_DEEP"
    with pytest.raises(Refusal, match="OPERATOR_REFUSED"):
        transform(_nested(3), skip_passes=["if-to-where"])
    both = transform(_nested(3))
    assert both.proof.passed and "If" not in {n.op_type for n in both.model.graph.node}
    result = transform(_nested(3), frozen_inputs={"c": True})
    assert [n.op_type for n in result.model.graph.node].count("Relu") == 1


def test_hundred_thousand_nodes_end_within_bounds() -> None:
    model = _relus(100_000)
    assert load_model(model).proto is model
    assert reason_of(_relus(200_001)) == "GRAPH_TOO_LARGE"


def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    reason_of(b"nothing")
    transform(elu_policy())
    assert list(tmp_path.iterdir()) == []


def test_nan_weights_are_named() -> None:
    model = elu_policy()
    bad = numpy_helper.to_array(model.graph.initializer[0]).copy()
    bad[0, 0] = np.nan
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(bad, model.graph.initializer[0].name))
    assert reason_of(model) == "CONSTANT_NAN"


@pytest.mark.parametrize("damage", ["type", "kind"])
def test_types_that_do_not_exist_are_refused(damage: str) -> None:
    model = elu_policy()
    if damage == "type":
        model.graph.input[0].type.tensor_type.elem_type = 33
    else:
        model.graph.input[0].type.optional_type.elem_type.sequence_type.SetInParent()
    with pytest.raises(Refusal) as caught:
        transform(model.SerializeToString())
    assert caught.value.reason == "MODEL_CORRUPT"


def test_a_flag_that_is_no_flag_is_refused_with_its_node() -> None:
    model = elu_policy((9, 8), 3)
    node = next(n for n in model.graph.node if n.op_type == "Gemm")
    next(a for a in node.attribute if a.name == "transB").i = -(1 << 62)
    with pytest.raises(Refusal) as caught:
        load_model(model)
    assert caught.value.reason == "ATTRIBUTE_INVALID" and node.name in str(caught.value)
