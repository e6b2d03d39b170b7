"""`boardlift compile` against the fake server: from options, and from an existing makertbin YAML."""

from __future__ import annotations

import io

import numpy as np
import pytest

from boardlift.testing import FakeServer, Scenario, StageScript
from boardlift.v1 import compiler_pb2, toolchain_pb2

# An ONNX graph with one input "obs" of [1, 3] and nothing else.
DIMS = b"\x0a\x02\x08\x01\x0a\x02\x08\x03"
KIND = b"\x0a" + bytes([len(DIMS) + 4]) + b"\x08\x01\x12" + bytes([len(DIMS)]) + DIMS
INPUT = b"\x0a\x03obs\x12" + bytes([len(KIND)]) + KIND
GRAPH = b"\x12\x01g\x5a" + bytes([len(INPUT)]) + INPUT
MODEL = b"\x08\x07\x3a" + bytes([len(GRAPH)]) + GRAPH


@pytest.fixture
def model(tmp_path):
    (tmp_path / "policy.onnx").write_bytes(MODEL)
    return tmp_path / "policy.onnx"


@pytest.fixture
def yaml(server, tmp_path, model):
    """A YAML beside its model and samples, and the answer of the service to it."""
    folder = tmp_path / "robot7_f32"
    folder.mkdir()
    for index in range(4):
        np.full(3, index, np.float32).tofile(folder / f"secret{index}.bin")
    (tmp_path / "config.yaml").write_text("model_parameters: {}")
    item = compiler_pb2.InputSpec(calibration_dtype="float32")
    server.compiler.converted = compiler_pb2.ConvertConfigResponse(
        variant=compiler_pb2.VariantSpec(name="from-yaml", inputs=[item]),
        paths={"onnx_model": "policy.onnx", "cal_data_dir": "robot7_f32"},
        findings=[
            toolchain_pb2.Finding(
                code="LEVEL_DEFAULT", severity=toolchain_pb2.Finding.SEVERITY_WARNING, message="Made up."
            )
        ],
    )
    return tmp_path / "config.yaml"


def sent_samples(server):
    data = server.artifacts.stored[server.compiler.requests[-1].calibration.sha256][0]
    with np.load(io.BytesIO(data)) as loaded:
        return data, {name: loaded[name] for name in loaded.files if name != "dataset.json"}


