"""Measure what quantisation does to each layer, on a calibrated ONNX, inside the toolchain's own interpreter.

Usage: ``python measure_layers.py REQUEST.json``. Prints JSON lines: ``{"progress": [done, total]}``, then one
``{"result": {}}`` or ``{"error": "..."}``. Imports nothing of boardlift.

Request:
    answer: JSON file to write.
    model: calibrated ONNX of an int8 build (nodes ``HzCalibration`` emulate quantisation in float).
    inputs: ``.npz`` with one array ``[N, ...]`` per model input, already in the form the model takes.
    layers: True measures every layer: alone in int8, alone with int16 activations, and all in int8 at its output.
    plans: lists of layers whose activations are int16 while all others are int8; each is measured at the outputs.
    batch: largest batch to try; 1 runs sample by sample.

One session serves all runs: every emulated quantisation is put behind a switch, an input of one element, so that a
run chooses per layer between float, int8 and int16.
"""

import json
import math
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from run_quantised import open_session, read_feed, say

CALIBRATION = "HzCalibration"
PASSIVE = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
FLOAT, INT8, INT16 = 0, 1, 2
SWITCH_8, SWITCH_16 = "bl_switch8_", "bl_switch16_"


class Graph:
    """Who makes and takes what in a calibrated model."""

    def __init__(self, model):
        """Index the model."""
        self.model = model
        self.constants = {i.name for i in model.graph.initializer}
        self.calibrated = {n.output[0]: n for n in model.graph.node if n.op_type == CALIBRATION}
        self.producer = {o: n for n in model.graph.node for o in n.output}
        self.consumers = {}
        for node in model.graph.node:
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)

    def fed(self, node):
        """Tell whether a node has a quantised input."""
        return any(name in self.calibrated for name in node.input)

    def owner(self, node):
        """Return the layer a node belongs to: a passive operator follows the layer behind it."""
        at = node
        for _ in range(64):
            if at.op_type not in PASSIVE and at.op_type != CALIBRATION:
                return at if self.fed(at) else node
            after = self.consumers.get(at.output[0], [])
            if not after:
                return node
            at = after[0]
        return node

    def layers(self):
        """Return layer -> (operator type, output tensor), in order."""
        found = {}
        for node in self.model.graph.node:
            if node.op_type != CALIBRATION and self.fed(node) and self.owner(node) is node:
                found[node.name] = (node.op_type, node.output[0])
        return found


