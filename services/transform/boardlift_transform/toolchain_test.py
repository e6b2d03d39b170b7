"""Traps of the real tool, before and after the pass that removes them."""

import csv
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder, elu_policy
from boardlift_transform.equivalence import Session

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]


def between_convs(op: str, *more: Any, channels: int = 16, size: int = 16, **attributes: Any) -> onnx.ModelProto:
    """The operator between two 3x3 convolutions: where the checker places it is where it belongs."""
    b = GraphBuilder(11, 7, seed=1)
    x = b.input("x", [1, channels, size, size])
    t = b.node("Conv", [x, b.weight(channels, channels, 3, 3), b.weight(channels)], pads=[1, 1, 1, 1])
    t = b.node(op, [t, *(b.constant(np.asarray(m)) for m in more)], **attributes)
    return closed(b, t, channels)


def closed(b: GraphBuilder, t: str, channels: int) -> onnx.ModelProto:
    """The model with a 1x1 convolution behind `t`."""
    b.node("Conv", [t, b.weight(channels, channels, 1, 1), b.weight(channels)], "y")
    b.output("y", ["n", "c", "h", "w"])
    return b.model()


def samples_of(model: onnx.ModelProto, count: int = 8) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: rng.standard_normal((count, *shape)).astype(np.float32) for name, shape in shapes.items()}


def error_of(tool: Any, original: onnx.ModelProto, model: onnx.ModelProto, int16: bool) -> tuple[float, int]:
    """Largest relative error of the integer model against stock onnxruntime; integers that the simulator differs in."""
    samples = samples_of(model)
    run = tool.compile(model, samples, int16=int16)
    assert run.exit_code == 0, run.errors
    feed = {name: array[0] for name, array in samples.items()}
    got, differing = tool.execute(run, feed)
    want = Session(original.SerializeToString()).run(feed)["y"]
    return float(np.abs(got["y"].reshape(want.shape) - want).max() / np.abs(want).max()), differing


SHARED = Path(__file__).resolve().parents[4] / "shared/models"
FROZEN = {"silero_vad_16k_if_int64": {"sr": 16000}, "swiftf0_pitch": {"fmin": 46.875, "fmax": 2093.75}}


def public_models() -> list[tuple[str, Path]]:
    if not SHARED.is_dir():
        return [("none", SHARED)]
    with (SHARED / "MODELS.csv").open() as rows:
        return [(row["id"], SHARED / row["file"]) for row in csv.DictReader(rows)]


