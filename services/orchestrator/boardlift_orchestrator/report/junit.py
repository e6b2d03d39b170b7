"""Write the verdict as JUnit XML, so that a build server shows each gate as a test. Pure."""

from __future__ import annotations

import re
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, tostring

_FORBIDDEN: Final = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def write_junit(report: dict[str, Any]) -> bytes:
    """Return the XML: one suite per variant, one case per gate; undecided is an error, fail a failure."""
    root = Element("testsuites", name=_clean(f"boardlift {report['job']['id']}"))
    for variant in report["variants"]:
        cases = _cases(variant)
        suite = SubElement(
            root,
            "testsuite",
            name=_clean(variant["name"]),
            tests=str(len(cases)),
            failures=str(sum(kind == "failure" for _, kind, _ in cases)),
            errors=str(sum(kind == "error" for _, kind, _ in cases)),
        )
        for name, kind, message in cases:
            case = SubElement(suite, "testcase", name=_clean(name), classname=_clean(f"boardlift.{variant['name']}"))
            if kind:
                SubElement(case, kind, message=_clean(message))
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + bytes(tostring(root, encoding="utf-8"))


def _cases(variant: dict[str, Any]) -> list[tuple[str, str, str]]:
    cases = []
    if variant["failure"]:
        failure = variant["failure"]
        kind = "failure" if failure["user_fault"] else "error"  # a tool that broke leaves the variant undecided
        cases.append((failure["stage"], kind, f"{failure['code']}: {failure['message']}"))
    for gate in variant["gates"]:
        kind = {"pass": "", "fail": "failure"}.get(gate["outcome"], "error")
        subject = f" [{gate['subject']}]" if gate["subject"] else ""
        cases.append((f"{gate['gate']['metric']}{subject}", kind, gate["reason"]))
    return cases


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
