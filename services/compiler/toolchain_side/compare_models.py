"""Compare what the tool made of one model, inside the toolchain's own interpreter: float, calibrated, quantised.

Usage: ``python compare_models.py REQUEST.json``. Prints one JSON line: ``{"result": {}}`` or ``{"error": "..."}``.
Imports nothing of boardlift.

The float model is the tool's optimised one. The calibrated model computes in float and rounds where the integers will;
the quantised model computes in integers. All are given the same samples. All figures are signal to noise in decibel, at
most ``MOST_DB``; the signal is what is left without its mean.

Request:
    answer: JSON file to write.
    float, calibrated, quantized: ``{"model": ONNX file, "inputs": .npz}``, one array ``[N, ...]`` per model input in
        the form it takes.
    near_db, behind_db, loss_db: nodes are compared as well when an output of the quantised model is below ``near_db``
        and more than ``behind_db`` behind the calibrated one, or one of the calibrated model below ``loss_db``.
    most_elements: of the tensors that are held at one time.
Answer:
    outputs: per float output ``{"output", "source", "calibrated_db", "quantized_db"}``, both against the float
        model; the source is the tensor in front of the rounding.
    nodes: per node of the calibrated model, in order, ``{"node", "type", "inputs", "output", "calibrated_db",
        "integers_db"}``: against the float model, and the integers against the calibrated model; null where one of the
        two lacks the tensor or it never changes. Empty when no output asks for it.
"""

import json
import math
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper
from run_quantised import open_session, read_feed, run_single, say

CALIBRATION = "HzCalibration"
MOST_DB = 99.0
LOCATE = 2
"""Samples for which inner tensors are kept."""


def signal_to_noise(got, want):
    """Return decibels, or None when the wanted values never change."""
    if not np.isfinite(got).all() or not np.isfinite(want).all():
        return -MOST_DB
    noise = float(np.square(got - want).sum())
    signal = float(np.square(want - want.mean()).sum())
    if signal == 0.0:
        return None
    return MOST_DB if noise == 0.0 else max(-MOST_DB, min(MOST_DB, 10 * math.log10(signal / noise)))


