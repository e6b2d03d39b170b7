"""The stand-in as a process, on real compiled models."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.toolchain
LAUNCH = "from boardlift_simulator.launch import {0}; {0}()"


class Tool:
    def __init__(self, toolchain: Path, models: Path, folder: Path) -> None:
        self.models, self.folder = models, folder
        self.environment = {**os.environ, "BOARDLIFT_TOOLCHAIN": str(toolchain), "HOME": str(folder)}
        for key in [k for k in self.environment if k.startswith("BOARDLIFT_SIMULATOR_")]:
            del self.environment[key]

    def __call__(self, *words: str, program: str = "main", **sick: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **{f"BOARDLIFT_SIMULATOR_{k.upper()}": v for k, v in sick.items()}}
        command = [sys.executable, "-c", LAUNCH.format(program), *words]
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=60)

    def model(self, name: str) -> str:
        return str(self.models / name / f"{name}.bin")

    def feed(self, name: str, array: np.ndarray) -> str:
        path = self.folder / f"{name}.in.bin"
        array.tofile(path)
        return str(path)

    def infer(self, name: str, inputs: list[str], out: str, *more: str, **sick: str) -> dict[str, bytes]:
        (self.folder / out).mkdir(exist_ok=True)
        done = self(
            "infer", f"--model_file={self.model(name)}", "--input_file", ",".join(inputs), "--enable_dump=true",
            "--dump_path", out, *more, **sick,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "SIMULATED" in done.stdout
        return {p.name: p.read_bytes() for p in sorted((self.folder / out).iterdir())}


@pytest.fixture
def tool(toolchain: Path, compiled_models: Path, tmp_path: Path) -> Tool:
    return Tool(toolchain, compiled_models, tmp_path)


@pytest.mark.parametrize("name", ["policy16", "policy8", "plain"])
def test_compiled_code_equals_quantised_model_bit_for_bit(tool: Tool, name: str) -> None:
    rng = np.random.default_rng(3)
    shapes = {"obs_4d": (1, 1, 1, 225)} if name.startswith("policy") else {"xa": (1, 3, 9, 11), "xb": (1, 5, 9, 11)}
    files = {k: tool.feed(k, rng.standard_normal(s).astype(np.float32)) for k, s in shapes.items()}
    info = tool("model_info", "--model_file", tool.model(name)).stdout
    order = re.findall(r"input\[\d+\]: \nname: (\S+)", info)
    inputs = [files[n] for n in order]
    compiled = tool.infer(name, inputs, "compiled", engine="compiled")
    runtime = tool.infer(name, inputs, "runtime", engine="runtime")
    assert compiled == runtime
    assert all(np.frombuffer(v, np.float32).std() > 0 for v in compiled.values())


@pytest.mark.parametrize(
    ("name", "companion", "engine"),
    [("policy8", True, "compiled"), ("threshold", True, "runtime"), ("threshold", False, "")],
)
def test_infer_says_which_engine_computed(tool: Tool, name: str, companion: bool, engine: str) -> None:
    model = tool.folder / f"{name}.bin"
    model.write_bytes(Path(tool.model(name)).read_bytes())
    if companion:
        quantized = f"{name}_quantized_model.onnx"
        (tool.folder / quantized).write_bytes((Path(tool.model(name)).parent / quantized).read_bytes())
    feed = tool.feed("x", np.zeros({"policy8": 225, "threshold": 144}[name], np.float32))
    done = tool("infer", f"--model_file={model}", f"--input_file={feed}")
    assert re.findall(r"^\[SIMULATED\] engine (\w+):", done.stdout, re.MULTILINE) == ([engine] if engine else [])
    assert (done.returncode, "ThresholdedRelu" in done.stdout) == ((0, False) if engine else (1, True))


def test_model_info_shows_padding_and_scales_of_integer_outputs(tool: Tool) -> None:
    done = tool("model_info", f"--model_file={tool.model('padded')}")
    assert done.returncode == 0
    assert "valid shape: (1,3,7,9,)\naligned shape: (1,3,7,16,)\naligned byte size: 1344\n" in done.stdout
    assert "tensor type: HB_DNN_TENSOR_TYPE_S32" in done.stdout
    assert "stride: (1344,448,64,4,)" in done.stdout
    scales = re.findall(r"scale data: (\S+)", done.stdout)
    assert [s.count(",") for s in scales] == [5, 3]


def test_picture_input_and_channel_last_output(tool: Tool) -> None:
    done = tool("model_info", f"--model_file={tool.model('camera')}")
    assert "input source: HB_DNN_INPUT_FROM_PYRAMID" in done.stdout
    assert "tensor type: HB_DNN_IMG_TYPE_NV12" in done.stdout
    assert "stride: (0,0,0,0,)" in done.stdout
    assert "aligned byte size: 9216" in done.stdout
    assert "tensor layout: HB_DNN_LAYOUT_NHWC" in done.stdout
    assert "quantizeAxis: 3" in done.stdout


def test_integer_output_dump_is_padded_and_misread_is_not(tool: Tool) -> None:
    rng = np.random.default_rng(4)
    files = [tool.feed("xb", rng.standard_normal((1, 5, 9, 11)).astype(np.float32)),
             tool.feed("xa", rng.standard_normal((1, 3, 9, 11)).astype(np.float32))]  # fmt: skip
    right = tool.infer("padded", files, "right")["model_infer_output_1_y1.bin"]
    wrong = tool.infer("padded", files, "wrong", sick="misread")["model_infer_output_1_y1.bin"]
    assert len(right) == len(wrong) == 1344
    values = np.ndarray((1, 3, 7, 9), np.int32, right, strides=(1344, 448, 64, 4))
    assert np.array_equal(np.frombuffer(wrong, np.int32)[: values.size].reshape(values.shape), values)
    assert not np.array_equal(np.frombuffer(right, np.int32)[: values.size].reshape(values.shape), values)


def test_text_dump_dequantised_equals_binary_times_scale(tool: Tool) -> None:
    image = tool.feed("nv12", np.random.default_rng(5).integers(0, 256, 9216).astype(np.uint8))
    binary = tool.infer("camera", [image], "bin")["model_infer_output_0_boxes.bin"]
    text = tool.infer("camera", [image], "txt", "--dump_format=txt", "--hybrid_dequantize_process=true")
    raw = np.ndarray((1, 32, 48, 10), np.int32, binary, strides=(98304, 3072, 64, 4))
    values = np.array(text["model_infer_output_0_boxes.txt"].split(), np.float64).reshape(raw.shape)
    nonzero = raw != 0
    ratio = np.where(nonzero, values, 0) / np.where(nonzero, raw, 1)
    spread = [np.ptp(ratio[..., c][nonzero[..., c]]) / ratio[..., c][nonzero[..., c]].mean() for c in range(10)]
    assert max(spread) < 1e-3


def test_perf_repeats_and_follows_the_stated_cost(tool: Tool) -> None:
    words = ("perf", f"--model_file={tool.model('policy16')}", "--frame_count=400", "--thread_num=1")
    one, again = tool(*words).stdout, tool(*words).stdout
    assert one == again or _numbers(one) == _numbers(again)
    average = float(re.search(r"Average    latency    is: (\S+) ms", one)[1])
    assert 0.30 < average < 0.60
    assert one.count("Frame count: ") == 2
    slow = tool(*words, sick="slow=3").stdout
    assert float(re.search(r"Average    latency    is: (\S+) ms", slow)[1]) == pytest.approx(3 * average, rel=1e-3)


def _numbers(text: str) -> list[str]:
    return re.findall(r"is: (\S+)", text)


def test_profile_log_has_the_documented_blocks(tool: Tool) -> None:
    done = tool("perf", f"--model_file={tool.model('plain')}", "--profile_path=.")
    assert done.returncode == 0, done.stdout
    first, second = (tool.folder / "profiler.log").read_text().split("***")
    assert json.loads(first)["running_condition"]["frame_count"] == 200
    body = json.loads(second)
    assert {"processor_latency", "model_latency", "task_latency"} == set(body)
    assert "two_subgraph_0" in body["model_latency"]


def test_sampler_prints_every_frame(tool: Tool) -> None:
    done = tool(f"--model_file={tool.model('policy16')}", "--frame_count=300", program="main_sampler")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["simulated"] is True
    assert len([x for x in lines if "ms" in x]) == 300
    assert lines[-1]["run_ms"] > 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["infer", "--model-file=x.bin"], "unknown command line flag 'model-file'"),
        (["infer", "--model_file=absent.bin"], "error code:-6000006"),
        (["perf", "--thread_num=many", "--model_file=x"], "illegal value 'many'"),
        (["perf"], "names 0 files"),
    ],
)
def test_refusals_exit_one_with_a_code(tool: Tool, words: list[str], text: str) -> None:
    done = tool(*words)
    assert done.returncode == 1
    assert text in done.stdout
    assert "SIMULATED" in done.stdout


def test_not_a_model_is_refused(tool: Tool) -> None:
    (tool.folder / "junk.bin").write_bytes(b"\xff" * 100)
    done = tool("model_info", "--model_file=junk.bin")
    assert done.returncode == 1
    assert "error code:-6000002" in done.stdout


def test_input_of_wrong_size_is_refused(tool: Tool) -> None:
    path = tool.feed("short", np.zeros(224, np.float32))
    done = tool("infer", f"--model_file={tool.model('policy16')}", f"--input_file={path}")
    assert done.returncode == 1
    assert "has 896 bytes, obs_4d needs 900" in done.stdout


def test_flaky_fails_first_and_recovers(tool: Tool) -> None:
    words = ("perf", f"--model_file={tool.model('policy16')}")
    state = str(tool.folder / "state")
    codes = [tool(*words, sick="flaky=2", state=state).returncode for _ in range(3)]
    assert codes == [1, 1, 0]


def test_dying_is_a_kill(tool: Tool) -> None:
    done = tool("perf", f"--model_file={tool.model('policy16')}", "--frame_count=400", sick="dying")
    assert done.returncode == -signal.SIGKILL
    assert "Frame count: 200" in done.stdout
    assert "Perf result" not in done.stdout


def test_hanging_never_ends(tool: Tool) -> None:
    command = [sys.executable, "-c", LAUNCH.format("main"), "perf", f"--model_file={tool.model('policy16')}"]
    process = subprocess.Popen(command, env={**tool.environment, "BOARDLIFT_SIMULATOR_SICK": "hanging"},
                               stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        assert process.stdout is not None
        assert "hrt_model_exec perf" in process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
    finally:
        process.kill()
        process.communicate()


def test_version_skew_is_warned_of(tool: Tool) -> None:
    done = tool("perf", f"--model_file={tool.model('policy16')}", sick="skew")
    assert (
        "Inconsistency between the hbrt library version 3.15.47.0 and the model build version 3.15.55.0" in done.stdout
    )


def test_disk_full_leaves_half_a_file(tool: Tool) -> None:
    path = tool.feed("x", np.zeros((1, 1, 1, 225), np.float32))
    done = tool(
        "infer", f"--model_file={tool.model('policy16')}", f"--input_file={path}", "--enable_dump", sick="diskfull"
    )
    assert done.returncode == 1
    assert "No space left on device" in done.stdout
    assert (tool.folder / "model_infer_output_0_actions.bin").stat().st_size == 24


def test_wrong_outputs_differ(tool: Tool) -> None:
    path = tool.feed("x", np.random.default_rng(6).standard_normal((1, 1, 1, 225)).astype(np.float32))
    right = tool.infer("policy16", [path], "right")
    wrong = tool.infer("policy16", [path], "wrong", sick="wrong")
    assert right != wrong


def test_restless_answers_differently_every_second_time(tool: Tool) -> None:
    path = tool.feed("x", np.random.default_rng(6).standard_normal((1, 1, 1, 225)).astype(np.float32))
    state = str(tool.folder / "state")
    one, two, three = (tool.infer("policy16", [path], n, sick="restless", state=state) for n in ("a", "b", "c"))
    assert one == three != two


def test_reports_on_the_code_are_kept_below_home_and_a_broken_one_is_made_again(tool: Tool) -> None:
    home = tool.folder
    words = ("perf", f"--model_file={tool.model('policy16')}", "--frame_count=20")

    def figures() -> str:
        return tool(*words).stdout.split("Frame count")[1]

    first = figures()
    kept = sorted((home / ".cache/boardlift-simulator").iterdir())
    assert len(kept) == 2
    for path in kept:
        path.write_text("{")
    assert figures() == first == figures()
    assert all(path.read_text() != "{" for path in kept)
    other = tool("model_info", f"--model_file={tool.model('policy8')}")
    assert other.returncode == 0
    assert len(list((home / ".cache/boardlift-simulator").iterdir())) == 3


def test_missing_toolchain_says_how_to_get_it(tool: Tool, tmp_path: Path) -> None:
    tool.environment["BOARDLIFT_TOOLCHAIN"] = str(tmp_path / "nowhere")
    done = tool("model_info")
    assert done.returncode == 127
    assert "BOARDLIFT_TOOLCHAIN" in done.stderr
