"""The verdict's printout, to the letter."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from boardlift._render import job_html
from boardlift.cli.output import Output, align, seconds_text, size_text
from boardlift.cli.print_verdict import print_end
from boardlift.models import (
    Artifact,
    Failure,
    Figure,
    Gate,
    GateResult,
    JobInfo,
    Stage,
    VariantVerdict,
    Verdict,
)

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
COSINE = Figure("cosine", 0.998524, "1", "simulated", "hb_mapper")
LATENCY = Figure("estimated_latency_us", 463.9, "us", "estimated", "hbdk")
P99 = Figure("p99_ms", 1.401526, "ms", "measured", "hrt_model_exec")
JOB = JobInfo(
    id="j1",
    state="succeeded",
    name="round 35k",
    model_name="policy.onnx",
    target="rdk-x5",
    created=START,
    ended=START + timedelta(seconds=93),
    command=("boardlift", "run", "policy.onnx", "--gate", "cosine>=0.99"),
    artifacts=(Artifact("ab" * 32, 2_000_123, "", "policy.bin"),),
    stages=(
        Stage("ingest", "", "succeeded", cached=True),
        Stage("compile", "int8", "failed", failure=Failure("TOOL_FAILED", "no", "n1", "Retry.", ("last line",))),
    ),
    verdict=Verdict(
        "pass",
        ("int16 holds all gates",),
        "int16",
        (
            VariantVerdict(
                "int16",
                "pass",
                (
                    GateResult(Gate("cosine", minimum=0.99), "pass", COSINE, "", "actions: 256 samples"),
                    GateResult(Gate("board_p99_ms", maximum=2), "undecided", None, "no board"),
                ),
                (COSINE, LATENCY, P99),
            ),
            VariantVerdict("int8", "fail"),
        ),
        ("Try mixed.",),
    ),
)

GOLDEN = """\
PASS, best variant int16
policy.onnx -> rdk-x5  job j1  round 35k  1 min 33 s  1 of 2 stages from the cache

variant  what                  figure      kind       limit   outcome    about
int16 *                                                       pass
         cosine                0.998524    simulated  ≥ 0.99  pass       actions: 256 samples
         board_p99_ms          none                   ≤ 2     undecided
         estimated_latency_us  463.9 us    estimated
         p99_ms                1.40153 ms  measured
int8                                                          fail

Reasons:
  - int16 holds all gates

Next steps:
  - Try mixed.

file        size     sha256
policy.bin  2.00 MB  abababababababab

Report:     boardlift report j1 --html report.html
All files:  boardlift pull j1 DIR
Reproduce:  boardlift run policy.onnx --gate 'cosine>=0.99'
"""


def test_the_printout(capsys):
    print_end(Output(json_mode=False), JOB)
    captured = capsys.readouterr()
    assert captured.out == GOLDEN
    assert (
        captured.err == "compile int8 failed:\nerror TOOL_FAILED: no\n    at: n1\n    remedy: Retry.\n    | last line\n"
    )


def test_nothing_is_printed_in_json_mode(capsys):
    print_end(Output(json_mode=True), JOB)
    assert capsys.readouterr() == ("", "")


def test_a_failed_job_names_its_error(capsys):
    failed = JobInfo("j2", "failed", error=Failure("DISK_FULL", "There is no room.", remedy="Free some."))
    print_end(Output(json_mode=False), failed)
    captured = capsys.readouterr()
    assert captured.out.startswith("FAILED\n") and "error DISK_FULL: There is no room." in captured.err


def test_every_figure_in_the_printout_has_a_kind(capsys):
    print_end(Output(json_mode=False), JOB)
    for line in capsys.readouterr().out.splitlines():
        if re.search(r"\d(\.\d+)? (us|ms)|0\.99852", line):
            assert re.search("measured|estimated|simulated", line), line


def test_a_pass_without_a_gate_on_accuracy_says_so(capsys):
    verdict = Verdict("pass", variants=(VariantVerdict("int8", "pass"),))
    print_end(Output(json_mode=False), JobInfo("j", "succeeded", verdict=verdict))
    assert "No gate on accuracy" in capsys.readouterr().out


def test_a_job_that_a_program_sent_is_repeated_by_a_clone(capsys):
    print_end(Output(json_mode=False), JobInfo("j-9", "succeeded"))
    assert "Reproduce:  boardlift jobs clone j-9" in capsys.readouterr().out


def test_names_from_outside_do_not_drive_the_terminal(capsys):
    evil = Failure("X", "\x1b]0;title\x07", "node\x1b[2J", "r\r", ("\x1b[31m",))
    verdict = Verdict("fail", ("\x1b[2J",), "", (VariantVerdict("v\x1b[1m", "fail"),))
    print_end(Output(json_mode=False), JobInfo("j", "failed", error=evil, verdict=verdict))
    captured = capsys.readouterr()
    assert not set("\x1b\x07\r") & set(captured.out + captured.err)


def test_html_is_escaped():
    assert "<script>" not in job_html(JobInfo("<script>", "running"))
    assert "0.998524 simulated" in job_html(JOB)


def test_small_texts():
    sizes = [size_text(n) for n in (0, 999, 1000, 2_000_123, 3 << 30)]
    assert sizes == ["0 B", "999 B", "1.00 kB", "2.00 MB", "3.22 GB"]
    spans = [seconds_text(s) for s in (None, 0.04, 59.94, 93, 3725)]
    assert spans == ["", "0.0 s", "59.9 s", "1 min 33 s", "1 h 02 min"]
    assert align(("a", "bb"), [("ccc", "d")]) == [["a    ", "bb  "], ["ccc  ", "d   "]]
