import pytest

from boardlift_compiler.simulate_code import SimulatorError, find_dumps, last_words, parse_dump


def files_of(*names: str) -> list[str]:
    kinds = ("elem_int.txt", "elem_float.txt")
    return [f"hbdk_output{i}_feature_{name}_{kind}" for i, name in enumerate(names) for kind in kinds]


def test_outputs_are_found_by_name_as_the_code_has_its_own_order() -> None:
    files = files_of("_e_e.0_Transpose_4_out_quantized", "_e_e.0_Add_out_quantized", "_e_MatMul_output_0_quantized")
    wanted = ["/e/e.0/Add_out_quantized", "/e/MatMul_output_0_quantized", "/e/e.0/Transpose_4_out_quantized"]
    assert find_dumps([*files, "input_0_x_1x1x3x5_int8_NHWC_NATIVE.bin"], wanted) == [files[2], files[4], files[0]]


def test_names_that_the_simulator_writes_otherwise_go_by_index() -> None:
    files = files_of("a", "b")
    assert find_dumps(files, ["x:0", "y:0"]) == [files[0], files[2]]


def test_names_that_look_alike_in_files_go_by_index() -> None:
    files = ["hbdk_output0_feature_a_b_elem_int.txt", "hbdk_output1_feature_a_b_2_elem_int.txt"]
    assert find_dumps(files, ["a/b", "a:b"]) == files


def test_a_missing_output_is_an_error() -> None:
    with pytest.raises(SimulatorError, match="no output c"):
        find_dumps(files_of("a", "b"), ["a", "b", "c"])


def test_a_dump_is_integers_with_comments() -> None:
    assert parse_dump("# shape\n1 2\n-3\n").tolist() == [1, 2, -3]
    with pytest.raises(SimulatorError):
        parse_dump("1 2.5 x")


def test_what_the_simulator_says_at_last_holds_no_stack_trace_and_no_folder() -> None:
    trace = ["----Stack Trace----", "/opt/t/bin/hbdk-sim[0x7cc774]", "/lib/libc.so.6(abort+0xd3)[0x7f5b260a5472]"]
    assert last_words(["load code", "bad input size", *trace]) == "load code | bad input size"
    report = ["version: 3.49.15", "executable: /opt/t/bin/hbdk-sim", "/opt/t/bin/hbdk-sim", "-f", "/run/code.hbm"]
    assert last_words(["hbrtErrorForDeveloper", "971", *report, *trace]) == "hbrtErrorForDeveloper | 971"
    assert last_words(trace) == "it crashed without a word, as it does on damaged code"
