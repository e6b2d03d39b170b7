import pytest

from boardlift_compiler.explain_failure import RunEnd, explain_run, explain_text, make_failure
from boardlift_compiler.failures import FAILURE_KINDS, TEXT_KINDS
from boardlift_compiler.parse_log import LogFacts, parse_log

OK = ""
EXPECTED = {
    "ok_baseline": OK, "ok_checker": OK, "opset13": "OPSET_TOO_HIGH", "opset13_checker": "OPSET_TOO_HIGH",
    "opset10": OK,
    "opset9": OK, "ir10": "IR_VERSION_TOO_HIGH", "ir9": OK, "ir3": OK, "dynamic_batch": "DYNAMIC_SHAPE",
    "dynamic_hw_no_shape": "DYNAMIC_SHAPE", "dynamic_hw_checker": "DYNAMIC_SHAPE", "dynamic_hw_with_shape": OK,
    "batch2": OK, "batch2_cal1": "CALIBRATION_SAMPLE_SIZE", "input_batch4": OK, "input_2d": OK, "input_2d_checker": OK,
    "input_5d": "CONV_RANK_UNSUPPORTED", "unsupported_op_Hardmax": "CPU_OPERATOR_UNSUPPORTED",
    "unsupported_op_checker": "CPU_OPERATOR_UNSUPPORTED", "custom_domain": "CUSTOM_DOMAIN",
    "unknown_onnx_op": "INVALID_MODEL", "cal_dir_missing": "CALIBRATION_DIR_MISSING",
    "cal_dir_empty": "CALIBRATION_EMPTY",
    "cal_dir_absent_key": "CALIBRATION_DIR_COUNT", "cal_size_wrong": "CALIBRATION_SAMPLE_SIZE",
    "cal_one_bad": "CALIBRATION_SAMPLE_SIZE", "cal_nan": OK, "cal_inf": OK, "cal_all_zero": OK,
    "cal_int8_files": "CALIBRATION_SAMPLE_SIZE", "cal_float64_files": "CALIBRATION_SAMPLE_SIZE",
    "cal_npy": "CALIBRATION_SAMPLE_SIZE", "yaml_unknown_key": "CONFIG_UNKNOWN_KEY",
    "yaml_unknown_section": "CONFIG_UNKNOWN_KEY", "yaml_no_compiler_section": OK,
    "yaml_missing_input_type_train": "CONFIG_MISSING_KEY", "yaml_syntax": "CONFIG_SYNTAX",
    "yaml_missing_file": "CONFIG_MISSING", "march_bad": "MARCH_INVALID", "march_bayes": "MARCH_MISMATCH",
    "march_nash": "MARCH_INVALID", "checker_march_bad": "MARCH_INVALID", "core_num2": "CORE_NUM_UNSUPPORTED",
    "opt_level_O4": "OPTIMIZE_LEVEL_INVALID", "compile_mode_bad": "COMPILE_MODE_INVALID",
    "calib_type_bad": "CALIBRATION_METHOD_INVALID", "optimization_bad": "OPTIMIZATION_INVALID",
    "onnx_missing": "MODEL_MISSING", "onnx_corrupt": "MODEL_UNREADABLE", "onnx_empty": "MODEL_UNREADABLE",
    "onnx_truncated": "MODEL_UNREADABLE", "workdir_unwritable": "WORK_FOLDER_UNWRITABLE",
    "workdir_is_file": "WORK_FOLDER_UNWRITABLE", "dup_node_names": OK, "no_node_names": OK, "path_space": OK,
    "path_unicode": OK, "prefix_space": OK, "prefix_unicode": OK, "input_name_mismatch": "INPUT_NAME_UNKNOWN",
    "input_shape_mismatch": "CALIBRATION_SAMPLE_SIZE", "input_shape_commas": "INPUT_SHAPE_SYNTAX",
    "rgb_train_featuremap_rt": "INPUT_TYPE_PAIR", "nv12_odd": "IMAGE_SIZE_ODD",
    "scale_on_featuremap": "NORM_TYPE_INVALID",
    "empty_graph": "NOTHING_FOR_BPU", "no_conv_relu_only": OK, "float64_model": "WEIGHT_TYPE_UNSUPPORTED",
    "float16_model": "WEIGHT_TYPE_UNSUPPORTED", "huge_constant": OK, "nan_weight": "NAN_WEIGHT",
    "zero_size": "DYNAMIC_SHAPE", "node_info_unknown": OK, "run_on_cpu_unknown": OK,
    "output_nodes_unknown": "OUTPUT_NODE_UNKNOWN", "node_info_on_true": "NODE_INFO_SYNTAX", "no_args": "CONFIG_MISSING",
    "bad_option": "COMMAND_USAGE", "model_type_missing": "MODEL_TYPE_MISSING", "no_path_bin": "TOOLCHAIN_PATH",
    "model_info_not_bin": "COMPILED_MODEL_UNREADABLE", "perf_bad_bin": "COMPILED_MODEL_UNREADABLE", "fast_perf": OK,
}  # fmt: skip
SUBJECTS = {
    "opset13": "13", "ir10": "10", "input_5d": "c3", "unsupported_op_Hardmax": "Hardmax", "custom_domain": "op",
    "cal_one_bad": "x", "yaml_unknown_key": "no_such_key", "yaml_unknown_section": "extra", "march_nash": "nash-e",
    "opt_level_O4": "O4", "calib_type_bad": "best", "compile_mode_bad": "fastest", "output_nodes_unknown": "nope",
    "optimization_bad": "set_everything_int99", "input_name_mismatch": "images", "nan_weight": "w1",
    "bad_option": "--nope",
    "yaml_missing_input_type_train": "input_type_train", "nv12_odd": "nv12", "yaml_missing_file": "nope.yaml",
}  # fmt: skip


