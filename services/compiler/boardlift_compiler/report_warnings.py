"""Pass on the tool's own warnings that name a node; pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_log import LogFacts

NAMES_NODE = re.compile(
    r"Node\(name:(?P<a>.+?), type:|node name is (?P<b>.+?), op type|datatype of node:(?P<c>.+?) will be set back"
)
MOST = 100
"""Warnings passed on; the log has them all."""


def named_warnings(facts: LogFacts, reported: Collection[str]) -> list[Finding]:
    """Return a note per warning that names a node of which nothing else is said yet, repeated ones once.

    Args:
        facts: What the log says.
        reported: Nodes that other findings are about.
    """
    found = {}
    for text in facts.warnings:
        match = NAMES_NODE.search(text)
        node = next((name for name in match.groups() if name), "") if match else ""
        if node and node not in reported:
            found[text] = Finding("TOOL_WARNING", "note", f"The tool warns: {text[:300]}", node)
    return list(found.values())[:MOST]