def public_samples(name: str, count: int = 2) -> dict[str, np.ndarray]:
    spec = importlib.util.spec_from_file_location("gen_inputs", SHARED / "gen_inputs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = [module.make_inputs(name, k) for k in range(count)]
    return {key: np.stack([d[key] for d in drawn]) for key in drawn[0]}


@pytest.mark.shared
@pytest.mark.parametrize(("name", "path"), public_models(), ids=lambda value: value if isinstance(value, str) else "")
def test_public_models_pass_the_real_checker(tool: Any, name: str, path: Path) -> None:
    result = transform(path, samples=public_samples(name), frozen_inputs=FROZEN.get(name))
    assert all(c.max_rel < 5e-5 for c in result.proof.comparisons)
    run = tool.check(result.model)
    assert run.exit_code == 0, run.errors


CPU_CASES = {
    "Neg": between_convs("Neg"),
    "Min": between_convs("Min", np.float32(0.7)),
    "ReduceMaxHW": between_convs("ReduceMax", axes=[2, 3]),
    "ReduceMean3": between_convs("ReduceMean", axes=[1, 2, 3]),
    **{f"{op}HW": between_convs(op, axes=[2, 3]) for op in ("ReduceSum", "ReduceL1", "ReduceL2")},
    "ReduceMin": between_convs("ReduceMin", axes=[2]),
    "TileHW": between_convs("Tile", [1, 1, 2, 2]),
    "ReverseSlice": between_convs("Slice", [-1], [-(1 << 62)], [3], [-1]),
    "PadReflect": between_convs("Pad", [0, 0, 2, 2, 0, 0, 2, 2], mode="reflect"),
    "ResizeX3": between_convs(
        "Resize",
        np.zeros(0, np.float32),
        np.asarray([1, 1, 3, 3], np.float32),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
}


@pytest.mark.parametrize("case", [c for c in CPU_CASES if c != "ReduceMean3"])
def test_operators_that_ran_on_the_cpu_stay_on_the_bpu(tool: Any, case: str) -> None:
    model = CPU_CASES[case]
    assert tool.check(model).on_cpu, "the tool has changed: this case runs on the BPU by itself now"
    after = tool.check(transform(model).model)
    assert after.exit_code == 0, after.errors
    assert not after.on_cpu and len(after.subgraphs) == 1


def test_padded_average_pool_is_wrong_on_the_border_and_right_after_the_pass(tool: Any) -> None:
    model = between_convs("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    before, _ = error_of(tool, model, model, int16=False)
    after, differing = error_of(tool, model, transform(model).model, int16=False)
    assert before > 0.08
    assert after < 0.03 and differing == 0


@pytest.mark.parametrize(
    "case",
    [
        between_convs("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]),
        between_convs("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        between_convs("MaxPool", kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1]),
    ],
    ids=["end", "ceil", "k2s1"],
)
def test_int16_pool_with_end_padding_equals_its_simulation_after_the_pass(tool: Any, case: onnx.ModelProto) -> None:
    assert error_of(tool, case, case, int16=True)[1] > 0
    error, differing = error_of(tool, case, transform(case).model, int16=True)
    assert differing == 0 and error < 0.01


@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (1, 1), (3, 1)])
def test_int16_convolution_with_end_padding_equals_its_simulation_after_the_pass(
    tool: Any, kernel: int, stride: int
) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Relu", [b.input("x", [1, 16, 16, 16])])
    weight = b.weight(16, 16, kernel, kernel)
    t = b.node("Conv", [t, weight, b.weight(16)], pads=[0, 0, 1, 1], strides=[stride, stride])
    model = closed(b, t, 16)
    assert error_of(tool, model, model, int16=True)[1] > 0
    error, differing = error_of(tool, model, transform(model).model, int16=True)
    assert differing == 0 and error < 0.01


def test_a_slice_behind_a_dilated_convolution_compiles_after_the_pass(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    x = b.input("x", [1, 12, 128, 62])
    t = b.node("Relu", [b.node("Conv", [x, b.weight(12, 12, 7, 3)], pads=[6, 1, 6, 1], dilations=[2, 1])])
    t = b.node("Slice", [t, b.constant([0]), b.constant([96]), b.constant([2])])
    b.node("Relu", [b.node("Conv", [t, b.weight(4, 12, 3, 3)], pads=[1, 1, 1, 1])], "y")
    b.output("y", [1, 4, 96, 62])
    model = b.model()
    assert "infinite loop" in tool.check(model).log
    after = tool.check(transform(model).model)
    assert after.exit_code == 0, after.errors


def test_a_gru_whose_state_is_not_read_kills_the_tool_and_compiles_after_the_pass(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Gemm", [b.input("x", [1, 48]), b.weight(64, 48), b.weight(64)], transB=1)
    t = b.node("Unsqueeze", [t], axes=[0])
    t = b.node("GRU", [t, b.weight(1, 96, 64), b.weight(1, 96, 32), b.weight(1, 192)], hidden_size=32)
    t = b.node("Reshape", [t, b.constant([1, 32])])
    b.node("Gemm", [t, b.weight(12, 32), b.weight(12)], "y", transB=1)
    b.output("y", [1, 12])
    model = b.model()
    assert tool.check(model).exit_code != 0
    after = tool.check(transform(model).model)
    assert after.exit_code == 0, after.errors


def test_wide_head_stays_int16_and_halves_the_error(tool: Any) -> None:
    model = elu_policy((225, 512, 512), opset=17)
    samples = {"obs_4d": np.random.default_rng(3).standard_normal((16, 1, 1, 225)).astype(np.float32)}
    runs = {}
    for name, skip in (("plain", ["split-wide-head"]), ("split", [])):
        made = transform(model, outputs=["actions"], skip_passes=skip).model
        runs[name] = (made, tool.compile(made, samples, int16=True, level="O2"))
        assert runs[name][1].exit_code == 0, runs[name][1].errors
    assert "int8" in runs["plain"][1].dtypes
    assert runs["split"][1].dtypes == {"int16"} and len(runs["split"][1].subgraphs) == 1
    errors = {}
    for name, (made, run) in runs.items():
        want = [Session(made.SerializeToString()).run({"obs_4d": s[None]})["actions"] for s in samples["obs_4d"]]
        got = [tool.execute(run, {"obs_4d": s[None]})[0]["actions"] for s in samples["obs_4d"][:4]]
        errors[name] = float(np.mean([np.abs(g.reshape(w.shape) - w).mean() for g, w in zip(got, want, strict=False)]))
    assert errors["split"] < 0.75 * errors["plain"], errors


def test_batch_of_eight_calibrates_without_falling_back(tool: Any) -> None:
    samples = np.random.default_rng(3).standard_normal((16, 1, 1, 225)).astype(np.float32)
    made = transform(elu_policy(), outputs=["actions"])
    assert made.proof.batch == "proven"
    run = tool.compile(made.model, {"obs_4d": samples}, method="default")
    assert run.exit_code == 0 and "Reset batch_size=1" not in run.log
    literal = transform(elu_policy(), outputs=["actions"], skip_passes=["lift-to-4d", "free-batch"]).model
    assert "Reset batch_size=1" in tool.compile(literal, {"obs_4d": samples}, method="default").log


def test_a_pinned_model_calibrates_with_batch_one(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Relu", [b.input("x", [1, 4, 8, 8])])
    model = closed(b, b.node("Sub", [t, b.node("ReduceMax", [t], axes=[0], keepdims=1)]), 4)
    made = transform(model)
    assert made.proof.batch == "literal"
    run = tool.compile(made.model, samples_of(model, 16), method="default")
    assert run.exit_code == 0 and "Reset batch_size=1" in run.log


def test_rank_one_clip_bounds_kill_calibration_only_before_the_pass(tool: Any) -> None:
    model = between_convs("Clip", np.float32(-0.5), np.float32(0.5))
    for weight in model.graph.initializer:
        if not weight.dims:
            weight.dims.append(1)
    assert tool.compile(model, samples_of(model)).exit_code == 255
    assert tool.compile(transform(model).model, samples_of(model)).exit_code == 0


INT16_CASES = {
    "GlobalAveragePool": between_convs("GlobalAveragePool"),
    "GlobalMaxPool": between_convs("GlobalMaxPool"),
    "ReduceMeanHW": between_convs("ReduceMean", axes=[2, 3]),
    "ConvTranspose": between_convs(
        "ConvTranspose",
        np.random.default_rng(2).normal(0, 0.1, (16, 16, 4, 4)).astype(np.float32),
        strides=[2, 2],
        pads=[1, 1, 1, 1],
    ),
    "AveragePoolStride": between_convs("AveragePool", kernel_shape=[2, 2], strides=[2, 2]),
    "InstanceNormalization": between_convs(
        "InstanceNormalization", np.linspace(0.5, 2, 16, dtype=np.float32), np.zeros(16, np.float32)
    ),
}


@pytest.mark.parametrize("case", list(INT16_CASES))
def test_what_fell_back_to_int8_stays_int16_after_the_pass(tool: Any, case: str) -> None:
    model = INT16_CASES[case]
    plain = tool.compile(transform(model, precision="int8").model, samples_of(model), int16=True)
    assert "int8" in plain.dtypes, "the tool has changed: this is int16 by itself now"
    run = tool.compile(transform(model, precision="int16").model, samples_of(model), int16=True)
    assert run.exit_code == 0, run.errors
    assert run.dtypes == {"int16"} and len(run.subgraphs) == 1


def test_a_wide_average_pool_is_coarse_and_right_after_the_pass(tool: Any) -> None:
    model = between_convs("AveragePool", kernel_shape=[16, 16])
    before, _ = error_of(tool, model, model, int16=False)
    after, differing = error_of(tool, model, transform(model).model, int16=False)
    assert before > 0.02 and after < before / 2 and differing == 0


def _attention(tokens: int = 16, depth: int = 16, heads: int = 2) -> onnx.ModelProto:
    """Two products of feature maps behind 1x1 convolutions; without the Softmax, which has its own rows."""
    b, channels = GraphBuilder(11, 7, seed=1), heads * depth
    x = b.input("x", [1, channels, 1, tokens])
    maps = []
    for turned in (True, False, True):
        t = b.node("Conv", [x, b.weight(channels, channels, 1, 1), b.weight(channels)])
        t = b.node("Reshape", [t, b.constant([1, heads, depth, tokens])])
        maps.append(b.node("Transpose", [t], perm=[0, 1, 3, 2]) if turned else t)
    scores = b.node("Mul", [b.node("MatMul", [maps[0], maps[1]]), b.constant(np.float32(depth**-0.5))])
    t = b.node("Transpose", [b.node("MatMul", [scores, maps[2]])], perm=[0, 1, 3, 2])
    return closed(b, b.node("Reshape", [t, b.constant([1, channels, 1, tokens])]), channels)


def test_products_of_feature_maps_stay_int16_after_the_pass(tool: Any) -> None:
    model = _attention()
    errors = {}
    for precision in ("int8", "int16"):
        made = transform(model, precision=precision).model
        run = tool.compile(made, samples_of(model), int16=True)
        assert run.exit_code == 0, run.errors
        assert ("int8" in run.dtypes) == (precision == "int8") and len(run.subgraphs) == 1
        errors[precision] = error_of(tool, model, made, int16=True)[0]
    assert errors["int16"] < errors["int8"], errors
