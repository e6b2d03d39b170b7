import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from boardlift_compiler.apply_preset import complete_spec
from boardlift_compiler.explain_failure import RunEnd, explain_run
from boardlift_compiler.parse_log import parse_log
from boardlift_compiler.preflight import find_refusals, preflight
from boardlift_compiler.read_model import read_model
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec, InputSpec, NodeOverride


def refuse(model, spec=None):
    summary = read_model(model.SerializeToString())
    return preflight(complete_spec(spec or CompileSpec(), summary, 1), summary)


def code(model, spec=None):
    failure = refuse(model, spec)
    return failure.code if failure else ""


def nan_model(models):
    return models.with_weight(models.small(), "w1", lambda a: a.__setitem__((0, 0, 0, 0), np.nan))


SAME_AS_THE_TOOL = {
    "opset13": lambda m: m.small(opset=13),
    "ir10": lambda m: m.small(ir=10),
    "dynamic_batch": lambda m: m.small(dims=("N", 3, 32, 32)),
    "dynamic_hw_no_shape": lambda m: m.small(dims=(1, 3, "H", "W")),
    "zero_size": lambda m: m.small(dims=(1, 3, 0, 32)),
    "input_5d": lambda m: m.volume(),
    "unsupported_op_Hardmax": lambda m: m.small("Hardmax"),
    "custom_domain": lambda m: m.small("MyOp", domain="my.dom"),
    "float64_model": lambda m: m.small(dtype=np.float64),
    "float16_model": lambda m: m.small(dtype=np.float16),
    "nan_weight": nan_model,
    "empty_graph": lambda m: m.empty(),
}


@pytest.mark.parametrize("name", sorted(SAME_AS_THE_TOOL))
def test_refusals_before_the_start_have_the_code_of_the_tools_own(models, error_cases, name):
    case = error_cases[name]
    tool = explain_run(RunEnd(case["exit"], wrote_model=case["bin"]), parse_log(case["lines"]))
    assert code(SAME_AS_THE_TOOL[name](models)) == tool.code


@pytest.mark.parametrize("name", ["small", "policy", "two_islands", "vector", "relu_only", "camera"])
def test_what_the_tool_takes_is_not_refused(models, name):
    assert refuse(getattr(models, name)()) is None


def test_a_given_shape_settles_a_dynamic_input(models):
    spec = CompileSpec(inputs=(InputSpec("x", shape=(1, 3, 32, 32)),))
    assert refuse(models.small(dims=(1, 3, "H", "W")), spec) is None


@pytest.mark.parametrize(
    ("op", "expected"),
    [("Det", "CPU_OPERATOR_UNSUPPORTED"), ("Xor", "CPU_OPERATOR_UNSUPPORTED"),
     ("NonZero", "CPU_OPERATOR_UNSUPPORTED"), ("If", "CONTROL_FLOW_UNSUPPORTED"),
     ("QuantizeLinear", "QDQ_UNSUPPORTED"), ("RNN", "CPU_OPERATOR_CONSTRAINT"), ("GRU", "GRU_UNROLL")],
)  # fmt: skip
def test_operators_that_were_measured_to_fail(models, op, expected):
    assert code(models.small(op)) == expected


@pytest.mark.parametrize(("op", "cure"), [("If", "if-to-where"), ("Loop", "unroll-loop"), ("Scan", "unroll-loop")])
def test_control_flow_names_the_pass_that_takes_it_out(models, op, cure):
    failure = refuse(models.small(op))
    assert failure.code == "CONTROL_FLOW_UNSUPPORTED" and failure.transform_pass == cure


def test_gru_with_both_outputs_in_use_is_fine(models):
    model = models.small()
    model.graph.node[1].CopyFrom(helper.make_node("GRU", ["a", "w", "r"], ["b", "bh"], name="op"))
    model.graph.output.append(helper.make_tensor_value_info("bh", TensorProto.FLOAT, [1]))
    assert refuse(model) is None