def explain(name, case):
    checker = "checker" in name
    end = RunEnd(case["exit"], wrote_model=case["bin"])
    return explain_run(
        end, parse_log(case["lines"]), expect_march="" if checker else "bayes-e", needs_model=not checker
    )


def test_the_recording_holds_all_cases(error_cases):
    assert set(error_cases) == set(EXPECTED)
    assert len(EXPECTED) == 85


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_case_gets_its_code(error_cases, name):
    failure = explain(name, error_cases[name])
    assert (failure.code if failure else OK) == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_the_thing_at_fault_is_named(error_cases, name):
    failure = explain(name, error_cases[name])
    assert failure.subject == SUBJECTS[name]
    assert failure.evidence
    assert failure.exit_code == error_cases[name]["exit"]


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(n for n, code in EXPECTED.items() if code))
def test_the_same_on_logs_recorded_by_others(shared_logs, error_cases, name):
    lines = (shared_logs / f"real_err_{name}.log").read_text(errors="replace").splitlines()
    failure = explain(name, {**error_cases[name], "lines": lines})
    assert failure.code == EXPECTED[name]


@pytest.mark.parametrize("kind", FAILURE_KINDS.values(), ids=lambda k: k.code)
def test_every_kind_teaches(kind):
    assert kind.code == kind.code.upper()
    assert len(kind.code) <= 63
    assert kind.cause.strip().endswith((".", ")"))
    assert kind.remedy.strip().endswith(".")
    assert make_failure(kind.code, "it").message


def test_the_node_is_named_before_its_input():
    text = (
        "The node name is /sc and the node type is ScatterElements. Constraints exist\n"
        "error info: ScatterElements[1] currently only support INT32, but gives INT64"
    )
    failure = explain_text(text)
    assert failure is not None
    assert (failure.code, failure.subject) == ("INT64_AXIS", "/sc")


@pytest.mark.parametrize(
    ("last", "code", "node"),
    [("quantize_lut", "TABLE_NOT_MADE", "Div_7_reciprocal"), ("some_pass", "VENDOR_PASS_FAILED", "Div_7_reciprocal"),
     ("", "VENDOR_PASS_FAILED", "")],
)  # fmt: skip
def test_a_failed_pass_names_its_node(last: str, code: str, node: str) -> None:
    text = "There is a Pass Error occured:\n"
    if last:
        text += f"Error Node Info(name:{node}; kind:Reciprocal).\nError Pass({last}).\nError message: Assertion failed."
    failure = explain_text(text)
    assert failure is not None and (failure.code, failure.subject) == (code, node)


def test_a_compiler_that_died_is_quoted_without_its_report_of_itself() -> None:
    text = (
        "hbdk-cc compile hbir model failed with returncode -6.\n"
        "*** ERROR-OCCUR-DURING {hbdk.hbdk-cc} ***, error message: INFO: launch 1 threads for optimization\n"
        "file=833f:2219, in <>, internal error: no valid weight layout\n"
        "version: 3.49.15\nexecutable: /opt/hbdk-cc\n" + "/opt/hbdk-cc[0xb91748]\n" * 20
    )
    failure = explain_text(text)
    assert failure is not None and (failure.code, failure.subject) == ("COMPILER_CRASH", "6")
    assert failure.evidence[-1] == "file=833f:2219, in <>, internal error: no valid weight layout"


