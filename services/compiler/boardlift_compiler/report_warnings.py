"""Pass on the tool's own warnings that name a node, and what it calls errors of a build that ended well; pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_log import LogFacts

NAMES_NODE = re.compile(
    r"Node\(name:(?P<a>.+?), type:|node name is (?P<b>.+?), op type|datatype of node:(?P<c>.+?) will be set back"
)
MOST = 100
"""Lines of a kind that are passed on; the log has them all."""


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


def printed_errors(facts: LogFacts) -> list[Finding]:
    """Return a warning per line that the tool printed as an error though its build ended well, repeated ones once."""
    lines = list(dict.fromkeys(line[:300] for line in facts.errors))
    return [Finding("TOOL_PRINTED_ERROR", "warning", line) for line in lines[:MOST]]
