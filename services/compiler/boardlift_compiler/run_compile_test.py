"""Real compiles with the real toolchain."""

import hashlib
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest

from boardlift_compiler.read_bin import BinUnreadableError, read_bin, strip_paths
from boardlift_compiler.read_config import read_config
from boardlift_compiler.run_compile import CompileInputs, CompileOutcome, compile_model, prepare_run
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.run_simulation import SimulateInputs, simulate_model
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec, InputSpec, NodeOverride
from boardlift_compiler.warm_start import WarmStart

pytestmark = [pytest.mark.toolchain, pytest.mark.xdist_group("compiler-tool")]
QUICK = CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O1"))
INT16 = replace(QUICK, preset="int16")


async def simulate(toolchain, outcome, tmp_path, model, samples, float_inputs, spec, bits=2):
    """Simulate an outcome against stock onnxruntime on the original model."""
    for name, data in (("q.onnx", outcome.kept["quantized_model.onnx"]), ("m.bin", outcome.compiled)):
        (tmp_path / name).write_bytes(data)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    count = len(next(iter(float_inputs.values())))
    rows = [session.run(None, {k: v[i][None] for k, v in float_inputs.items()}) for i in range(count)]
    names = [o.name for o in session.get_outputs()]
    np.savez(tmp_path / "ref.npz", **{n: np.stack([r[k] for r in rows]) for k, n in enumerate(names)})
    np.savez(tmp_path / "held.npz", **samples)
    inputs = SimulateInputs(
        tmp_path / "q.onnx", tmp_path / "m.bin", tmp_path / "held.npz", tmp_path / "ref.npz", spec, bits
    )
    with run_folder(tmp_path / "runs") as folder:
        return await simulate_model(toolchain, inputs, folder)


async def test_a_policy_in_int8(build, models):
    outcome = await build(models.policy())
    assert outcome.failure is None
    assert {n.device for n in outcome.facts.nodes} == {"BPU"}
    assert outcome.model_in_bin.options["MARCH"] == "bayes-e"
    assert [n.name for n in outcome.model_in_bin.bpu_nodes] == ["main_graph_subgraph_0"]
    assert outcome.reports[0].layers
    assert outcome.quantization["fc0"].thresholds
    assert outcome.facts.samples == 16
    assert [f.code for f in outcome.findings] == ["CALIBRATION_FEW_SAMPLES"]


async def test_a_wide_head_in_int16_says_which_node_fell_back(build, models):
    outcome = await build(models.policy((225, 64, 320, 12)), INT16)
    assert outcome.failure is None
    assert [(f.code, f.subject) for f in outcome.findings if f.severity == "error"] == [("INT16_FELL_BACK", "fc2")]
    narrow = await build(models.policy((225, 64, 12)), INT16, name="narrow")
    assert not [f for f in narrow.findings if f.severity == "error"]
    assert {n.dtype for n in narrow.facts.nodes} == {"int16"}


async def test_equal_builds_are_equal_bytes_plain_or_warm_and_hold_no_path(build, models, toolchain, tmp_path):
    warm = WarmStart(toolchain, tmp_path / "warm")
    try:
        first = await build(models.policy())
        second = await build(models.policy())
        third = await build(models.policy(), hooks=Hooks(launcher=warm.launch))
        assert (warm.warm_runs, warm.plain_runs) == (2, 0)  # the tool, and the comparison of its models
    finally:
        await warm.close()
    digests = [hashlib.sha256(o.compiled).hexdigest() for o in (first, second, third)]
    assert len(set(digests)) == 1
    same = [n for n in first.kept if not n.endswith(".log")]
    assert {"main_graph_subgraph_0.html", "main_graph_subgraph_0.json", "quant_info.json", "config.yaml"} < set(same)
    assert all(first.kept[n] == second.kept[n] == third.kept[n] for n in same)
    for name, data in {**third.kept, "model.bin": third.compiled}.items():
        for secret in (str(tmp_path), str(toolchain.root), "boardlift-run-"):
            assert secret.encode() not in data, (name, secret)


