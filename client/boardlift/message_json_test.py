from __future__ import annotations

import json

from boardlift.message_json import message_to_plain
from boardlift.v1 import job_pb2, toolchain_pb2, transform_pb2


def test_names_numbers_enums_times_and_maps_stay_readable():
    job = job_pb2.Job(id="j", state=job_pb2.Job.STATE_RUNNING)
    job.create_time.FromSeconds(0)
    job.spec.limit_duration.FromSeconds(60)
    job.spec.board.labels["soc"] = "x5"
    job.spec.model.inline_model = b"abc"
    job.verdict.outcome = job_pb2.Verdict.OUTCOME_PASS
    plain = message_to_plain(job)
    assert plain["state"] == "running" and plain["verdict"] == {"outcome": "pass"}
    assert plain["create_time"] == "1970-01-01T00:00:00+00:00" and plain["spec"]["limit_duration"] == 60
    assert plain["spec"]["board"]["labels"] == {"soc": "x5"} and plain["spec"]["model"]["inline_model"] == "3 bytes"
    assert json.loads(json.dumps(plain)) == plain


def test_maps_of_numbers_and_repeated_values():
    summary = transform_pb2.ModelSummary(operators={"Gemm": 4}, parameters=2**40)
    summary.inputs.add(name="obs", shape=[-1, 225])
    plain = message_to_plain(summary)
    assert plain == {"operators": {"Gemm": 4}, "parameters": 2**40, "inputs": [{"name": "obs", "shape": [-1, 225]}]}
    assert message_to_plain(toolchain_pb2.Figure(kind=99)) == {"kind": "unknown"}
