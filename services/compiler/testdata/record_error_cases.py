"""Record what the bare tool says to 85 ways of using it wrongly: ``record_error_cases.py TOOLCHAIN OUT.json [CASE...]``.

The recording is the fixture of ``explain_failure_test.py``. Each case keeps its exit code, whether a ``.bin`` appeared
and the last lines, with paths replaced by ``{run}`` and ``{toolchain}``.
"""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import build_models as models
import numpy as np
import yaml
from boardlift_compiler.split_log import clean_lines

CONFIG = {
    "model_parameters": {"onnx_model": "m.onnx", "march": "bayes-e", "output_model_file_prefix": "m", "working_dir": "o"},
    "input_parameters": {
        "input_name": "x", "input_type_train": "featuremap", "input_type_rt": "featuremap", "input_layout_train": "NCHW",
        "input_layout_rt": "NCHW", "norm_type": "no_preprocess",
    },
    "calibration_parameters": {"cal_data_dir": "cal_f32", "cal_data_type": "float32", "calibration_type": "max"},
    "compiler_parameters": {"compile_mode": "latency", "optimize_level": "O0", "core_num": 1, "debug": False},
}  # fmt: skip
BUILD = ["hb_mapper", "makertbin", "-c", "c.yaml", "--model-type", "onnx"]
CHECK = ["hb_mapper", "checker", "--model-type", "onnx", "--march", "bayes-e", "--model", "m.onnx"]
M, IN, C, B = CONFIG
NAN = np.full((3, 32, 32), np.nan)


def change(section, key, value):
    """Return a change of one key; None removes it."""

    def apply(config):
        if value is None:
            config[section].pop(key, None)
        else:
            config[section][key] = value

    return apply


def nv12(config):
    config[IN].update(input_type_train="rgb", input_type_rt="nv12", input_layout_rt="NHWC")


def scaled(config):
    config[IN].update(norm_type="data_scale", scale_value="0.0039 0.0039 0.0039")


def bad_syntax(folder):
    (folder / "c.yaml").open("a").write("\n  bad: [1,\n")


def npy_beside(folder):
    for k in range(2):
        np.save(folder / "cal_f32" / f"{k}.npy", np.zeros((1, 3, 32, 32), np.float32))


def nan_weight():
    def poison(array):
        array.flat[0] = np.nan

    return models.with_weight(models.small(), "w1", poison)


def case(model=None, **options):
    return {"model": model, **options}


def cases():
    """Return name -> what to do."""
    s = models.small
    odd = {"patch": nv12, "shape": (1, 3, 31, 31)}
    return {
        "ok_baseline": case(), "ok_checker": case(command=CHECK),
        "opset13": case(s(opset=13)), "opset13_checker": case(s(opset=13), command=CHECK),
        "opset10": case(s(opset=10)), "opset9": case(s(opset=9)), "ir10": case(s(ir=10)), "ir9": case(s(ir=9)),
        "ir3": case(s(ir=3)), "dynamic_batch": case(s(dims=("N", 3, 32, 32))),
        "dynamic_hw_no_shape": case(s(dims=(1, 3, "H", "W"))),
        "dynamic_hw_checker": case(s(dims=(1, 3, "H", "W")), command=CHECK),
        "dynamic_hw_with_shape": case(s(dims=(1, 3, "H", "W")), patch=change(IN, "input_shape", "1x3x32x32")),
        "batch2": case(s(shape=(2, 3, 32, 32)), shape=(2, 3, 32, 32)), "batch2_cal1": case(s(shape=(2, 3, 32, 32))),
        "input_batch4": case(patch=change(IN, "input_batch", 4)), "input_2d": case(models.vector(), shape=(1, 61)),
        "input_2d_checker": case(models.vector(), command=CHECK),
        "input_5d": case(models.volume(), shape=(1, 3, 4, 8, 8)), "unsupported_op_Hardmax": case(s("Hardmax")),
        "unsupported_op_checker": case(s("Hardmax"), command=CHECK), "custom_domain": case(s("MyOp", domain="my.dom")),
        "unknown_onnx_op": case(s("NoSuchOp")), "cal_dir_missing": case(patch=change(C, "cal_data_dir", "nope_f32")),
        "cal_dir_empty": case(samples=lambda k: None), "cal_dir_absent_key": case(patch=change(C, "cal_data_dir", None)),
        "cal_size_wrong": case(samples=lambda k: np.ones((3, 16, 16))),
        "cal_one_bad": case(samples=lambda k: np.ones((3, 16 if k == 2 else 32, 32))), "cal_nan": case(samples=lambda k: NAN),
        "cal_inf": case(samples=lambda k: np.full((3, 32, 32), np.inf)),
        "cal_all_zero": case(samples=lambda k: np.zeros((3, 32, 32))), "cal_int8_files": case(dtype=np.int8),
        "cal_float64_files": case(dtype=np.float64), "cal_npy": case(before=npy_beside),
        "yaml_unknown_key": case(patch=change(M, "no_such_key", 1)),
        "yaml_unknown_section": case(patch=lambda y: y.update(extra={"a": 1})),
        "yaml_no_compiler_section": case(patch=lambda y: y.pop(B)),
        "yaml_missing_input_type_train": case(patch=change(IN, "input_type_train", None)),
        "yaml_syntax": case(before=bad_syntax), "yaml_missing_file": case(command=[*BUILD[:3], "nope.yaml", *BUILD[4:]]),
        "march_bad": case(patch=change(M, "march", "bayes-x")), "march_bayes": case(patch=change(M, "march", "bayes")),
        "march_nash": case(patch=change(M, "march", "nash-e")),
        "checker_march_bad": case(command=[w.replace("bayes-e", "nash-e") for w in CHECK]),
        "core_num2": case(patch=change(B, "core_num", 2)), "opt_level_O4": case(patch=change(B, "optimize_level", "O4")),
        "compile_mode_bad": case(patch=change(B, "compile_mode", "fastest")),
        "calib_type_bad": case(patch=change(C, "calibration_type", "best")),
        "optimization_bad": case(patch=change(C, "optimization", "set_everything_int99")), "onnx_missing": case("none"),
        "onnx_corrupt": case(b"\x08\x07hello world this is not onnx"), "onnx_empty": case(b""),
        "onnx_truncated": case(s().SerializeToString()[:600]),
        "workdir_unwritable": case(patch=change(M, "working_dir", "/proc/nope")),
        "workdir_is_file": case(patch=change(M, "working_dir", "c.yaml")), "dup_node_names": case(s(names=("n", "n", "n"))),
        "no_node_names": case(s(names=("", "", ""))), "path_space": case(folder="dir with space"),
        "path_unicode": case(folder="\u043f\u0443\u0442\u0438"),
        "prefix_space": case(patch=change(M, "output_model_file_prefix", "my model")),
        "prefix_unicode": case(patch=change(M, "output_model_file_prefix", "\u6a21\u578b")),
        "input_name_mismatch": case(patch=change(IN, "input_name", "images")),
        "input_shape_mismatch": case(patch=change(IN, "input_shape", "1x3x64x64")),
        "input_shape_commas": case(patch=change(IN, "input_shape", "1,3,32,32")),
        "rgb_train_featuremap_rt": case(patch=change(IN, "input_type_train", "rgb")),
        "nv12_odd": case(s(shape=(1, 3, 31, 31)), **odd), "scale_on_featuremap": case(patch=scaled),
        "empty_graph": case(models.empty()), "no_conv_relu_only": case(models.relu_only()),
        "float64_model": case(s(dtype=np.float64)), "float16_model": case(s(dtype=np.float16)),
        "huge_constant": case(models.huge_constant()), "nan_weight": case(nan_weight()),
        "zero_size": case(s(dims=(1, 3, 0, 32))), "node_info_unknown": case(patch=change(M, "node_info", {"nope": {"ON": "CPU"}})),
        "run_on_cpu_unknown": case(patch=change(C, "run_on_cpu", "nope")),
        "output_nodes_unknown": case(patch=change(M, "output_nodes", "nope")),
        "node_info_on_true": case(patch=change(M, "node_info", {"op": {True: "CPU"}})), "no_args": case(command=BUILD[:2]),
        "bad_option": case(command=[*BUILD[:2], "--nope"]), "model_type_missing": case(command=BUILD[:4]),
        "no_path_bin": case(path="/usr/bin:/bin"), "model_info_not_bin": case(command=["hb_model_info", "m.onnx"]),
        "perf_bad_bin": case(command=["hb_perf", "m.onnx"], rename="x.bin"),
        "fast_perf": case(command=["hb_mapper", "makertbin", "--fast-perf", "--model", "m.onnx", "--model-type", "onnx",
                                   "--march", "bayes-e"]),
    }  # fmt: skip


