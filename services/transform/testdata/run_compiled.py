"""Run a compiled model's integer ONNX on one sample, and its BPU code in the vendor's simulator, inside the toolchain.

Usage: python run_compiled.py OUT_FOLDER FEED.npz RESULT.npz. Writes the outputs, prints {"differing": integers that differ}.
"""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx
from horizon_tc_ui import HB_ONNXRuntime
from horizon_tc_ui.hbdtort.runtime_pb2 import ModelProto
from onnx import helper

TYPES = {"FLOAT": 1, "UINT8": 2, "INT8": 3, "INT16": 5, "INT32": 6, "INT64": 7}


def open_bin(path):
    """The compiled model's graph and its packed BPU code."""
    model = ModelProto()
    model.ParseFromString(path.read_bytes())
    graph = model.graph if model.graph.node else model.graphs[0]
    code = next(t.string_data[0] for t in graph.initializer if t.name == "PACKED_HBM_MODEL")
    kinds = {}
    for value in [*graph.value_info, *graph.input, *graph.output]:
        enum = value.type.DESCRIPTOR.fields_by_name["elem_type"].enum_type
        kinds[value.name] = enum.values_by_number[value.type.elem_type].name
    return graph, code, kinds


def run_integer(path, feed, wanted, kinds):
    """All outputs and the wanted inner tensors of the quantised ONNX."""
    model = onnx.load(str(path))
    outputs = [o.name for o in model.graph.output]
    made = {o for n in model.graph.node for o in n.output}
    for name in dict.fromkeys(wanted):  # one BPU node may read what another made
        if name in made and name not in outputs:
            model.graph.output.append(helper.make_tensor_value_info(name, TYPES[kinds.get(name, "INT8")], None))
    extended = path.with_name("extended.onnx")
    onnx.save(model, str(extended))
    session = HB_ONNXRuntime(model_file=str(extended))
    values = dict(zip(session.output_names, session.run_direct(session.output_names, feed), strict=False))
    return outputs, {**feed, **values}


def simulate(folder, code, node, values):
    """Integer outputs of one BPU node by the vendor's simulator, flat."""
    work = folder / "sim"
    work.mkdir(exist_ok=True)
    (work / "m.hbm").write_bytes(code)
    files = []
    for index, name in enumerate(node.input):
        np.ascontiguousarray(values[name]).tofile(work / f"in{index}.bin")
        files.append(str(work / f"in{index}.bin"))
    command = ["hbdk-sim", "-f", str(work / "m.hbm"), "-n", node.name, "-i", ",".join(files), "-o", str(work)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for index, name in enumerate(node.output):
        named = f"hbdk_output*_feature_{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}_elem_int.txt"
        found = [*work.glob(named), *work.glob(f"hbdk_output{index}_*elem_int.txt")]  # the code's order is its own
        text = found[0].read_text()
        yield np.array([float(w) for line in text.splitlines() if not line.startswith("#") for w in line.split()])


def main():
    """See the module."""
    folder, feed_path, result = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    graph, code, kinds = open_bin(folder / "m.bin")
    nodes = [n for n in graph.node if n.op_type == "BPU"]
    wanted = [t for n in nodes for t in [*n.input, *n.output]]
    with np.load(feed_path) as loaded:
        feed = {name: loaded[name] for name in loaded.files}
    outputs, values = run_integer(folder / "m_quantized_model.onnx", feed, wanted, kinds)
    differing = 0
    for node in nodes:
        for name, got in zip(node.output, simulate(folder, code, node, values), strict=False):
            want = np.asarray(values[name]).reshape(-1).astype(np.float64)
            differing += int((want != got).sum())
    np.savez(result, **{name: np.asarray(values[name]) for name in outputs})
    print(json.dumps({"differing": differing}), flush=True)


if __name__ == "__main__":
    main()