async def test_stripping_paths_leaves_the_code_alone_and_damage_is_noticed(build, models):
    outcome = await build(models.policy((225, 32, 12)))
    data = outcome.compiled
    assert strip_paths(data) == data
    assert read_bin(data).tensors["obs_4d"].shape == (1, 1, 1, 225)
    for broken in (data[: len(data) // 2], data[:40], b"", b"not a model at all"):
        with pytest.raises(BinUnreadableError):
            read_bin(broken)


@pytest.mark.parametrize("preset", ["int8", "int16"])
async def test_policy_simulation_is_bit_exact_and_judged_by_stock_onnxruntime(
    build, models, toolchain, tmp_path, preset
):
    model = models.policy()
    outcome = await build(model, replace(QUICK, preset=preset))
    held = models.samples(model, 20, seed=77)
    result = await simulate(toolchain, outcome, tmp_path, model, held, held, outcome.spec)
    assert result.failure is None
    assert result.bit_exact
    assert result.batched
    (output,) = result.outputs
    assert output.samples == 20
    assert output.cosine > 0.999


async def test_two_subgraphs_two_inputs_and_a_cpu_node_between(build, models, toolchain, tmp_path):
    model = models.two_islands()
    outcome = await build(model)
    assert [f.subject for f in outcome.findings if f.code == "NODE_ON_CPU"] == ["sm"]
    held = models.samples(model, 5, seed=3)
    result = await simulate(toolchain, outcome, tmp_path, model, held, held, outcome.spec)
    assert result.bit_exact
    assert {b.subgraph for b in result.bits} == {"main_graph_subgraph_0", "main_graph_subgraph_1"}
    assert {o.output for o in result.outputs} == {"y1", "y2"}
    assert min(o.cosine for o in result.outputs) > 0.98


async def test_a_mismatch_is_located(build, models, toolchain, tmp_path):
    """Compiled code of other weights against this quantised model: must differ and say where."""
    model = models.two_islands()
    mine, other = await build(model), await build(models.two_islands(seed=8), name="other")
    mine.compiled = other.compiled
    held = models.samples(model, 2, seed=3)
    result = await simulate(toolchain, mine, tmp_path, model, held, held, mine.spec)
    assert not result.bit_exact
    assert "COMPILED_CODE_DIFFERS" in [f.code for f in result.findings]
    assert next(b for b in result.bits if not b.equal).first.startswith("sample 0 at [")


def knobs(**changes):
    return replace(QUICK, **changes)


def words(*optimization, method="max", **more):
    return replace(QUICK, calibration=CalibrationSpec(method, optimization=optimization, **more))


OPTIONS = {
    "removed edge nodes": ("policy", knobs(remove_node_types=("Quantize", "Dequantize"))),
    "removed tail": ("two_islands", knobs(remove_node_types=("Dequantize", "Transpose", "Softmax"))),
    "batch 4": ("policy", knobs(inputs=(InputSpec("obs_4d", batch=4),))),
    "a node on the CPU": ("policy", knobs(nodes=(NodeOverride("elu0", "CPU"),))),
    "run_on_cpu": ("policy", words(run_on_cpu=("elu0",))),
    "mix": ("policy", words(method="mix")),
    "kl per channel": ("policy", words("asymmetric", method="kl", per_channel=True)),
    "bias correction": ("policy", words("bias_correction")),
    "debug dumps": ("policy", knobs(dump_calibration_data=True, layer_out_dump=True)),
    "all compiler knobs": ("policy", knobs(compiler=CompilerKnobs("O1", "balance", 50, False, 1000, 1, 10))),
    "mixed": ("policy", knobs(preset="mixed")),
    "fast-perf": ("two_islands", knobs(preset="fast-perf")),
}


@pytest.mark.parametrize("name", OPTIONS)
async def test_every_option_builds_and_its_code_is_proven(build, models, toolchain, tmp_path, name):
    make, spec = OPTIONS[name]
    model = getattr(models, make)()
    outcome = await build(model, spec)
    assert outcome.failure is None
    assert not [f for f in outcome.findings if f.severity == "error"]
    held = models.samples(model, 4, seed=21)
    result = await simulate(toolchain, outcome, tmp_path, model, held, held, outcome.spec)
    assert result.bit_exact, (result.failure, result.bits)
    assert min(o.cosine for o in result.outputs) > 0.98


IMAGES = [("rgb", "nv12"), ("bgr", "nv12"), ("rgb", "yuv444"), ("bgr", "yuv444"), ("rgb", "rgb"), ("rgb", "bgr"),
          ("bgr", "rgb"), ("yuv444", "nv12"), ("yuv444", "yuv444"), ("gray", "gray")]  # fmt: skip


VIDEO = ("rgb", "bgr")


@pytest.mark.parametrize(
    ("train", "rt", "space"),
    [*[(*pair, "regular") for pair in IMAGES], *[(train, "nv12", "bt601_video") for train in VIDEO]],
)
async def test_camera_models_end_to_end(build, models, toolchain, tmp_path, train, rt, space):
    channels = 1 if train == "gray" else 3
    model = models.camera(channels)
    item = InputSpec("image", train, rt, norm_type="data_mean_and_scale", mean=(128.0,) * channels,
                     scale=(1 / 58,) * channels, space_and_range=space)  # fmt: skip
    images = models.samples(model, 8, image=True)["image"][..., ::4, ::4].repeat(4, -2).repeat(4, -1)
    outcome = await build(model, replace(QUICK, inputs=(item,)), pixels=True, count=8)
    assert outcome.failure is None
    echo = outcome.facts.inputs_echo["image"]
    called = rt if space == "regular" else "yuv420sp_bt601_video"  # the tool's own name for it
    assert (echo["input_type_train"], echo["input_type_rt"]) == (train, called)
    assert not [f for f in outcome.findings if f.code.startswith("SETTING")]
    assert echo["cal_data_type"] == outcome.spec.inputs[0].calibration_dtype
    assert not [f for f in outcome.findings if f.code.startswith("SAMPLES")]
    floats = {"image": (images.astype(np.float32) - 128) / 58}
    result = await simulate(toolchain, outcome, tmp_path, model, {"image": images}, floats, outcome.spec)
    assert result.bit_exact, result.failure
    assert result.outputs[0].cosine > 0.999


@pytest.mark.parametrize(
    ("poison", "code"),
    [(np.nan, "CALIBRATION_NOT_FINITE"), (np.inf, "CALIBRATION_NOT_FINITE"), (0, "CALIBRATION_ALL_ZERO")],
)
async def test_what_the_bare_tool_swallows_is_refused_before_it_starts(build, models, error_cases, poison, code):
    silent = {"CALIBRATION_NOT_FINITE": "cal_nan", "CALIBRATION_ALL_ZERO": "cal_all_zero"}[code]
    assert (error_cases[silent]["exit"], error_cases[silent]["bin"]) == (0, True)
    outcome = await build(models.policy(), obs_4d=np.full((20, 225), poison, np.float32))
    assert outcome.failure.code == code
    assert outcome.run is None


async def test_a_huge_constant_is_no_success_in_silence(build, models):
    outcome = await build(models.huge_constant())
    assert outcome.failure is None
    assert "error" in {f.severity for f in outcome.findings}


async def test_a_wrong_border_is_said_although_the_tools_cosine_is_fine(build, models, toolchain, tmp_path):
    """Padded AveragePool: the integer model divides by the full window at the border."""
    model = models.small("AveragePool", attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})
    outcome = await build(model)
    assert outcome.facts.outputs[0].cosine > 0.99
    assert "AVERAGEPOOL_BORDER_WRONG" in [f.code for f in outcome.findings if f.severity == "error"]
    held = models.samples(model, 3, seed=4)
    result = await simulate(toolchain, outcome, tmp_path, model, held, held, outcome.spec)
    assert result.bit_exact
    assert result.outputs[0].max_abs > 5 * outcome.facts.outputs[0].chebyshev


async def test_a_refusal_of_the_tool_itself_is_explained(build, models):
    outcome = await build(models.small("NoSuchOp"))
    assert outcome.failure.code == "INVALID_MODEL"
    assert outcome.failure.exit_code == 255
    assert outcome.failure.evidence
    assert outcome.compiled == b""


HOSTILE = ["$(touch INJECTED)", "`touch INJECTED`", "a;touch INJECTED;", "a|touch INJECTED", "../../INJECTED", "a'b\"c"]


@pytest.mark.parametrize("name", HOSTILE)
async def test_names_inside_the_model_do_nothing(build, models, tmp_path, name):
    """Graph, node and tensor names are the caller's; they reach the tool inside the file only."""
    model = models.small(names=(name, f"{name}1", f"{name}2"), graph=name)
    for node in model.graph.node:
        node.doc_string = name
        node.input[:] = [f"{name}_a" if i == "a" else i for i in node.input]
        node.output[:] = [f"{name}_a" if o == "a" else o for o in node.output]
    seen = set()

    def watch(tracker, now):
        seen.update(p.name for p in tmp_path.rglob("*INJECTED*"))

    outcome = await build(model, hooks=Hooks(on_progress=watch))
    assert outcome.failure is None or outcome.failure.user_fault
    assert not seen
    assert not list(tmp_path.rglob("*INJECTED*"))


def test_names_of_samples_and_words_of_a_request_cannot_reach_the_tool(put, models, tmp_path):
    path, data = put(models.policy(), **{"0$(touch INJECTED)": np.ones((3, 4), np.float32)})
    spec = replace(QUICK, name="$(touch INJECTED)")
    with run_folder(tmp_path / "runs") as folder:
        outcome = CompileOutcome()
        assert prepare_run(CompileInputs(path, spec, data, 1), folder, outcome) is not None
        written = [p.relative_to(folder.path).as_posix() for p in folder.path.rglob("*") if p.is_file()]
        assert "INJECTED" not in outcome.config
    assert not [p for p in written if "INJECTED" in p]
    assert sorted(written)[:2] == ["calibration0_f32/000000.bin", "calibration0_f32/000001.bin"]


async def test_an_existing_yaml_builds_the_same(build, models):
    typed = await build(models.policy(), INT16)
    from_yaml = await build(models.policy(), read_config(typed.config).spec)
    assert from_yaml.failure is None
    assert from_yaml.compiled == typed.compiled


async def test_skip_needs_no_samples(toolchain, put, models, tmp_path):
    path, _ = put(models.policy())
    with run_folder(tmp_path / "runs") as folder:
        spec = CompileSpec(calibration=CalibrationSpec("skip"), compiler=CompilerKnobs("O0"))
        outcome = await compile_model(toolchain, CompileInputs(path, spec), folder, Limits(), Hooks())
    assert outcome.failure is None
