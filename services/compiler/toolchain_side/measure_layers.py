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
from onnx import TensorProto, helper
from run_quantised import open_session, read_feed, say, with_free_batch
from switch_layers import INT8, INT16, Switched


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