def test_codes_are_unique():
    codes = [k.code for k in TEXT_KINDS]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("min should be a scalar", "CLIP_BOUND_RANK"),
        ("RuntimeError: variable s_y_scale_int8 already exists in graph inputs", "INT16_SPLIT_CLASH"),
        ("ERROR tool limits for max output num is 32", "TOO_MANY_OUTPUTS"),
        ("error info: ScatterElements[1] currently only support INT32, but gives INT64", "INT64_AXIS"),
        ("error info: CumSum currently only support FLOAT but gives INT64", "INT64_AXIS"),
        ("The node name is OP and the node type is RNN. Constraints exist", "CPU_OPERATOR_CONSTRAINT"),
        (
            "The node name is up and the node type is Resize. Constraints exist\nerror info: Resize not support this"
            " attribute=extrapolation_value",
            "RESIZE_EXTRAPOLATION",
        ),
        ("HorizonRT not support these cpu operators: HzCalibration", "QDQ_UNSUPPORTED"),
        (
            "Parse 'input_parameters' failed!\nyaml file parse failed. Please double check your config file inputs\n"
            "Input_type_rt and input_space_and_range combination invalid. input_space_and_range: bt601_video and"
            " input_type_rt rgb",
            "SPACE_AND_RANGE_PAIR",
        ),
        (
            "Input 0 has input_type_train 'yuv444' is not supported transform to input_type_rt"
            " 'yuv420sp_bt601_video' for now.",
            "SPACE_AND_RANGE_PAIR",
        ),
        (
            "Parse 'compiler_parameters' failed!\nWrong input_source received. input type rt : rgb does not support"
            " input_source pyramid",
            "INPUT_SOURCE_PAIR",
        ),
        ("Unsupported config key in node_config: InputType7", "NODE_INPUT_UNKNOWN"),
        ("Parse 'input_parameters' failed!\nsomething that has no code here", "CONFIG_REFUSED"),
        ("Error Pass(split_gru).\nError message:std::bad_alloc", "GRU_UNROLL"),
        ("ir.h:1366: eraseOutput: Assertion `outputs_[i]->uses().empty()` failed.", "CONTROL_FLOW_UNSUPPORTED"),
        ("hbdk-cc compile hbir model failed with returncode -9", "KILLED"),
        ("hbdk-cc compile hbir model failed with returncode -15.", "KILLED"),
        ("hbdk-cc compile hbir model failed with returncode -11", "COMPILER_CRASH"),
        ("hbdk-cc compile hbir model failed with returncode 1.", "COMPILER_FAILED"),
        (
            "hbdk-cc compile hbir model failed with returncode 2.\nERROR: passes may have infinite loop, check logs",
            "COMPILER_LOOP",
        ),
        ("OSError: [Errno 28] No space left on device", "DISK_FULL"),
        ("CUDA error cudaErrorNoKernelImageForDevice: no kernel", "GPU_IMAGE"),
        ("Missing keys: 'caffe_model', 'prototxt'", "CONFIG_SECTION_INVALID"),
        ("ERROR something nobody has seen", "TOOL_REFUSED"),
    ],
)
def test_texts_from_other_sources(text, code):
    assert explain_text(text).code == code


def test_harmless_text_is_no_failure():
    assert explain_text("Reset batch_size=1 and execute forward again...") is None


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (RunEnd(139), "CRASH"),
        (RunEnd(134), "CRASH"),
        (RunEnd(132), "CPU_UNSUPPORTED"),
        (RunEnd(137), "KILLED"),
        (RunEnd(137, oom_killed=True), "OUT_OF_MEMORY"),
        (RunEnd(143, oom_killed=True), "KILLED"),
        (RunEnd(143), "KILLED"),
        (RunEnd(137, timed_out_s=60), "TIMEOUT"),
        (RunEnd(137, silent_s=600), "HANG"),
        (RunEnd(255, disk_full=True), "DISK_FULL"),
        (RunEnd(3), "EXIT_CODE"),
        (RunEnd(0), "NOT_CLOSED"),
    ],
)
def test_ends_without_a_word_are_told_apart(end, code):
    assert explain_run(end, LogFacts(tail=["Start to optimize the onnx model."])).code == code


@pytest.mark.parametrize(("oom_killed", "code"), [(True, "OUT_OF_MEMORY"), (False, "KILLED")])
def test_a_compiler_that_was_killed_is_out_of_memory_only_when_the_kernel_says_so(oom_killed, code):
    facts = LogFacts(errors=["hbdk-cc compile hbir model failed with returncode -9."])
    assert explain_run(RunEnd(255, oom_killed=oom_killed), facts).code == code


def test_a_claimed_success_is_checked():
    facts = LogFacts(converted=True, march="bayes-e")
    assert explain_run(RunEnd(0, wrote_model=True), facts, expect_march="bayes-e") is None
    assert explain_run(RunEnd(0, wrote_model=False), facts, expect_march="bayes-e").code == "NO_COMPILED_MODEL"
    other = LogFacts(converted=True, march="bayes")
    assert explain_run(RunEnd(0, wrote_model=True), other, expect_march="bayes-e").code == "MARCH_MISMATCH"


def test_every_cure_is_a_pass_that_transform_has(testdata):
    from boardlift_compiler.op_truth import CHEAP_REWRITES, CONTROL_FLOW

    folder = testdata.parents[1] / "transform" / "boardlift_transform" / "passes"
    known = {p.stem.replace("_", "-") for p in folder.glob("*.py")}
    named = {k.cure for k in FAILURE_KINDS.values() if k.cure} | {p for p, _ in CHEAP_REWRITES.values() if p}
    named |= set(CONTROL_FLOW.values())
    assert named <= known
