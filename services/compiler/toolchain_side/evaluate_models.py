"""Run several vendor-quantised ONNX models on samples, inside the toolchain's own interpreter, in one process.

Usage: ``python evaluate_models.py REQUEST.json``. Prints JSON lines: ``{"progress": [done, total]}``, then one
``{"result": {}}`` or ``{"error": "..."}``. Imports nothing of boardlift.

Request:
    jobs: list of {model, inputs, outputs}: quantised ONNX, ``.npz`` with one array ``[N, ...]`` per model input in the
        form the model takes, ``.npz`` to write with one array ``[N, ...]`` per output.
    batch: largest batch to try; 1 runs sample by sample.
    answer: JSON file to write: per job {"batched": ...} or {"error": ...}.
"""

import contextlib
import io
import json
import pathlib
import sys

import numpy as np
import onnx
from run_quantised import open_session, read_feed, run_first, run_single, say, try_batched


def evaluate(job, batch, folder):
    """Run one model and write its outputs; returns whether it ran in batches."""
    model = onnx.load(job["model"])
    feed = read_feed(model, job["inputs"], {})
    count = len(next(iter(feed.values()))[0])
    session = open_session(model, folder + "/plain.onnx")
    probes = run_first(session, feed, count)
    with contextlib.redirect_stdout(io.StringIO()):
        outputs = try_batched(model, folder, feed, count, batch, probes)
        batched = outputs is not None
        if outputs is None:
            outputs = run_single(session, feed, count)
    np.savez(job["outputs"], **dict(zip(session.output_names, outputs, strict=True)))
    return batched


def main(path):
    """Do what the request file says; one job's failure is its own."""
    request = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    folder = path.rsplit("/", 1)[0]
    answers = []
    for number, job in enumerate(request["jobs"]):
        try:
            answers.append({"batched": evaluate(job, request.get("batch", 1), folder)})
        except Exception as error:  # noqa: BLE001  # the vendor's runtime raises anything; other jobs go on
            answers.append({"error": f"{type(error).__name__}: {error}"[:1000]})
        say(progress=[number + 1, len(request["jobs"])])
    pathlib.Path(request["answer"]).write_text(json.dumps(answers), encoding="utf-8")
    say(result={})


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Exception as error:  # noqa: BLE001  # the outermost boundary: one line instead of a traceback
        say(error=f"{type(error).__name__}: {error}"[:2000])
        sys.exit(1)
