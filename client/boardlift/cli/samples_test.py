"""`boardlift samples` against the fake server, whose stages' results are put in by hand."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from boardlift.v1 import compiler_pb2, toolchain_pb2, transform_pb2


def npz(name):
    file = io.BytesIO()
    np.savez(file, **{name: np.ones((2, 3), np.float32)})
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("dataset.json", "{}")
    return file.getvalue()


@pytest.fixture
def job(boardlift, server, model, data):
    assert boardlift("run", model, "--data", data, "--variant", "int8", "--variant", "int16").code == 0

    def put(stage, variant, message):
        record = next(
            (s for s in server.jobs.jobs["job-1"].job.stages if (s.stage, s.variant) == (stage, variant)), None
        )
        record = record or server.jobs.jobs["job-1"].job.stages.add(stage=stage, variant=variant)
        record.result.CopyFrom(server.artifacts.put(message.SerializeToString(), ""))

    held = {name: server.artifacts.put(npz(name), "") for name in ("own", "form8", "form16", "ref", "int16")}
    spec = toolchain_pb2.TensorSpec
    entry = transform_pb2.IoMapping(
        before=spec(name="obs", dtype="float32", shape=[1, 3]), after=spec(name="obs_4d", shape=[1, 1, 1, 3])
    )
    put("ingest", "", transform_pb2.PrepareDatasetResponse(heldout=held["own"]))
    for preset, form in (("int8", "form8"), ("int16", "form16")):
        result = transform_pb2.TransformResult(heldout=held[form], reference_outputs=held["ref"], io_map=[entry])
        put("transform", preset, result)
    put("simulate", "int16", compiler_pb2.SimulateResult(quantized_outputs=held["int16"]))
    return "job-1"


def test_what_a_variant_was_proven_on_is_saved_with_the_answers(boardlift, server, job, tmp_path):
    ended = boardlift("samples", job, "--variant", "int16", "--out", tmp_path / "s")
    assert ended.code == 0, ended.err
    assert "obs float32 [1, 3]" in ended.out and "boardlift diagnose job-1 --variant int16" in ended.out
    saved = {path.name: np.load(path).files for path in (tmp_path / "s").iterdir()}
    assert saved == {
        "inputs.npz": ["own"],
        "compiled_inputs.npz": ["form16"],
        "float_outputs.npz": ["ref"],
        "quantised_outputs.npz": ["int16"],
    }  # no dataset.json
    plain = boardlift("samples", job, "--out", tmp_path / "first", "--json").json
    assert plain["variant"] == "int8" and len(plain["files"]) == 3


def test_an_unknown_variant_and_a_job_that_has_none_yet_are_refused(boardlift, server, job, tmp_path):
    assert boardlift("samples", job, "--variant", "int9", "--out", tmp_path / "s").code == 2
    for stage in server.jobs.jobs[job].job.stages:
        stage.ClearField("result")
    ended = boardlift("samples", job, "--out", tmp_path / "s")
    assert ended.code == 2 and "NO_SAMPLES" in ended.err and not (tmp_path / "s").exists()