class Side:
    """One of the models with its samples."""

    def __init__(self, part, plain):
        """Load both; ``plain`` is a file that may be written."""
        self.model = onnx.load(part["model"])
        self.feed = read_feed(self.model, part["inputs"], {})
        self.count = len(next(iter(self.feed.values()))[0])
        self.plain = plain
        self.made = {o: n for n in self.model.graph.node for o in n.output}
        self.types = {v.name: v.type.tensor_type.elem_type for v in self.model.graph.value_info}

    def run(self, extra=(), count=0):
        """Return per output and ``extra`` tensor ``[N, ...]`` float64."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        present = {o.name for o in model.graph.output}
        for name in dict.fromkeys(extra):
            if name not in present:
                element = self.types.get(name, TensorProto.FLOAT)
                model.graph.output.append(helper.make_tensor_value_info(name, element, None))
        session = open_session(model, self.plain)
        values = run_single(session, self.feed, count or self.count)
        return {n: np.asarray(v, np.float64) for n, v in zip(session.output_names, values, strict=True)}


def compare_outputs(sides):
    """Return a row per float output that all three have."""
    values = {name: side.run() for name, side in sides.items()}
    rows = []
    for tensor in sides["calibrated"].model.graph.output:
        found = {name: v.get(tensor.name) for name, v in values.items()}
        if tensor.type.tensor_type.elem_type != TensorProto.FLOAT or any(v is None for v in found.values()):
            continue
        want = found["float"].ravel()
        if found["calibrated"].size == found["quantized"].size == want.size:
            row = {f"{n}_db": signal_to_noise(found[n].ravel(), want) for n in ("calibrated", "quantized")}
            maker = sides["calibrated"].made.get(tensor.name)
            rounded = maker is not None and maker.op_type == CALIBRATION
            rows.append({"output": tensor.name, "source": maker.input[0] if rounded else tensor.name, **row})
    return rows


def inner_tensors(calibrated, quantized):
    """Return per node output of the calibrated model: the tensor to compare, its integers, their scale.

    The tensor behind the emulated rounding is taken where there is one, as the integers are clamped there. The scale is
    None where there is none, one per channel, or one of another integer type: then the one that fits best is taken.
    """
    rounded = {n.input[0]: n for n in calibrated.model.graph.node if n.op_type == CALIBRATION}
    element = {b"int8": TensorProto.INT8, b"int16": TensorProto.INT16}
    found = {}
    for node in calibrated.model.graph.node:
        name = node.output[0]
        integers = f"{name}_quantized"
        if node.op_type == CALIBRATION or integers not in quantized.made:
            continue
        behind = rounded.get(name)
        known = {} if behind is None else {a.name: helper.get_attribute_value(a) for a in behind.attribute}
        scales, wanted = known.get("scales", ()), element.get(known.get("qtype"))
        same = len(scales) == 1 and quantized.types.get(integers, wanted) == wanted
        found[name] = (name if behind is None else behind.output[0], integers, scales[0] if same else None)
    return found


def fit(got, want, scale):
    """Return the signal to noise of integers ``[N, 1, ...]`` against floats; they may lie channels last."""
    orders = [got]
    if got.ndim == want.ndim == 5:
        orders = [o for o in (got, np.moveaxis(got, -1, 2)) if o.shape == want.shape]
    figures = []
    for order in orders:
        flat, aim = order.ravel(), want.ravel()
        if flat.size != aim.size:
            continue
        power = float(flat @ flat)
        factor = scale if scale is not None else (float(flat @ aim) / power if power else 0.0)
        figures.append(signal_to_noise(flat * factor, aim))
    return max((f for f in figures if f is not None), default=None)


def split_nodes(nodes, sizes, most_elements):
    """Split nodes into runs, in order, each of at most so many elements; a larger node stands alone."""
    parts, held = [], 0
    for node in nodes:
        size = sizes.get(node.output[0], 0)
        if not parts or held + size > most_elements:
            parts.append([])
            held = 0
        parts[-1].append(node)
        held += size
    return parts


def compare_nodes(sides, most_elements):
    """Return a row per node; large models are gone through in parts, one sample each, so that memory lasts."""
    plain, calibrated, quantized = (sides[n] for n in ("float", "calibrated", "quantized"))
    infos = calibrated.model.graph.value_info
    sizes = {v.name: math.prod(d.dim_value for d in v.type.tensor_type.shape.dim) for v in infos}
    inner = inner_tensors(calibrated, quantized)
    nodes = [n for n in calibrated.model.graph.node if n.op_type != CALIBRATION]
    parts = split_nodes(nodes, sizes, most_elements)
    count = min(LOCATE if len(parts) == 1 else 1, calibrated.count)
    rows = []
    for part in parts:
        names = [n.output[0] for n in part]
        wanted = {n: inner[n] for n in names if n in inner}
        in_float = plain.run([n for n in names if n in plain.made], count)
        rounded = calibrated.run([*names, *(t for t, _, _ in wanted.values())], count)
        integers = quantized.run([i for _, i, _ in wanted.values()], count)
        behind = {n: fit(integers[i], rounded[t], scale) for n, (t, i, scale) in wanted.items()}
        loss = {n: signal_to_noise(rounded[n].ravel(), in_float[n].ravel()) for n in names
                if n in in_float and rounded[n].size == in_float[n].size}  # fmt: skip
        rows += [
            {"node": n.name, "type": n.op_type, "inputs": [t.removesuffix("_calibrated") for t in n.input],
             "output": n.output[0], "calibrated_db": loss.get(n.output[0]), "integers_db": behind.get(n.output[0])}
            for n in part
        ]  # fmt: skip
    return rows


def asks_for_nodes(row, request):
    """Tell whether an output is far enough from where it should be."""
    calibrated, quantized = row["calibrated_db"], row["quantized_db"]
    if calibrated is None or quantized is None:
        return False
    far = quantized < request["near_db"] and calibrated - quantized > request["behind_db"]
    return far or calibrated < request["loss_db"]


def main(path):
    """Do what the request file says."""
    request = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    folder = path.rsplit("/", 1)[0]
    sides = {n: Side(request[n], f"{folder}/compare_{n}.onnx") for n in ("float", "calibrated", "quantized")}
    outputs, nodes = compare_outputs(sides), []
    if any(asks_for_nodes(row, request) for row in outputs):
        nodes = compare_nodes(sides, request["most_elements"])
    answer = {"outputs": outputs, "nodes": nodes}
    pathlib.Path(request["answer"]).write_text(json.dumps(answer), encoding="utf-8")
    say(result={})


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Exception as error:  # noqa: BLE001  # the outermost boundary: one line instead of a traceback
        say(error=f"{type(error).__name__}: {error}"[:2000])
        sys.exit(1)
