"""The report: complete, honest about kinds, self-contained, and safe against hostile texts."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from boardlift.v1 import job_pb2

from boardlift_orchestrator.build_test_facts import make_facts, make_results, make_spec
from boardlift_orchestrator.make_report import _write
from boardlift_orchestrator.record import Failure
from boardlift_orchestrator.report.build import build_report, name_compiled
from boardlift_orchestrator.report.plots import Bar, draw_bars, draw_line, draw_timeline
from boardlift_orchestrator.verdict import judge_job

VOID = {"meta", "br", "rect", "circle", "polyline"}
NASTY = "<script>alert('x')</script>\"&"


def make(*names: str, failures: dict[str, Failure] | None = None, nasty: bool = False) -> dict[str, Any]:
    spec = make_spec(*names, gates=[job_pb2.Gate(metric="cosine", minimum=0.99)])
    results: dict[str, Any] = {}
    for name in names:
        results.update(make_results(name))
    for key in failures or {}:
        results.pop(key, None)
    if nasty:
        spec.model_name = spec.display_name = NASTY
        results["transform/"].io_snippet = NASTY
        results[f"compile/{names[0]}"].nodes[0].node = NASTY
        results[f"compile/{names[0]}"].nodes[1].reason = NASTY + "\x00"
        results["ingest/"].provenance_json = json.dumps({"file": NASTY, "scale": float("nan")})
    job, facts = make_facts(spec, results, failures)
    return build_report(job, spec, facts, judge_job(spec, facts), 1000.0)


def files(report: dict[str, Any]) -> dict[str, bytes]:
    return {name: data for name, data, _ in _write(report)}


def figures(value: Any) -> list[dict[str, Any]]:
    """Every figure at any depth."""
    if isinstance(value, dict):
        own = [value] if {"name", "value", "unit", "kind", "source"} <= set(value) else []
        return own + [item for child in value.values() for item in figures(child)]
    return [item for child in value for item in figures(child)] if isinstance(value, list) else []


def test_the_json_holds_what_a_team_needs_for_each_variant() -> None:
    report = json.loads(files(make("a", "b"))["report.json"])
    assert report["schema"] == "boardlift.report/1"
    assert report["reproduce"] == "boardlift run 'policy v2.onnx'"
    assert [tool["version"] for tool in report["tools"]] == ["1.24.3"]
    for variant in report["variants"]:
        compiled = variant["compile"]
        assert (compiled["bpu_nodes"], compiled["cpu_nodes"], compiled["bpu_subgraphs"]) == (1, 1, 1)
        assert compiled["compiled_model"]["name"] == f"policy_v2_{variant['name']}.bin"
        assert len(compiled["compiled_model"]["sha256"]) == 64
        assert {f["name"] for f in compiled["figures"]} >= {"estimated_latency_us", "ddr_bytes"}
        for part in (compiled["vendor_outputs"], variant["simulate"]["outputs"]):
            assert {f["name"] for f in part[0]["figures"]} >= {"cosine", "l1", "l2", "chebyshev"}
        assert variant["transform"]["io_map"][0]["after"]["shape"] == [1, 1, 1, 225]
        assert variant["transform"]["io_map"][0]["direction"] == "input"
        assert variant["transform"]["equivalence"]
        assert variant["simulate"]["bit_exact"] is True
        assert variant["board"]["simulated"] is True


def test_a_job_without_a_command_line_gets_one() -> None:
    spec = make_spec("a", gates=[job_pb2.Gate(metric="cosine", output="actions", minimum=0.99)])
    del spec.command[:]
    job, facts = make_facts(spec, make_results("a"))
    assert build_report(job, spec, facts, judge_job(spec, facts), 1.0)["reproduce"] == "boardlift jobs clone j-1"


def test_every_figure_has_a_kind_and_a_source() -> None:
    found = figures(make("a"))
    assert len(found) > 20
    assert {item["kind"] for item in found} <= {"measured", "estimated", "simulated"}
    assert all(item["source"] and item["unit"] for item in found)


class Page(HTMLParser):
    """Checks nesting and collects what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.loads += [str(v) for k, v in attrs if k in ("src", "href") and not str(v).startswith("#")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("li", "td", "th", "tr", "p") and tag not in self.open[-1:]:
            return
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("nasty", [False, True])
def test_the_page_is_well_formed_self_contained_and_escaped(nasty: bool) -> None:
    html = files(make("a", "b", nasty=nasty))["report.html"].decode()
    page = Page()
    page.feed(html)
    assert page.open == [] and page.scripts == 0 and page.loads == []
    assert "<script" not in html
    assert html.count("<svg") >= 4
    assert "Content-Security-Policy" in html


def test_the_page_shows_the_kind_beside_every_number_of_a_table() -> None:
    html = files(make("a"))["report.html"].decode()
    for name in ("measured", "estimated", "simulated"):
        assert f'class="kind {name}"' in html
    assert "This board is <b>simulated</b>" in html
    assert "reported, never believed" in html


def test_a_refused_variant_is_told_with_evidence_and_remedy() -> None:
    failure = Failure("OPSET_TOO_HIGH", "Opset 18.", remedy="Lower it.", evidence=("line 1", "line 2"))
    keys = {f"{stage}/b": failure for stage in ("compile",)}
    report = make("a", "b", failures=keys)
    html = files(report)["report.html"].decode()
    assert "compile said no: OPSET_TOO_HIGH" in html
    assert "line 1\nline 2" in html and "Lower it." in html


def test_a_job_that_failed_at_its_first_stage_still_has_a_report() -> None:
    spec = make_spec("a")
    job, facts = make_facts(spec, {}, {"ingest/": Failure("DATASET_EMPTY", "No samples.")})
    report = build_report(job, spec, facts, judge_job(spec, facts), 1.0)
    assert b"DATASET_EMPTY" in files(report)["report.html"]


def test_junit_has_a_case_per_gate(nasty: bool = True) -> None:
    root = ElementTree.fromstring(files(make("a", nasty=nasty))["junit.xml"])  # noqa: S314 - our own file
    suite = root.find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "0" and int(str(suite.get("tests"))) == 5
    assert {case.get("classname") for case in suite} == {"boardlift.a"}


def test_junit_tells_a_tool_that_broke_as_an_error() -> None:
    report = make("a", failures={"simulate/a": Failure("SIM", "boom \x01")})
    root = ElementTree.fromstring(files(report)["junit.xml"])  # noqa: S314 - our own file
    assert [case.tag for case in root.findall(".//testcase[@name='simulate']/*")] == ["error"]


def test_junit_tells_what_the_input_causes_as_a_failure() -> None:
    report = make("a", failures={"simulate/a": Failure("SIM", "boom", user_fault=True)})
    root = ElementTree.fromstring(files(report)["junit.xml"])  # noqa: S314 - our own file
    assert [case.tag for case in root.findall(".//testcase[@name='simulate']/*")] == ["failure"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a/b/policy v2.onnx", "policy_v2_int8.bin"), ("", "model_int8.bin"), ("../../etc/passwd", "passwd_int8.bin")],
)
def test_names_of_compiled_models_are_safe(name: str, expected: str) -> None:
    spec = make_spec("int8")
    spec.model_name = name
    assert name_compiled(spec, "int8") == expected


def test_plots_cope_with_nothing_zero_and_infinite() -> None:
    assert draw_bars("t", []) == "" and draw_line("t", [], "measured") == "" and draw_timeline("t", []) == ""
    zero = draw_bars("t", [Bar("z", 0.0, "0"), Bar("n", float("nan"), "n"), Bar("i", float("inf"), "i")])
    assert zero.count("<rect") == 1
    ElementTree.fromstring(draw_bars("t<", [Bar(NASTY, 1.0, "1"), Bar("b", 1e-9, "tiny")], logarithmic=True))  # noqa: S314 - our own file
    ElementTree.fromstring(draw_line("t", [(NASTY, 0.9), ("b", 0.9)], "simulated"))  # noqa: S314 - our own file
    assert not re.search(r"nan|inf", draw_timeline("t", [("a", 5.0, 5.0, "done")]))
