"""Run a vendor-quantised ONNX on samples, inside the toolchain's own interpreter.

Usage: ``python run_quantised.py REQUEST.json``. Prints JSON lines: ``{"progress": [done, total]}``, then one
``{"result": {}}`` or ``{"error": "..."}``. Imports nothing of boardlift.

Request:
    model: quantised ONNX file.
    inputs: ``.npz`` with one array ``[N, ...]`` per model input, already in the form the model takes.
    answer: JSON file to write: samples, batched, missing tensors, load_s and run_s in seconds.
    outputs: ``.npz`` to write: per model output ``[N, ...]``.
    tensors: names of inner tensors to keep as well, with their element types (``int8``, ``int16``, ``int32`` ...).
    tensor_samples: number of leading samples for which the inner tensors are kept.
    tensor_outputs: ``.npz`` to write for them; keys ``t0``, ``t1`` ... in the order of ``tensors``.
    batch: largest batch to try; 1 runs sample by sample.
    offsets: per input the number to add on the way in (128 for images given as uint8); usually absent.
"""

import json
import pathlib
import sys
import time

import numpy as np
import onnx
from horizon_tc_ui import HB_ONNXRuntime
from onnx import TensorProto, helper, numpy_helper

ELEMENTS = {
    "float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "int16": TensorProto.INT16,
    "int32": TensorProto.INT32, "int64": TensorProto.INT64, "bool": TensorProto.BOOL,
}  # fmt: skip

PROBES = 2
"""Samples that must give the same bits alone and together before a batch is believed."""


def say(**message):
    """Print one JSON line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def open_session(model, path):
    """Save a model and load it into the vendor's runtime."""
    onnx.save(model, path)
    return HB_ONNXRuntime(model_file=path)


def with_tensors(model, tensors):
    """Return a copy with inner tensors as outputs, and the names that the model does not have."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    made = {o for n in copy.graph.node for o in n.output}
    given = {i.name for i in copy.graph.input}
    present = {o.name for o in copy.graph.output}
    for name, element in tensors.items():
        if name in made and name not in present:
            copy.graph.output.append(helper.make_tensor_value_info(name, ELEMENTS.get(element, 1), None))
    return copy, [t for t in tensors if t not in made and t not in given]


def with_free_batch(model, inputs=None):
    """Return a copy whose first dimension is free, also behind a Reshape that writes it as 1.

    None when one of the named inputs (default all) has another batch than 1.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.input:
        if inputs is not None and tensor.name not in inputs:
            continue
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


def run_first(session, feed, count):
    """Run the first samples alone; returns per sample its outputs."""
    return [
        session.run_direct(
            session.output_names, {name: array[k : k + 1].reshape(shape) for name, (array, shape) in feed.items()}
        )
        for k in range(min(count, PROBES))
    ]


def run_single(session, feed, count):
    """Run sample by sample; returns per output ``[N, 1, ...]``."""
    results = []
    for index in range(count):
        one = {name: array[index : index + 1].reshape(shape) for name, (array, shape) in feed.items()}
        results.append(session.run_direct(session.output_names, one))
        if index % 8 == 7 or index + 1 == count:
            say(progress=[index + 1, count])
    return [np.stack([np.asarray(r[k]) for r in results]) for k in range(len(session.output_names))]


def run_batched(session, feed, count, batch):
    """Run in batches; returns per output ``[N, ...]``."""
    parts = []
    for start in range(0, count, batch):
        chunk = {name: array[start : start + batch] for name, (array, _) in feed.items()}
        parts.append(session.run_direct(session.output_names, chunk))
        say(progress=[min(start + batch, count), count])
    return [np.concatenate([np.asarray(p[k]) for p in parts]) for k in range(len(session.output_names))]


def try_batched(model, folder, feed, count, batch, probes):
    """Return batched outputs, or None unless the first samples give the same bits alone (`probes`)."""
    free = with_free_batch(model)
    if free is None or count < 2 or batch < 2:
        return None
    try:
        session = open_session(free, folder + "/batched.onnx")
        first = {name: array[: len(probes)] for name, (array, _) in feed.items()}
        together = session.run_direct(session.output_names, first)
    except Exception:  # noqa: BLE001  # the vendor's runtime raises anything; the answer to all of it is one by one
        return None
    for got, *alone in zip(together, *probes, strict=True):
        want = np.concatenate([np.asarray(a) for a in alone])
        if not np.array_equal(np.asarray(got), want):
            return None
    try:
        outputs = run_batched(session, feed, count, batch)
    except Exception:  # noqa: BLE001  # as above
        return None
    return [o[:, None] for o in outputs]


def read_feed(model, path, offsets):
    """Return per input its samples and the shape of one."""
    feed = {}
    with np.load(path, allow_pickle=False) as loaded:
        for tensor in model.graph.input:
            shape = [d.dim_value for d in tensor.type.tensor_type.shape.dim]
            array = loaded[tensor.name]
            if tensor.name in offsets:
                array = (array.astype(np.int16) - offsets[tensor.name]).astype(np.int8)
            feed[tensor.name] = (array.reshape(len(array), *shape[1:]) if shape[0] == 1 else array, shape)
    return feed


def main(path):
    """Do what the request file says."""
    request = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    started = time.time()
    folder = path.rsplit("/", 1)[0]
    model = onnx.load(request["model"])
    feed = read_feed(model, request["inputs"], request.get("offsets", {}))
    count = len(next(iter(feed.values()))[0])
    session = open_session(model, folder + "/plain.onnx")
    probes = run_first(session, feed, count)
    loaded = time.time()
    outputs = try_batched(model, folder, feed, count, request.get("batch", 1), probes)
    batched = outputs is not None
    if outputs is None:
        outputs = run_single(session, feed, count)
    np.savez(request["outputs"], **dict(zip(session.output_names, outputs, strict=True)))
    kept = min(count, request.get("tensor_samples", 0))
    missing = []
    if kept and request.get("tensors"):
        extended, missing = with_tensors(model, request["tensors"])
        inner = open_session(extended, folder + "/extended.onnx")
        values = dict(zip(inner.output_names, run_single(inner, feed, kept), strict=True))
        values.update({name: array[:kept].reshape(kept, *shape) for name, (array, shape) in feed.items()})
        np.savez(
            request["tensor_outputs"],
            **{f"t{k}": values[name] for k, name in enumerate(request["tensors"]) if name in values},
        )
    answer = {"samples": count, "batched": batched, "missing": missing, "load_s": round(loaded - started, 3),
              "run_s": round(time.time() - loaded, 3)}  # fmt: skip
    pathlib.Path(request["answer"]).write_text(json.dumps(answer), encoding="utf-8")
    say(result={})


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Exception as error:  # noqa: BLE001  # the outermost boundary: one line instead of a traceback
        say(error=f"{type(error).__name__}: {error}"[:2000])
        sys.exit(1)
