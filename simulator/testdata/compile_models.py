"""Builds small seeded models and compiles them with the real toolchain, for tests: FOLDER/<name>/<name>.bin and more.

    python compile_models.py FOLDER [NAME...]

Good ones: policy16 policy8 (an Elu MLP, 225 -> 12), plain and padded (two inputs, a CPU Softmax between two subgraphs;
padded has integer outputs), camera (NV12 picture, NHWC integer outputs with per-channel scales), twins (two inputs of
equal shape), pair (two outputs of equal shape), nhwc (takes channel-last data), softend (Softmax on the CPU at the end),
older (the policy of another round), threshold (a CPU operator in the middle that the stand-in does not know).
pool16 (int16, a MaxPool padded at its end only: the vendor's simulator and the vendor's quantised model disagree on it).
Broken ones: unnormalised (calibrated with values 255 times too large), few (calibrated with two quiet samples),
constant (calibrated with one value only),
overflow and overflow16 (one hidden channel a thousand times louder than the others).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SAMPLES = 16


def tensor(values: np.ndarray, name: str) -> onnx.TensorProto:
    return numpy_helper.from_array(values.astype(np.float32), name)


def floats(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def policy(seed: int = 7, loud: float = 1.0) -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    rng = np.random.default_rng(seed)
    widths = [225, 256, 128, 12]
    constants = [numpy_helper.from_array(np.array([1, 225, 1, 1]), "wrap_shape")]
    nodes = [helper.make_node("Reshape", ["obs_4d", "wrap_shape"], ["x"], name="wrap")]
    last = "x"
    for i in range(3):
        weight = rng.standard_normal((widths[i + 1], widths[i], 1, 1)) / np.sqrt(widths[i])
        if i == 0:
            weight[0] *= loud
        if i == 1:
            weight[:, 0] /= loud
        constants += [tensor(weight, f"w{i}"), tensor(rng.standard_normal(widths[i + 1]) * 0.1, f"b{i}")]
        out = "actions" if i == 2 else f"h{i}"
        nodes.append(helper.make_node("Conv", [last, f"w{i}", f"b{i}"], [out], name=f"fc{i}"))
        last = out
        if i < 2:
            nodes.append(helper.make_node("Elu", [last], [f"e{i}"], name=f"elu{i}"))
            last = f"e{i}"
    graph = helper.make_graph(
        nodes, "policy", [floats("obs_4d", (1, 1, 1, 225))], [floats("actions", (1, 12, 1, 1))], constants
    )
    return graph, {"obs_4d": (1, 1, 1, 225)}


def padded() -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    rng = np.random.default_rng(8)
    constants = [
        tensor(rng.standard_normal((7, 3, 3, 3)) / 5, "wa"),
        tensor(rng.standard_normal((7, 5, 1, 1)) / 2, "wb"),
        tensor(rng.standard_normal((5, 7, 1, 1)) * 20, "wc"),
        tensor(rng.standard_normal((3, 7, 3, 3)) / 5, "wd"),
    ]
    nodes = [
        helper.make_node("Conv", ["xb", "wb"], ["cb"], name="cb"),
        helper.make_node("Conv", ["xa", "wa"], ["ca"], name="ca", pads=[1] * 4),
        helper.make_node("Add", ["ca", "cb"], ["s"], name="add"),
        helper.make_node("Softmax", ["s"], ["sm"], name="sm", axis=3),
        helper.make_node("Conv", ["sm", "wc"], ["y0"], name="cc"),
        helper.make_node("Conv", ["s", "wd"], ["y1"], name="cd"),
    ]
    shapes = {"xa": (1, 3, 9, 11), "xb": (1, 5, 9, 11)}
    outputs = [floats("y0", (1, 5, 9, 11)), floats("y1", (1, 3, 7, 9))]
    return helper.make_graph(nodes, "two", [floats(n, s) for n, s in shapes.items()], outputs, constants), shapes


def camera() -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    rng = np.random.default_rng(9)
    constants = [
        tensor(rng.standard_normal((16, 3, 3, 3)) / 5, "w0"),
        tensor(rng.standard_normal((10, 16, 1, 1)) / 3, "w1"),
    ]
    nodes = [
        helper.make_node("Conv", ["images", "w0"], ["a"], name="c0", pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"], name="r0"),
        helper.make_node("Conv", ["b", "w1"], ["o"], name="c1"),
        helper.make_node("Transpose", ["o"], ["boxes"], perm=[0, 2, 3, 1], name="t0"),
    ]
    graph = helper.make_graph(
        nodes, "camera", [floats("images", (1, 3, 64, 96))], [floats("boxes", (1, 32, 48, 10))], constants
    )
    return graph, {"images": (1, 3, 64, 96)}


def older() -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    return policy(seed=17)


def overflow() -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    return policy(loud=1000.0)


def twins() -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    rng = np.random.default_rng(12)
    constants = [tensor(rng.standard_normal((6, 4, 1, 1)), "wl"), tensor(rng.standard_normal((6, 4, 3, 3)) / 3, "wr")]
    nodes = [
        helper.make_node("Conv", ["left", "wl"], ["l"], name="cl"),
        helper.make_node("Conv", ["right", "wr"], ["r"], name="cr", pads=[1] * 4),
        helper.make_node("Add", ["l", "r"], ["both"], name="add"),
        helper.make_node("Relu", ["both"], ["y"], name="relu"),
    ]
    shapes = {"left": (1, 4, 6, 7), "right": (1, 4, 6, 7)}
    inputs = [floats(n, s) for n, s in shapes.items()]
    return helper.make_graph(nodes, "twins", inputs, [floats("y", (1, 6, 6, 7))], constants), shapes


def pair() -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    rng = np.random.default_rng(15)
    constants = [tensor(rng.standard_normal((6, 3, 1, 1)), "w0"), tensor(rng.standard_normal((6, 3, 3, 3)) / 3, "w1")]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["first"], name="c0"),
        helper.make_node("Conv", ["x", "w1"], ["second"], name="c1", pads=[1] * 4),
    ]
    outputs = [floats("first", (1, 6, 6, 7)), floats("second", (1, 6, 6, 7))]
    return helper.make_graph(nodes, "pair", [floats("x", (1, 3, 6, 7))], outputs, constants), {"x": (1, 3, 6, 7)}


def threshold() -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    rng = np.random.default_rng(16)
    constants = [tensor(rng.standard_normal((8, 4, 1, 1)), "w0"), tensor(rng.standard_normal((6, 8, 1, 1)) / 3, "w1")]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"], name="before"),
        helper.make_node("ThresholdedRelu", ["c"], ["t"], name="threshold", alpha=0.3),
        helper.make_node("Conv", ["t", "w1"], ["y"], name="after"),
    ]
    graph = helper.make_graph(nodes, "threshold", [floats("x", (1, 4, 6, 6))], [floats("y", (1, 6, 6, 6))], constants)
    return graph, {"x": (1, 4, 6, 6)}


def softend() -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    rng = np.random.default_rng(13)
    constants = [tensor(rng.standard_normal((40, 16, 1, 1)) / 2, "w")]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="c"),
        helper.make_node("Softmax", ["c"], ["scores"], name="softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "softend", [floats("x", (1, 16, 1, 1))], [floats("scores", (1, 40, 1, 1))], constants
    )
    return graph, {"x": (1, 16, 1, 1)}


def pool() -> tuple[onnx.GraphProto, dict[str, tuple[int, ...]]]:
    rng = np.random.default_rng(14)
    constants = [tensor(rng.standard_normal((8, 4, 1, 1)), "w0"), tensor(rng.standard_normal((8, 8, 1, 1)) / 3, "w1")]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"], name="before"),
        helper.make_node("MaxPool", ["c"], ["p"], name="pool", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]),
        helper.make_node("Conv", ["p", "w1"], ["y"], name="after"),
    ]
    graph = helper.make_graph(nodes, "pool", [floats("x", (1, 4, 8, 8))], [floats("y", (1, 8, 4, 4))], constants)
    return graph, {"x": (1, 4, 8, 8)}


MODELS = {
    "policy16": (policy, {"optimization": "set_all_nodes_int16"}, {}, "featuremap"),
    "policy8": (policy, {}, {}, "featuremap"),
    "padded": (padded, {}, {"remove_node_type": "Dequantize"}, "featuremap"),
    "plain": (padded, {}, {}, "featuremap"),
    "camera": (camera, {}, {"remove_node_type": "Dequantize"}, "nv12"),
    "twins": (twins, {}, {}, "featuremap"),
    "pair": (pair, {}, {}, "featuremap"),
    "nhwc": (pair, {}, {}, "featuremap"),
    "threshold": (threshold, {}, {}, "featuremap"),
    "softend": (softend, {}, {}, "featuremap"),
    "pool16": (pool, {"optimization": "set_all_nodes_int16"}, {}, "featuremap"),
    "older": (older, {}, {}, "featuremap"),
    "unnormalised": (policy, {}, {}, "featuremap"),
    "few": (policy, {}, {}, "featuremap"),
    "constant": (policy, {}, {}, "featuremap"),
    "overflow": (overflow, {}, {}, "featuremap"),
    "overflow16": (overflow, {"optimization": "set_all_nodes_int16"}, {}, "featuremap"),
}


def calibration(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if name == "camera":
        return rng.integers(0, 256, (SAMPLES, *shape)).astype(np.float32)
    data = rng.standard_normal((SAMPLES, *shape)).astype(np.float32)
    if name == "unnormalised":
        return data * np.float32(255)
    if name == "constant":
        return np.full_like(data, 0.5)
    return data[:2] * np.float32(0.15) if name == "few" else data


def settings(name: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, dict[str, object]]:
    _, more, model, kind = MODELS[name]
    many = len(shapes)

    def each(value: str) -> str:
        return ";".join([value] * many)

    picture = kind == "nv12"
    return {
        "model_parameters": {
            "onnx_model": "model.onnx",
            "march": "bayes-e",
            "output_model_file_prefix": name,
            "working_dir": "out",
            **model,
        },
        "input_parameters": {
            "input_name": ";".join(shapes),
            "input_type_train": "rgb" if picture else each("featuremap"),
            "input_type_rt": kind if picture else each("featuremap"),
            "input_layout_train": each("NCHW"),
            "input_layout_rt": "" if picture else each("NHWC" if name == "nhwc" else "NCHW"),
            "norm_type": "data_scale" if picture else each("no_preprocess"),
            **({"scale_value": 0.003921568627451} if picture else {}),
        },
        "calibration_parameters": {
            "cal_data_dir": ";".join(f"calibration_{n}" for n in shapes),
            "cal_data_type": each("float32"),
            "calibration_type": "max",
            **more,
        },
        "compiler_parameters": {
            "compile_mode": "latency",
            "optimize_level": "O1",
            "core_num": 1,
            "debug": False,
        },
    }


def compile_model(name: str, folder: Path, toolchain: Path) -> None:
    graph, shapes = MODELS[name][0]()
    rng = np.random.default_rng(10)
    with tempfile.TemporaryDirectory() as text:
        work = Path(text)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)
        onnx.save(model, work / "model.onnx")
        data = {key: calibration(name, shape, rng) for key, shape in shapes.items()}
        for key, samples in data.items():
            (work / f"calibration_{key}").mkdir()
            for i, sample in enumerate(samples):
                sample.tofile(work / f"calibration_{key}" / f"{i}.bin")
        # JSON is YAML
        (work / "config.yaml").write_text(json.dumps(settings(name, shapes)))
        environment = {"PATH": f"{toolchain}/bin:/usr/bin:/bin", "HOME": text, "TMPDIR": text, "PYTHONHASHSEED": "0"}
        command = [f"{toolchain}/bin/hb_mapper", "makertbin", "-c", "config.yaml", "--model-type", "onnx"]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        folder.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=folder))
        for file in (f"{name}.bin", f"{name}_quantized_model.onnx", f"{name}_quant_info.json"):
            shutil.copy(work / "out" / file, part / file)
        shutil.copy(work / "model.onnx", part / "model.onnx")
        np.savez(part / "calibration.npz", **data)
        try:
            part.rename(folder / name)
        except OSError:
            # Another test process was first; equal builds hold equal bytes.
            shutil.rmtree(part)
            if not (folder / name).is_dir():
                raise


if __name__ == "__main__":
    target = Path(sys.argv[1])
    for wanted in sys.argv[2:] or MODELS:
        if not (target / wanted).is_dir():
            compile_model(wanted, target, Path(os.environ["BOARDLIFT_TOOLCHAIN"]))
