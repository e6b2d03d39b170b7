"""Parsers on reports recorded from the simulated board and, where they are, on every published real one."""

import re
from pathlib import Path

import pytest
from boardlift.errors import InternalError

from boardlift_board_agent.parse_profile import parse_profile
from boardlift_board_agent.parse_report import parse_header, parse_infer_ms, parse_model_info, parse_perf

HERE = Path(__file__).resolve()
RECORDED = HERE.parents[1] / "testdata"
LOGS = HERE.parents[4] / "shared" / "toolchain" / "logs"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.fixture
def logs() -> Path:
    if not LOGS.is_dir():
        pytest.skip("left out: no shared data folder beside the checkout")
    return LOGS


def log(folder: Path, number: int) -> str:
    return next(folder.glob(f"{number:02d}_*")).read_text()


def test_recorded_padded_integer_outputs() -> None:
    tensors = parse_model_info(recorded("model_info_padded.txt"))
    assert [t.name for t in tensors if t.input] == ["xb", "xa"]
    y1 = next(t for t in tensors if t.name == "y1")
    assert (y1.valid, y1.aligned, y1.stride) == ((1, 3, 7, 9), (1, 3, 7, 16), (1344, 448, 64, 4))
    assert y1.padded
    assert len(y1.scale) == 3
    assert y1.axis == 1
    assert y1.quantization == "SCALE"


def test_recorded_picture_input() -> None:
    image, boxes = parse_model_info(recorded("model_info_camera.txt"))
    assert image.image
    assert image.source == "HB_DNN_INPUT_FROM_PYRAMID"
    assert image.size_bytes == 9216
    assert boxes.layout == "HB_DNN_LAYOUT_NHWC"
    assert (boxes.axis, len(boxes.scale)) == (3, 10)


def test_recorded_perf_with_version_skew() -> None:
    text = recorded("perf_two_threads_skew.txt")
    header, perf = parse_header(text), parse_perf(text)
    assert header.simulated
    assert header.skew == ("3.15.47.0", "3.15.55.0")
    assert header.builder == "1.24.3"
    assert (perf.threads, perf.frames, len(perf.windows)) == (2, 600, 3)
    assert perf.mean_ms == pytest.approx(perf.total_ms / 600, rel=1e-5)
    assert perf.min_ms is not None and perf.max_ms is not None and perf.min_ms < perf.mean_ms < perf.max_ms


def test_recorded_infer_and_refusal() -> None:
    assert len(parse_infer_ms(recorded("infer_policy.txt"))) == 1
    refused = parse_header(recorded("infer_absent.txt"))
    assert refused.error_code == -6000006
    assert refused.errors


def test_recorded_profile() -> None:
    profile = parse_profile(recorded("profiler.log"))
    assert profile.frames == 600
    assert {n.name for n in profile.processors} == {"BPU_inference_time_cost", "CPU_inference_time_cost"}
    assert any(n.name == "policy_subgraph_0" for n in profile.nodes)


def test_broken_off_perf_is_an_error() -> None:
    text = recorded("perf_two_threads_skew.txt").split("Perf result")[0]
    with pytest.raises(InternalError) as caught:
        parse_perf(text)
    assert caught.value.reason == "PERF_UNREADABLE"
    assert caught.value.metadata["missing"] == "fps,mean_ms,total_ms"


def test_model_info_cut_in_a_block_is_an_error() -> None:
    text = recorded("model_info_policy.txt").split("tensor type: HB_DNN_TENSOR_TYPE_F32")[0]
    with pytest.raises(InternalError) as caught:
        parse_model_info(text)
    assert caught.value.reason == "MODEL_INFO_UNREADABLE"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("number", "inputs", "outputs"),
    [(12, 1, 6), (13, 1, 9), (14, 1, 10), (15, 1, 1), (25, 1, 6), (28, 1, 3), (29, 1, 2)],
)
def test_every_real_model_info(logs: Path, number: int, inputs: int, outputs: int) -> None:
    text = log(logs, number)
    tensors = parse_model_info(text)
    assert [sum(t.input for t in tensors), sum(not t.input for t in tensors)] == [inputs, outputs]
    assert all(not t.padded for t in tensors)
    assert len(re.findall(r"^name: ", text.split("_modified.bin")[0], re.M)) == len(tensors)
    header = parse_header(text)
    assert not header.simulated
    assert header.load_ms is not None and header.hbrt.startswith("3.15.") and header.builder.startswith("1.2")
    assert header.bpu_platform == ("" if number == 25 else "1.3.6")


@pytest.mark.shared
def test_real_integer_outputs_keep_their_scales(logs: Path) -> None:
    text = log(logs, 25)
    tensors = parse_model_info(
        text[text.index("hrt_model_exec model_info --model_file yolo11n_detect_bayese_640x640_nv12_m") :]
    )
    scaled = [t for t in tensors if t.quantization == "SCALE"]
    assert [(t.type, t.axis, len(t.scale)) for t in scaled] == [("HB_DNN_TENSOR_TYPE_S32", 3, 64)] * 3
    assert scaled[0].scale[0] == pytest.approx(0.000562654)
    without = next(t for t in parse_model_info(log(logs, 29)) if t.name == "318")
    assert (without.quantization, without.scale, without.axis) == ("SCALE", (), 3)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("number", "threads", "mean", "fps"),
    [(23, 4, 21.25876, 186.47271), (29, 1, 12.42857, 80.263811), (31, 1, 14.245, 69.894)],
)
def test_every_real_perf(logs: Path, number: int, threads: int, mean: float, fps: float) -> None:
    perf = parse_perf(log(logs, number))
    assert (perf.threads, perf.frames, len(perf.windows)) == (threads, 200, 1)
    assert perf.mean_ms == pytest.approx(mean)
    assert perf.fps == pytest.approx(fps)
    assert perf.mean_ms == pytest.approx(perf.total_ms / perf.frames, rel=1e-3)


@pytest.mark.shared
def test_real_version_lines(logs: Path) -> None:
    parts = log(logs, 37).split("\n# ")[1:]
    headers = [parse_header(part) for part in parts]
    assert [h.dnn for h in headers] == ["1.23.5", "1.23.10", "1.24.5", "1.24.5"]
    assert [h.soc for h in headers] == ["", "", "", "x5"]
    assert headers[0].skew == ("3.15.47.0", "3.15.54.0")
    s100 = parse_header(log(logs, 31))
    assert (s100.dnn, s100.hbrt) == ("3.3.3", "4.1.17")
    assert not s100.errors


@pytest.mark.shared
def test_real_profile(logs: Path) -> None:
    profile = parse_profile(log(logs, 35))
    assert profile.fps == pytest.approx(677.619, rel=1e-5)
    assert [n.name for n in profile.tasks] == ["TaskPendingTime", "TaskRunningTime"]
    assert len(profile.nodes) == 5