@pytest.mark.parametrize("op", ["CumSum", "ScatterElements"])
def test_int64_axis(models, op):
    model = models.small(op)
    model.graph.node[1].input.append("axis")
    model.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "axis"))
    assert code(model) == "INT64_AXIS"


def test_rank_one_clip_bounds(models):
    model = models.small("Clip")
    model.graph.node[1].input.append("low")
    model.graph.initializer.append(numpy_helper.from_array(np.array([0.0], np.float32), "low"))
    assert code(model) == "CLIP_BOUND_RANK"


def test_too_many_outputs(models):
    model = models.small()
    model.graph.output.extend([helper.make_tensor_value_info(f"o{k}", TensorProto.FLOAT, [1]) for k in range(32)])
    assert code(model) == "TOO_MANY_OUTPUTS"


@pytest.mark.parametrize("name", ["a;b", "$(id)", "../x", "x y", "a\nb", "a'b", "x" * 200])
def test_input_names_that_the_configuration_cannot_carry(models, name):
    assert code(models.small(inputs=(name,))) == "NAME_UNUSABLE"


RGB = {"type_train": "rgb", "type_rt": "nv12", "norm_type": "data_scale", "scale": (0.004,)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ""),
        ({"type_rt": "featuremap"}, "INPUT_TYPE_PAIR"),
        ({"type_train": "gray", "type_rt": "nv12"}, "INPUT_TYPE_PAIR"),
        ({"scale": ()}, "NORM_TYPE_INVALID"),
        ({"scale": (1.0, 2.0)}, "NORM_TYPE_INVALID"),
        ({"norm_type": "no_preprocess"}, "NORM_TYPE_INVALID"),
        ({"layout_train": "NHWC"}, "IMAGE_SHAPE"),
        ({"batch": 5000}, "KNOB_RANGE"),
        ({"source": "usb"}, "KNOB_RANGE"),
        ({"space_and_range": "bt709"}, "KNOB_RANGE"),
        ({"space_and_range": "bt601_video"}, ""),
        ({"space_and_range": "bt601_video", "type_rt": "rgb"}, "SPACE_AND_RANGE_PAIR"),
        ({"space_and_range": "bt601_video", "type_train": "yuv444"}, "SPACE_AND_RANGE_PAIR"),
        ({"source": "pyramid"}, ""),
        ({"source": "ddr"}, "INPUT_SOURCE_PAIR"),
        ({"source": "resizer", "type_rt": "yuv444"}, "INPUT_SOURCE_PAIR"),
        ({"scale": (0.0,)}, "NORM_VALUE"),
        ({"scale": (float("inf"),)}, "NORM_VALUE"),
        ({"norm_type": "data_mean_and_scale", "mean": (float("nan"),)}, "NORM_VALUE"),
        ({"calibration_dtype": "float64"}, "CALIBRATION_TYPE"),
        ({"calibration_dtype": "uint8"}, ""),
        ({"calibration_dtype": "uint8", "space_and_range": "bt601_video"}, "CALIBRATION_TYPE"),
        ({"shape": (1, 3, 64, 64)}, "INPUT_SHAPE_MISMATCH"),
    ],
)
def test_image_inputs(models, change, expected):
    spec = CompileSpec(inputs=(InputSpec("image", **{**RGB, **change}),))
    assert code(models.camera(), spec) == expected


def test_odd_nv12(models):
    spec = CompileSpec(inputs=(InputSpec("x", type_train="rgb", type_rt="nv12"),))
    assert code(models.small(shape=(1, 3, 31, 31)), spec) == "IMAGE_SIZE_ODD"


