"""`boardlift compile` with the real compiler service and nothing else running: an existing YAML as its owner has it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
BOARDLIFT = str(Path(sys.executable).parent / "boardlift")
pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(180), pytest.mark.xdist_group("e2e")]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

YAML = """
model_parameters:
  onnx_model: ./models/policy.onnx
  march: bayes-e
  working_dir: ./out
  output_model_file_prefix: policy
input_parameters:
  input_type_train: featuremap
  input_layout_train: NCHW
  input_type_rt: featuremap
  input_layout_rt: NCHW
calibration_parameters:
  cal_data_dir: ./robot7_f32
  calibration_type: max
compiler_parameters:
  optimize_level: O1
  core_num: 1
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("compiler")
    environment = {
        **os.environ,
        "BOARDLIFT_LISTEN": "127.0.0.1:0",
        "BOARDLIFT_PORT_FILE": str(folder / "port"),
        "BOARDLIFT_STATE_DIR": str(folder / "state"),
        "BOARDLIFT_TOOLCHAIN": os.environ.get("BOARDLIFT_TOOLCHAIN") or str(ROOT / ".boardlift/toolchain"),
    }
    with (folder / "log").open("wb") as log:
        service = subprocess.Popen(
            [sys.executable, "-m", "boardlift_compiler"], env=environment, stdout=log, stderr=log, cwd=folder
        )
    try:
        end = time.monotonic() + 60
        while not (folder / "port").exists():
            assert time.monotonic() < end and service.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
        yield f"127.0.0.1:{(folder / 'port').read_text().strip()}"
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(60)


@pytest.fixture
def boardlift(address: str, tmp_path: Path) -> Run:
    # Port 9 is nobody's: neither orchestrator nor transform service can be reached.
    away = {"BOARDLIFT_SERVER": "127.0.0.1:9", "BOARDLIFT_TRANSFORM": "127.0.0.1:9"}
    environment = {**os.environ, **away, "BOARDLIFT_COMPILER": address}

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        command = [BOARDLIFT, "compile", *(str(w) for w in words)]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder as users of the vendor's tool have it."""
    project = tmp_path / "project"
    for name in ("models", "robot7_f32"):
        (project / name).mkdir(parents=True)
    onnx.save(policy(11), project / "models/policy.onnx")
    for index, sample in enumerate(np.random.default_rng(5).standard_normal((20, 1, 16, 1, 1))):
        sample.astype(np.float32).tofile(project / f"robot7_f32/secret{index}.bin")
    (project / "config.yaml").write_text(YAML)
    return project


def policy(opset: int) -> onnx.ModelProto:
    rng = np.random.default_rng(4)
    weights = [
        numpy_helper.from_array(rng.laplace(scale=0.2, size=shape).astype(np.float32), name)
        for name, shape in (("w0", (32, 16, 1, 1)), ("w1", (4, 32, 1, 1)))
    ]
    nodes = [
        helper.make_node("Conv", ["obs", "w0"], ["a"], name="fc0"),
        helper.make_node("Relu", ["a"], ["b"], name="relu0"),
        helper.make_node("Conv", ["b", "w1"], ["actions"], name="fc1"),
    ]
    inputs = [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, 16, 1, 1])]
    outputs = [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, 4, 1, 1])]
    graph = helper.make_graph(nodes, "policy", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)


def test_an_existing_yaml_is_built_as_it_is(boardlift: Run, project: Path, tmp_path: Path) -> None:
    ended = boardlift("--yaml", project / "config.yaml", "--out", tmp_path / "built", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    answer = json.loads(ended.stdout)
    result = answer["variants"][0]["result"]
    assert (result["samples_read"], result["optimize_level"], result["bpu_nodes"]) == (20, "O1", 2)
    assert [(node["node"], node["dtype"]) for node in result["nodes"]] == [("fc0", "int8"), ("fc1", "int8")]
    assert {figure["kind"] for figure in result["vendor_outputs"][0]["figures"]} == {"simulated"}
    saved = {Path(name).name for name in answer["variants"][0]["files"]}
    assert {"from-yaml.bin", "from-yaml_quantized.onnx", "from-yaml.log", "config.yaml"} <= saved
    told = "".join((tmp_path / "built" / name).read_text() for name in ("config.yaml", "from-yaml.log"))
    assert "secret" not in told and "robot7" not in told
    again = boardlift("--yaml", project / "config.yaml")
    assert again.returncode == 0 and "From the store, nothing ran" in again.stdout


def built(boardlift: Run, *words: object) -> dict[str, bytes]:
    """What a build leaves, by name."""
    ended = boardlift(*words)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "From the store" not in ended.stdout
    folder = Path(str(words[words.index("--out") + 1]))
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def without_name(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {file.replace(name, "NAME", 1): data for file, data in files.items() if not file.endswith(".log")}


@pytest.mark.parametrize("kind", ["int16", "camera"])
def test_what_is_saved_builds_again_as_it_lies_there_to_the_same_bytes(
    boardlift: Run, tmp_path: Path, kind: str
) -> None:
    rng = np.random.default_rng(6)
    model, words = policy(11), ["--variant", "int16", "--level", "O1", "--calibration", "max"]
    samples = {"obs": rng.standard_normal((20, 1, 16, 1, 1)).astype(np.float32)}
    if kind == "camera":
        model = camera()
        words += ["--input", "image:type_train=rgb,type_rt=nv12,norm_type=data_scale,scale=0.0078"]
        samples = {"image": rng.integers(0, 256, (20, 1, 3, 32, 32), np.uint8)}
    onnx.save(model, tmp_path / "secret.onnx")
    np.savez(tmp_path / "secret.npz", **samples)  # type: ignore[arg-type]
    first = built(
        boardlift, tmp_path / "secret.onnx", "--data", tmp_path / "secret.npz", *words, "--out", tmp_path / "first"
    )
    moved = tmp_path / "elsewhere"
    (tmp_path / "first").rename(moved)
    again = built(boardlift, "--yaml", moved / "config.yaml", "--out", tmp_path / "again")
    assert without_name(again, "from-yaml") == without_name(first, "int16")
    assert {"model.onnx", "config.yaml"} < set(first) and sum(name.startswith("calibration0_") for name in first) == 20


def camera() -> onnx.ModelProto:
    weight = numpy_helper.from_array(
        np.random.default_rng(3).laplace(scale=0.1, size=(8, 3, 3, 3)).astype(np.float32), "w"
    )
    nodes = [helper.make_node("Conv", ["image", "w"], ["y"], name="c0", pads=[1, 1, 1, 1])]
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 32, 32])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 32, 32])]
    graph = helper.make_graph(nodes, "camera", inputs, outputs, [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)


def test_what_the_lint_finds_and_what_preflight_refuses(boardlift: Run, project: Path) -> None:
    yaml = project / "config.yaml"
    overrides = "  node_info: {fc0: {ON: BPU}}\n  march: bayes-e"
    yaml.write_text(YAML.replace("  march: bayes-e", overrides).replace("core_num: 1", "core_num: 2"))
    ended = boardlift("--yaml", yaml)
    assert ended.returncode == 2
    assert "error NODE_INFO_SYNTAX [fc0]" in ended.stdout and "error CORE_NUM_UNSUPPORTED" in ended.stdout
    onnx.save(policy(13), project / "models/policy.onnx")
    yaml.write_text(YAML)
    refused = boardlift("--yaml", yaml)
    assert refused.returncode == 2 and "error OPSET_TOO_HIGH" in refused.stderr
    assert "boardlift transform policy.onnx" in refused.stderr and "boardlift run policy.onnx" in refused.stderr