def fold_weights(model, folder):
    """Return the quantised constants by name: they are the same in every run."""
    constants = {i.name: i for i in model.graph.initializer}
    nodes = [n for n in model.graph.node if n.op_type == CALIBRATION and n.input[0] in constants]
    if not nodes:
        return {}
    names = [n.output[0] for n in nodes]
    small = helper.make_model(
        helper.make_graph(
            nodes,
            "weights",
            [helper.make_tensor_value_info("bl_unused", TensorProto.FLOAT, [1])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
            [constants[name] for name in sorted({n.input[0] for n in nodes})],
        ),
        opset_imports=model.opset_import,
    )
    small.ir_version = model.ir_version
    small.graph.node.append(helper.make_node("Identity", ["bl_unused"], ["bl_used"], "bl_used"))
    small.graph.output.append(helper.make_tensor_value_info("bl_used", TensorProto.FLOAT, [1]))
    session = open_session(small, folder + "/weights.onnx")
    values = session.run_direct(names, {"bl_unused": np.zeros(1, np.float32)})
    return {name: np.asarray(value, np.float32) for name, value in zip(names, values, strict=True)}


def as_int16(node):
    """Return a copy of a calibration node for int16."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name += "_bl16"
    copy.output[0] += "_bl16"
    thresholds = next(list(a.floats) for a in node.attribute if a.name == "thresholds")
    for attribute in copy.attribute:
        if attribute.name == "qtype":
            attribute.s = b"int16"
        elif attribute.name == "scales":
            del attribute.floats[:]
            attribute.floats.extend(t / 32767.0 for t in thresholds)
    return copy


class Switched:
    """A calibrated model whose layers can be switched between float, int8 and int16."""

    def __init__(self, model, folder):
        """Put every emulated quantisation behind its layer's switches."""
        folded = fold_weights(model, folder)
        self.graph = Graph(model)
        self.layers = self.graph.layers()
        self.number = {name: k for k, name in enumerate(self.layers)}
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self._made = set()
        for name, value in folded.items():
            self.model.graph.initializer.append(numpy_helper.from_array(value, name))
        self._folded = folded
        del self.model.graph.node[:]
        for node in model.graph.node:
            self._copy(node)
        for k in range(len(self.layers)):
            for prefix in (SWITCH_8, SWITCH_16):
                self.model.graph.input.append(helper.make_tensor_value_info(f"{prefix}{k}", TensorProto.BOOL, [1]))

    def _copy(self, node):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        outputs = {o.name for o in self.model.graph.output}
        if node.op_type == CALIBRATION:
            if node.output[0] in self._folded:
                return
            if node.output[0] in outputs:
                copy.op_type, copy.domain = "Identity", ""
                del copy.attribute[:]
            self.model.graph.node.append(copy)
            if node.input[0] not in self.graph.constants and node.output[0] not in outputs:
                self.model.graph.node.append(as_int16(node))
            return
        layer = self.graph.owner(node).name
        for position, name in enumerate(node.input):
            source = self.graph.calibrated.get(name)
            if source is not None:
                copy.input[position] = self._behind_switch(layer, name) if layer in self.number else source.input[0]
        self.model.graph.node.append(copy)

    def _behind_switch(self, layer, name):
        k = self.number[layer]
        target = f"bl{k}_{name}"
        if target not in self._made:
            self._made.add(target)
            plain = self.graph.calibrated[name].input[0]
            wide = name if plain in self.graph.constants else f"{name}_bl16"
            add = self.model.graph.node.append
            add(helper.make_node("Where", [f"{SWITCH_16}{k}", wide, plain], [f"{target}_16"], f"{target}_16"))
            add(helper.make_node("Where", [f"{SWITCH_8}{k}", name, f"{target}_16"], [target], target))
        return target

    def switches(self, modes):
        """Return the switch inputs of a run; layers that are not named run in float."""
        feed = {}
        for name, k in self.number.items():
            mode = modes.get(name, FLOAT)
            feed[f"{SWITCH_8}{k}"] = np.array([mode == INT8])
            feed[f"{SWITCH_16}{k}"] = np.array([mode == INT16])
        return feed


def with_free_batch(model, inputs):
    """Return a copy whose batch is free, also behind a Reshape that writes it as 1."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.input:
        if tensor.name in inputs:
            dims = tensor.type.tensor_type.shape.dim
            if not dims or dims[0].dim_value != 1:
                return None
            dims[0].dim_param = "N"
    for tensor in copy.graph.output:
        tensor.type.tensor_type.ClearField("shape")
    del copy.graph.value_info[:]
    shapes = {n.input[1] for n in copy.graph.node if n.op_type == "Reshape"}
    for weight in copy.graph.initializer:
        if weight.name in shapes:
            value = numpy_helper.to_array(weight).copy()
            if value.size and value[0] == 1 and -1 not in value:
                value[0] = -1
                weight.CopyFrom(numpy_helper.from_array(value, weight.name))
    return copy


class Runner:
    """Runs a switched model on samples, in batches where that gives the same numbers."""

    def __init__(self, switched, extra, feed, batch, folder):
        """Open the session; ``extra`` tensors become outputs too."""
        self.switched, self.feed = switched, feed
        self.count = len(next(iter(feed.values()))[0])
        model = onnx.ModelProto()
        model.CopyFrom(switched.model)
        present = {o.name for o in model.graph.output}
        for name in extra:
            if name not in present:
                model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        self.session = open_session(model, folder + "/switched.onnx")
        self.names = list(self.session.output_names)
        self.batch = 1
        free = with_free_batch(model, feed) if batch > 1 and self.count > 1 else None
        if free is not None:
            self._try_batch(free, batch, folder)

    def _try_batch(self, free, batch, folder):
        modes = dict.fromkeys(self.switched.layers, INT8)
        single = [self._run(self.session, modes, i, i + 1) for i in range(2)]
        try:
            session = open_session(free, folder + "/free.onnx")
            pair = self._run(session, modes, 0, 2)
        except Exception:  # noqa: BLE001  # the vendor's runtime raises anything; the answer to all of it is one by one
            return
        for k, both in enumerate(pair):
            want = np.concatenate([np.asarray(s[k]).reshape(1, -1) for s in single])
            got = np.asarray(both)
            if got.size != want.size or not np.allclose(got.reshape(2, -1), want, rtol=1e-4, atol=1e-5):
                return
        self.session, self.batch = session, batch

    def _run(self, session, modes, start, end):
        chunk = self.switched.switches(modes)
        for name, (array, shape) in self.feed.items():
            part = array[start:end]
            chunk[name] = part.reshape(shape) if end - start == 1 else part
        return session.run_direct(self.names, chunk)

    def run(self, modes):
        """Return per output ``[N, elements]`` float64."""
        parts = [self._run(self.session, modes, i, min(i + self.batch, self.count))
                 for i in range(0, self.count, self.batch)]  # fmt: skip
        return {
            name: np.concatenate([np.asarray(p[k], np.float64).reshape(-1) for p in parts]).reshape(self.count, -1)
            for k, name in enumerate(self.names)
        }


def errors(got, want):
    """Return the error figures between two arrays of equal size."""
    delta = np.abs(got - want).ravel()
    norms = float(np.linalg.norm(got)) * float(np.linalg.norm(want))
    cosine = float(got.ravel() @ want.ravel()) / norms if norms else float(not got.any() and not want.any())
    return {
        "cosine": cosine, "max_abs": float(delta.max()), "mean_abs": float(delta.mean()),
        "rmse": math.sqrt(float(np.square(delta).mean())), "p99_abs": float(np.percentile(delta, 99)),
    }  # fmt: skip


def compare(got, want, names):
    """Return error figures per named tensor."""
    return {name: errors(got[name], want[name]) for name in names}


def main(path):
    """Do what the request file says."""
    request = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    folder = path.rsplit("/", 1)[0]
    model = onnx.load(request["model"])
    feed = read_feed(model, request["inputs"], {})
    switched = Switched(model, folder)
    names = [o.name for o in model.graph.output]
    layers, plans = list(switched.layers), request.get("plans", [])
    total = (2 * len(layers) + 2 if request.get("layers") else 0) + len(plans) + 2
    runner = Runner(switched, [], feed, request.get("batch", 1), folder)
    base = runner.run({})
    done = 0

    def measured(modes):
        nonlocal done
        done += 1
        say(progress=[done, total])
        return compare(runner.run(modes), base, names)

    result = {
        "batch": runner.batch,
        "all_int8": measured(dict.fromkeys(layers, INT8)),
        "all_int16": measured(dict.fromkeys(layers, INT16)),
        "plans": [measured({**dict.fromkeys(layers, INT8), **dict.fromkeys(plan, INT16)}) for plan in plans],
        "layers": [],
    }
    if request.get("layers"):
        inner = [output for _, output in switched.layers.values()]
        wide = Runner(switched, inner, feed, request.get("batch", 1), folder)
        cumulative = compare(wide.run(dict.fromkeys(layers, INT8)), wide.run({}), inner)
        for name, (op_type, output) in switched.layers.items():
            result["layers"].append({
                "node": name, "type": op_type, "single_int8": measured({name: INT8}),
                "single_int16": measured({name: INT16}), "cumulative": cumulative[output],
            })  # fmt: skip
    pathlib.Path(request["answer"]).write_text(json.dumps(result), encoding="utf-8")
    say(result={})


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Exception as error:  # noqa: BLE001  # the outermost boundary: one line instead of a traceback
        say(error=f"{type(error).__name__}: {error}"[:2000])
        sys.exit(1)