def test_scale_on_a_featuremap(models):
    spec = CompileSpec(inputs=(InputSpec("x", norm_type="data_scale", scale=(0.1, 0.1, 0.1)),))
    assert code(models.small(), spec) == "NORM_TYPE_INVALID"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (CompileSpec(inputs=(InputSpec("images"),)), "INPUT_NAME_UNKNOWN"),
        (CompileSpec(preset="int12"), "KNOB_RANGE"),
        (CompileSpec(purpose="prview"), "KNOB_RANGE"),
        (CompileSpec(compiler=CompilerKnobs(optimize_level="O4")), "OPTIMIZE_LEVEL_INVALID"),
        (CompileSpec(compiler=CompilerKnobs(compile_mode="fastest")), "COMPILE_MODE_INVALID"),
        (CompileSpec(compiler=CompilerKnobs(max_time_per_fc_us=10)), "KNOB_RANGE"),
        (CompileSpec(compiler=CompilerKnobs(balance_factor=101)), "KNOB_RANGE"),
        (CompileSpec(compiler=CompilerKnobs(jobs=-1)), "KNOB_RANGE"),
        (CompileSpec(calibration=CalibrationSpec("best")), "CALIBRATION_METHOD_INVALID"),
        (CompileSpec(calibration=CalibrationSpec("max", 0.2)), "KNOB_RANGE"),
        (CompileSpec(calibration=CalibrationSpec("default", per_channel=True)), "KNOB_IGNORED"),
        (CompileSpec(calibration=CalibrationSpec("kl", max_percentile=0.99)), "KNOB_IGNORED"),
        (CompileSpec(calibration=CalibrationSpec(optimization=("set_everything_int99",))), "OPTIMIZATION_INVALID"),
        (CompileSpec(calibration=CalibrationSpec(optimization=("$(touch x)",))), "OPTIMIZATION_INVALID"),
        (CompileSpec(calibration=CalibrationSpec(run_on_cpu=("nope",))), "NODE_UNKNOWN"),
        (CompileSpec(nodes=(NodeOverride("nope", "CPU"),)), "NODE_UNKNOWN"),
        (CompileSpec(nodes=(NodeOverride("op", "GPU"),)), "KNOB_RANGE"),
        (CompileSpec(nodes=(NodeOverride("op", input_type="int4"),)), "KNOB_RANGE"),
        (CompileSpec(nodes=(NodeOverride("op", input_types={7: "int16"}),)), "NODE_INPUT_UNKNOWN"),
        (CompileSpec(calibration=CalibrationSpec(run_on_cpu=("op",), run_on_bpu=("op",))), "NODE_PLACED_TWICE"),
        (CompileSpec(inputs=(InputSpec("x", space_and_range="bt601_video"),)), "SPACE_AND_RANGE_PAIR"),
        (CompileSpec(inputs=(InputSpec("x", source="pyramid"),)), "INPUT_SOURCE_PAIR"),
        (CompileSpec(output_nodes=("nope",)), "OUTPUT_NODE_UNKNOWN"),
        (CompileSpec(output_nodes=("$(id)`x`",)), "NAME_UNUSABLE"),
        (CompileSpec(remove_node_names=("a;b",)), "NAME_UNUSABLE"),
        (CompileSpec(remove_node_types=("Conv",)), "KNOB_RANGE"),
    ],
)
def test_settings(models, spec, expected):
    assert code(models.small(), spec) == expected


def test_known_settings_pass(models):
    words = ("set_all_nodes_int16", "set_Softmax_input_int8", "set_model_output_int16", "asymmetric", "bias_correction")
    spec = CompileSpec(
        calibration=CalibrationSpec("max", 0.9999, True, words, ("op",)),
        nodes=(NodeOverride("c1", "BPU", "int16"), NodeOverride("op", input_types={0: "int16"})),
    )
    assert refuse(models.small(), spec) is None


def test_all_refusals_are_listed(models):
    summary = read_model(models.small("Hardmax", opset=13, dims=("N", 3, 32, 32)).SerializeToString())
    assert [f.code for f in find_refusals(CompileSpec(), summary)] == [
        "OPSET_TOO_HIGH", "DYNAMIC_SHAPE", "CPU_OPERATOR_UNSUPPORTED",
    ]  # fmt: skip