def test_builds_and_prints_every_figure_with_its_kind(boardlift, server, model, data, tmp_path):
    ended = boardlift("compile", model, "--data", data, "--level", "O2", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["Gemm_0", "HzSQuantizedConv", "BPU", "0", "int8", "0.990000", "1.5"] in lines
    assert ["Elu_1", "Elu", "CPU", "float", "made", "up"] in lines
    assert ["actions", "cosine", "0.98", "simulated"] in lines
    assert ["main_graph_subgraph_0", "estimated_latency_us", "64", "us", "estimated"] in lines
    assert "compile int8: calibrate 3/6 (50%)" in ended.err
    request = server.compiler.requests[-1]
    assert (request.variant.preset, request.variant.compiler.optimize_level) == ("int8", "O2")
    saved = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert saved == ["config.yaml", "int8.bin", "int8.log", "int8_quantized.onnx", "model.onnx"]
    assert (tmp_path / "out/int8.bin").read_bytes() == b"made up int8"


def test_only_calibration_samples_are_sent(boardlift, server, model, data):
    assert boardlift("compile", model, "--data", data).code == 0
    assert sent_samples(server)[1]["obs"].shape == (30, 3)


def test_samples_of_another_name_are_refused_as_a_job_refuses_them(boardlift, model, tmp_path):
    np.savez(tmp_path / "d.npz", observation=np.ones((4, 3), np.float32))
    ended = boardlift("compile", model, "--data", tmp_path / "d.npz")
    assert ended.code == 2 and "DATASET_INPUT_MISSING" in ended.err and "it has observation" in ended.err


def test_samples_of_an_input_that_a_transform_renamed_are_taken_and_that_is_said(boardlift, server, model, tmp_path):
    pair = b"\x0a\x10boardlift.origin\x12\x0bobservation"
    item = INPUT + b"\x22" + bytes([len(pair)]) + pair
    graph = b"\x12\x01g\x5a" + bytes([len(item)]) + item
    model.write_bytes(b"\x08\x07\x3a" + bytes([len(graph)]) + graph)
    np.savez(tmp_path / "d.npz", observation=np.ones((4, 3), np.float32))
    ended = boardlift("compile", model, "--data", tmp_path / "d.npz")
    assert ended.code == 0 and "INPUT_NAME_TAKEN" in ended.out
    assert list(sent_samples(server)[1]) == ["obs"]


def test_a_silent_fallback_fails_and_several_variants_have_their_own_folders(boardlift, model, data, tmp_path):
    words = ("compile", model, "--data", data, "--variant", "int8", "--variant", "int16", "--out", tmp_path / "out")
    ended = boardlift(*words)
    assert ended.code == 1 and "error INT16_FELL_BACK [Gemm_0]" in ended.out
    assert (tmp_path / "out/int16/int16.bin").is_file()
    answer = boardlift(*words, "--json").json
    assert [v["variant"] for v in answer["variants"]] == ["int8", "int16"] and answer["exit_code"] == 1
    assert len(answer["variants"][0]["files"]) == 4


@pytest.mark.parametrize(("user_fault", "code"), [(True, 2), (False, 3)])
def test_a_refusal_names_the_commands_that_cure_it(boardlift, monkeypatch, model, data, user_fault, code):
    script = StageScript(failure_code="OPSET_TOO_HIGH", user_fault=user_fault)
    with FakeServer(Scenario(stages={"compile": script})) as server:
        monkeypatch.setenv("BOARDLIFT_COMPILER", server.address)
        ended = boardlift("compile", model, "--data", data)
    assert ended.code == code and "error OPSET_TOO_HIGH" in ended.err
    assert "boardlift transform policy.onnx" in ended.err and "boardlift run policy.onnx" in ended.err


def test_model_and_samples_are_put_beside_the_saved_yaml(boardlift, server, yaml, tmp_path):
    server.compiler.converted.variant.inputs[0].name = "obs"
    out = tmp_path / "out"
    ended = boardlift("compile", "--yaml", yaml, "--out", out)
    assert ended.code == 0 and f"Build it again: boardlift compile --yaml {out / 'config.yaml'}" in ended.out
    assert (out / "policy.onnx").read_bytes() == MODEL
    files = sorted((out / "robot7_f32").iterdir())
    assert [p.name for p in files] == [f"{k:06d}.bin" for k in range(4)]
    np.testing.assert_array_equal(np.fromfile(files[3], np.float32), [3, 3, 3])
    assert boardlift("compile", "--yaml", yaml, "--out", out).code == 0


def test_files_that_no_build_left_are_not_replaced(boardlift, server, model, data, tmp_path):
    out = tmp_path / "out"
    (out / "calibration0_f32").mkdir(parents=True)
    ended = boardlift("compile", model, "--data", data, "--out", out)
    assert ended.code == 2 and "OUT_TAKEN" in ended.err and not server.compiler.requests
    (out / "calibration0_f32").rmdir()
    (out / "model.onnx").write_bytes(b"mine")
    assert boardlift("compile", model, "--data", data, "--out", out).code == 2
    assert (out / "model.onnx").read_bytes() == b"mine"


def test_a_yaml_that_points_out_of_its_folder_is_not_followed(boardlift, server, yaml, tmp_path):
    server.compiler.converted.variant.inputs[0].name = "obs"
    (tmp_path / "project").mkdir()
    (tmp_path / "policy.onnx").rename(tmp_path / "project/policy.onnx")
    server.compiler.converted.paths["onnx_model"] = "project/policy.onnx"
    ended = boardlift("compile", "--yaml", yaml, "--out", tmp_path / "out")
    assert ended.code == 2 and "CONFIG_PATH" in ended.err


def test_a_folder_of_the_users_is_never_emptied_for_samples(boardlift, server, yaml, tmp_path):
    server.compiler.converted.variant.inputs[0].name = "obs"
    mine = tmp_path / "out/robot7_f32/thesis.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    ended = boardlift("compile", "--yaml", yaml, "--out", tmp_path / "out")
    assert ended.code == 2 and "CALIBRATION_FOLDER_INVALID" in ended.err
    assert mine.read_text() == "mine"


def test_plan_prints_the_tools_yaml(boardlift, server, model, data):
    ended = boardlift("compile", model, "--data", data, "--plan")
    assert ended.code == 0 and "made_up: true" in ended.out and "Not saved" not in ended.out
    assert server.compiler.requests[-1].validate_only


def test_a_yaml_is_taken_with_its_model_and_folders_but_without_their_names(boardlift, server, yaml):
    ended = boardlift("compile", "--yaml", yaml)
    assert ended.code == 0, ended.err
    assert "warning LEVEL_DEFAULT" in ended.out and "from-yaml: compiled" in ended.out
    request = server.compiler.requests[-1]
    assert [item.name for item in request.variant.inputs] == ["obs"]
    assert server.artifacts.stored[request.model.sha256][0] == MODEL
    data, arrays = sent_samples(server)
    np.testing.assert_array_equal(arrays["obs"], np.arange(4, dtype=np.float32)[:, None, None].repeat(3, 2))
    assert b"secret" not in data and b"robot7" not in data


def test_model_and_data_of_the_command_line_win_over_the_yaml(boardlift, server, yaml, model, data, tmp_path):
    other = tmp_path / "other.onnx"
    model.rename(other)
    assert boardlift("compile", "--yaml", yaml).code == 2
    assert boardlift("compile", other, "--yaml", yaml, "--data", data).code == 0
    assert sent_samples(server)[1]["obs"].shape == (30, 3)


def test_lint_alone_and_a_yaml_that_cannot_be_used(boardlift, server, yaml):
    ended = boardlift("compile", "--yaml", yaml, "--lint")
    assert ended.code == 0 and ended.out.endswith("Usable.\n")
    server.compiler.converted.ClearField("variant")
    server.compiler.converted.findings.add(
        code="NODE_INFO_SYNTAX", severity=toolchain_pb2.Finding.SEVERITY_ERROR, message="ON is not quoted."
    )
    ended = boardlift("compile", "--yaml", yaml)
    assert ended.code == 2 and "error NODE_INFO_SYNTAX: ON is not quoted." in ended.out
    assert boardlift("compile", "--yaml", yaml, "--json").json["exit_code"] == 2
    assert not server.compiler.requests


def test_folders_that_cannot_be_used(boardlift, server, yaml):
    for paths, text in (({}, "names 0 calibration folders for 1"), ({"cal_data_dir": "absent"}, "is not there")):
        del server.compiler.converted.paths["cal_data_dir"]
        server.compiler.converted.paths.update(paths or {"cal_data_dir": ""})
        ended = boardlift("compile", "--yaml", yaml)
        assert ended.code == 2 and text in ended.err and "CALIBRATION_FOLDER_INVALID" in ended.err


@pytest.mark.parametrize("method", ["skip", "load"])
def test_a_build_without_calibration_needs_no_folder(boardlift, server, yaml, method):
    server.compiler.converted.variant.calibration.method = method
    del server.compiler.converted.paths["cal_data_dir"]
    assert boardlift("compile", "--yaml", yaml).code == 0
    assert not server.compiler.requests[-1].HasField("calibration")


def test_samples_of_another_type_than_the_tool_takes_are_refused_with_the_way_out(boardlift, server, yaml):
    server.compiler.converted.variant.inputs[0].calibration_dtype = ""
    ended = boardlift("compile", "--yaml", yaml)
    assert ended.code == 2 and "CALIBRATION_FOLDER_INVALID" in ended.err and "cal_data_type: float32" in ended.err
    assert not server.compiler.requests


def test_wrong_use(boardlift, model, data, yaml):
    for words in ((), (model,), ("--lint", model), ("--yaml", yaml, "--level", "O1"), ("--yaml", "absent.yaml")):
        assert boardlift("compile", *words).code == 2
