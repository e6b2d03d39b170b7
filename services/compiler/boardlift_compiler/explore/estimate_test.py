from __future__ import annotations

import csv
from pathlib import Path

import pytest

from boardlift_compiler.explore.estimate import (
    FITTED_US,
    HANDOVER_HIGH_US,
    HANDOVER_LOW_US,
    HANDOVER_US,
    WORST_MS,
    estimate_board,
    estimate_compiled,
    find_islands,
    float_output_elements,
    limits_of,
)
from boardlift_compiler.read_bin import BinNode, BinTensor, CompiledModel

ESTIMATES = Path(__file__).resolve().parents[5] / "shared/toolchain/compile_estimates_x5.csv"
DETECT, CLASSIFY = 8400 * 144, 1000
FLOAT_OUTPUTS = {"yolov8n": DETECT, "yolo11n": DETECT, "yolov5nu": DETECT, "yolov8n_cls": CLASSIFY}


def split_model(**options: str) -> CompiledModel:
    nodes = (
        BinNode("q", "Quantize", ("obs",), ("obs_q",)),
        BinNode("g0", "BPU", ("obs_q",), ("mid_q", "kept_q")),
        BinNode("d", "Dequantize", ("mid_q",), ("mid",)),
        BinNode("soft", "Softmax", ("mid",), ("soft_out",)),
        BinNode("q2", "Quantize", ("soft_out",), ("soft_q",)),
        BinNode("g1", "BPU", ("soft_q", "kept_q"), ("out_q",)),
        BinNode("d2", "Dequantize", ("out_q",), ("out_f",)),
        BinNode("shape", "Reshape", ("out_f",), ("actions",)),
    )
    tensors = {
        "mid_q": BinTensor("int8", (1, 16)),
        "soft_q": BinTensor("int8", (1, 1, 1, 16)),
        "out_q": BinTensor("int8", (1, 12, 1, 1)),
        "actions": BinTensor("float32", (1, 12)),
    }
    return CompiledModel("m", nodes, tensors, b"code", dict(options))


def test_island_between_subgraphs_costs_a_handover_and_one_at_the_end_costs_none():
    middle, end = find_islands(split_model())
    assert middle.names == ("soft (Softmax)",)
    assert middle.splits and middle.elements == 32
    assert middle.handover_us[0] == pytest.approx(HANDOVER_US + 0.078, abs=0.001)
    assert end.names == ("shape (Reshape)",) and end.handover_us == (0.0, 0.0, 0.0)


def test_only_float_outputs_that_leave_the_model_count():
    assert float_output_elements(split_model()) == 12


@pytest.mark.parametrize(
    ("int8", "int16"),
    [
        pytest.param([314.2, 49.7], [463.9], id="policy: 1.584 ms split, 1.402 ms whole on a board"),
        pytest.param([284.3, 80.8], [424.5], id="experts: 1.498 ms split, 0.873 ms whole on a board"),
    ],
)
def test_a_split_model_is_slower_than_a_whole_one_with_a_higher_compiler_estimate(int8, int16):
    split, whole = estimate_board(int8, 12), estimate_board(int16, 12)
    assert split.bpu_us < whole.bpu_us
    assert split.board_ms > whole.board_ms


@pytest.mark.parametrize(
    ("subgraphs", "measured_ms"),
    [([314.2, 49.7], 1.583870), ([463.9], 1.401526), ([284.3, 80.8], 1.498257), ([424.5], 0.872819)],
)
def test_published_policies_lie_in_the_band(subgraphs, measured_ms):
    estimate = estimate_board(subgraphs, 12)
    assert estimate.low_ms <= measured_ms <= estimate.high_ms


def test_handover_constants_are_those_of_the_two_published_pairs():
    def extra(split_ms, split_us, whole_ms, whole_us):
        return (split_ms * 1000 - split_us) - (whole_ms * 1000 - whole_us)

    pairs = [extra(1.583870, 363.9, 1.401526, 463.9), extra(1.498257, 365.1, 0.872819, 424.5)]
    assert min(pairs) == pytest.approx(HANDOVER_LOW_US, abs=1)
    assert max(pairs) == pytest.approx(HANDOVER_HIGH_US, abs=1)
    assert sum(pairs) / 2 == pytest.approx(HANDOVER_US, abs=1)


def test_low_end_is_never_below_the_compilers_own_figure():
    assert estimate_board([400.0], 12).low_ms == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({"INPUT_TYPE_RT": "nv12;", "hbdk_pass_through_params": "--O3 --debug"}, {"INPUT_KIND", "LEVEL"}),
        ({"INPUT_TYPE_RT": "featuremap;", "hbdk_pass_through_params": "--O1"}, set()),
    ],
)
def test_every_condition_that_is_not_met_is_said(options, missing):
    model = split_model(**options)
    codes = {f.code.removeprefix("ESTIMATE_") for f in limits_of(model, estimate_compiled(model, [60.0, 30.0]))}
    assert codes == {"SEVERAL_SUBGRAPHS", "CPU_NODES", "INPUT_KIND", "RANGE", "LEVEL"} - missing


@pytest.mark.shared
def test_relation_reproduces_the_published_measurements():
    rows = {r["model"]: r for r in csv.DictReader(ESTIMATES.open())}
    worst = 0.0
    for name, elements in FLOAT_OUTPUTS.items():
        row = rows[name]
        estimate = estimate_board([float(row["est_latency_us_sum"])], elements)
        worst = max(worst, abs(estimate.board_ms - float(row["measured_1t_ms"])))
    assert worst < WORST_MS
    measured = [float(r["est_latency_us_sum"]) for r in rows.values() if r["measured_1t_ms"]]
    assert (min(measured), max(measured)) == FITTED_US
