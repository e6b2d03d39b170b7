"""Simulating a build from the command line, against the fake server."""

from __future__ import annotations

import pytest

from boardlift.testing import FakeServer, Scenario, StageScript


@pytest.fixture
def build(tmp_path):
    files = []
    for name in ("m.bin", "m_quantized.onnx"):
        (tmp_path / name).write_bytes(name.encode())
        files.append(tmp_path / name)
    return ["--compiled", files[0], "--quantized", files[1]]


def test_prints_errors_and_bits(boardlift, server, model, data, build, tmp_path):
    out = tmp_path / "outputs.npz"
    ended = boardlift("simulate", model, "--data", data, *build, "--bit-check-samples", "2", "-o", out)
    assert ended.code == 0 and out.read_bytes() == b"made up outputs"
    assert "actions  256      cosine              0.98 simulated" in ended.out
    assert "main_graph_subgraph_0  actions_quantized  2        equal" in ended.out and "bit exact: yes" in ended.out
    request = server.compiler.simulated[-1]
    assert request.bit_check_samples == 2
    assert request.compiled_model.sha256 != request.quantized_model.sha256


def test_the_truth_is_asked_for_with_the_mean_and_scale_of_the_build(boardlift, server, model, data, build):
    form = "image:type_train=rgb,type_rt=nv12,mean=1,2,3,scale=0.5"
    assert boardlift("simulate", model, "--data", data, *build, "--input", form, "--input", "obs:shape=1x2").code == 0
    asked = server.transform.requests[-1].spec.normalised_inputs
    assert [(i.name, list(i.mean), list(i.scale)) for i in asked] == [("image", [1, 2, 3], [0.5])]


@pytest.mark.parametrize(("bits", "code"), [("differs", 1), ("not compared", 5)])
def test_exit_code_says_what_the_bits_are(boardlift, server, model, data, build, bits, code):
    server.compiler.bits = bits
    ended = boardlift("simulate", model, "--data", data, *build)
    assert ended.code == code and f"  {bits} " in ended.out and "bit exact: no" in ended.out
    assert not boardlift("simulate", model, "--data", data, *build, "--json").json.get("bit_exact")


def test_a_file_that_is_not_there(boardlift, model, data, build):
    assert boardlift("simulate", model, "--data", data, *build[:3], "none.onnx").code == 2


def test_a_broken_compiled_model_is_the_users_and_named(boardlift, monkeypatch, model, data, build):
    with FakeServer(Scenario(stages={"simulate": StageScript(failure_code="COMPILED_MODEL_UNREADABLE")})) as server:
        for name in ("BOARDLIFT_TRANSFORM", "BOARDLIFT_COMPILER"):
            monkeypatch.setenv(name, server.address)
        ended = boardlift("simulate", model, "--data", data, *build, "--server", server.address)
    assert ended.code == 2 and f"at: {build[1]}" in ended.err