def record(name, what, toolchain, root):
    """Run one case and return its record."""
    folder = root / (what.get("folder") or name)
    folder.mkdir()
    model = what["model"] if what["model"] is not None else models.small()
    if isinstance(model, bytes):
        (folder / "m.onnx").write_bytes(model)
    elif model != "none":
        models.save(model, folder / "m.onnx")
    (folder / "cal_f32").mkdir()
    rng = np.random.default_rng(0)
    for k in range(3):
        array = what["samples"](k) if "samples" in what else rng.standard_normal(what.get("shape", (1, 3, 32, 32)))
        if array is not None:
            array.astype(what.get("dtype", np.float32)).tofile(folder / "cal_f32" / f"{k}.bin")
    config = copy.deepcopy(CONFIG)
    what.get("patch", lambda y: None)(config)
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    what.get("before", lambda f: None)(folder)
    command = list(what.get("command", BUILD))
    if "rename" in what:
        shutil.copy(folder / "m.onnx", folder / what["rename"])
        command[-1] = what["rename"]
    command[0] = str(toolchain / "bin" / command[0])
    environment = {"PATH": what.get("path", f"{toolchain}/bin:/usr/bin:/bin"), "HOME": str(root), "TMPDIR": str(root),
                   "LC_ALL": "C.UTF-8"}  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=180, check=False)  # fmt: skip
    text = done.stdout.decode(errors="replace")
    for path, word in ((folder, "{run}"), (root, "{root}"), (toolchain, "{toolchain}")):
        text = text.replace(str(path), word)
    lines = [line for raw in text.split("\n") for line in clean_lines(raw) if "it/s]" not in line]
    built = any(p.suffix == ".bin" and "cal" not in p.parent.name for p in folder.rglob("*.bin") if p.name != "x.bin")
    keep = [line[:1500] for line in lines[-75 if done.returncode == 0 else -30 :]]
    return {
        "exit": done.returncode & 255 if done.returncode >= 0 else 128 - done.returncode,
        "bin": built,
        "lines": keep,
    }


def main():
    """Record all cases, or those named."""
    toolchain, out = Path(sys.argv[1]), Path(sys.argv[2])
    wanted = sys.argv[3:]
    known = json.loads(out.read_text()) if out.exists() else {}
    with tempfile.TemporaryDirectory() as root:
        for name, what in cases().items():
            if not wanted or name in wanted:
                known[name] = record(name, what, toolchain, Path(root))
                print(name, known[name]["exit"], known[name]["bin"], flush=True)
    out.write_text(json.dumps(known, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
