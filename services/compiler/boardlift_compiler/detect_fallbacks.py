"""No silent fallback: compare what was asked with what was built, node by node; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from boardlift_compiler import op_truth
from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_log import LogFacts
from boardlift_compiler.parse_tables import NodeRow
from boardlift_compiler.read_model import ModelSummary, Node
from boardlift_compiler.spec import CompileSpec, NodeOverride

PREPROCESS = "HZ_PREPROCESS_FOR_"
MOST_INPUTS = 256
REFUSED_INPUT = re.compile(r"The input(\d+) of Node\(name:(.+?), type:\w+\) does not support data type: int16")
REQUANTISED = re.compile(r"The output of Node\(name:(.+?)\) is int16, then requantized to int8")
ON_BPU_WORD = re.compile(r"set_(\w+?)_(?:input|output)_int(?:8|16)")
"""The tool's way to ask for all operators of a type on the BPU."""


def placement_reasons(spec: CompileSpec, model: ModelSummary, facts: LogFacts) -> dict[str, str]:
    """Return per printed node why it is not as asked: on the CPU, or in int8 although int16 was asked."""
    nodes = {printed_name(n.name): n for n in model.nodes}
    reasons: dict[str, str] = {}
    for row in facts.nodes:
        reason = _row_reason(row, nodes.get(row.node), spec, model, facts)
        if reason:
            reasons[row.node] = reason
    return reasons


def printed_name(name: str) -> str:
    """Return a node's name as the tool's table shortens it."""
    return "..." + name[-47:] if len(name) > 50 else name


def _row_reason(row: NodeRow, node: Node | None, spec: CompileSpec, model: ModelSummary, facts: LogFacts) -> str:
    if row.device == "CPU":
        if node is None:
            return "inserted by the tool; it has no BPU form here"
        asked = {o.node for o in spec.nodes if o.device == "CPU"} | set(spec.calibration.run_on_cpu)
        if node.name in asked:
            return "as asked"
        return op_truth.cpu_reason(node, model, spec.wants_int16) or _place_reason(node, model, facts)
    if row.dtype == "int8" and _asked_int16(row, node, spec):
        if row.node in facts.set_back:
            return f"the tool set it back to {facts.set_back[row.node]}: " + (
                (op_truth.stays_int8(node, model) if node else "") or "its result leaves the BPU directly"
            )
        if row.node.startswith(PREPROCESS):
            return "image preprocessing is int8 by nature"
        return (op_truth.stays_int8(node, model) if node else "") or f"{row.type} has no int16 form here"
    return ""


def _place_reason(node: Node, model: ModelSummary, facts: LogFacts) -> str:
    """Return why an operator that has a BPU form runs on the CPU here: most often a neighbour keeps it there."""
    devices = {r.node: r.device for r in facts.nodes}
    for place in ("in front of it", "behind it"):
        waiting, seen = _neighbours(node, model, place), {node.name}
        while waiting:
            other = waiting.pop(0)
            device = devices.get(printed_name(other.name))
            if device == "CPU" and op_truth.cpu_reason(other, model, int16=False):
                return f"{node.op_type} stays with {other.name} ({other.op_type}) {place}, which runs on the CPU"
            if device is None and other.name not in seen:  # no row: it is part of another node, look past it
                seen.add(other.name)
                waiting += _neighbours(other, model, place)
    return f"{node.op_type} has no BPU form in this place"


def _neighbours(node: Node, model: ModelSummary, place: str) -> list[Node]:
    if place == "behind it":
        return [m for m in model.nodes if set(m.inputs) & set(node.outputs)]
    return [m for m in model.nodes if set(m.outputs) & set(node.inputs)]


def _asked_int16(row: NodeRow, node: Node | None, spec: CompileSpec) -> bool:
    if spec.wants_int16 or (node is not None and f"set_{node.op_type}_input_int16" in spec.calibration.optimization):
        return True
    return any(printed_name(o.node) == row.node and 0 in _int16_inputs(o) for o in spec.nodes)


def _int16_inputs(override: NodeOverride) -> frozenset[int]:
    """Return the inputs that an override asks in int16."""
    if override.input_type == "int16":
        return frozenset(range(MOST_INPUTS))
    return frozenset(number for number, dtype in override.input_types.items() if dtype == "int16")


def find_fallbacks(
    spec: CompileSpec,
    model: ModelSummary,
    facts: LogFacts,
    samples_given: int,
    first_md5: Mapping[str, str],
    cpu_ops: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """Return a finding per thing that was asked and not built.

    Args:
        spec: The completed spec.
        model: The model.
        facts: What the log says.
        samples_given: Samples written per input; 0 without calibration.
        first_md5: Per input the MD5 of the first file we wrote.
        cpu_ops: Operators of the compiled model that run on the CPU, by name; the tool's table leaves some out.
    """
    reasons = placement_reasons(spec, model, facts)
    findings = list(_node_findings(spec, facts, reasons))
    findings += _hidden_cpu_findings(facts, cpu_ops, {n.name for n in model.nodes})
    findings += _override_findings(spec, facts, {f.subject for f in findings if f.code == "INT16_FELL_BACK"})
    findings += _device_findings(spec, model, facts, cpu_ops)
    if samples_given and facts.samples != samples_given:
        findings.append(
            Finding(
                "SAMPLES_NOT_READ",
                "error",
                f"{samples_given} samples were given and the tool read {facts.samples}.",
                "",
                "Keep the log and report it.",
            )
        )
    if samples_given and sorted(facts.first_md5) != sorted(first_md5.values()):
        findings.append(
            Finding(
                "SAMPLES_NOT_OURS",
                "error",
                "The tool's checksum of the first sample is not that of the file written.",
                "",
                "Keep the log and report it.",
            )
        )
    if facts.batch_fallback:
        findings.append(
            Finding(
                "CALIBRATION_BATCH_FALLBACK",
                "note",
                "A Reshape with a fixed batch made calibration run one by one: 4 to 6 times slower.",
                "",
                "The transform pass free-batch cures it.",
            )
        )
    return findings


def _node_findings(spec: CompileSpec, facts: LogFacts, reasons: Mapping[str, str]) -> list[Finding]:
    found = []
    for row in facts.nodes:
        reason = reasons.get(row.node, "")
        if not reason or reason == "as asked" or row.node.startswith(PREPROCESS):
            continue
        if row.device == "BPU":
            found.append(
                Finding(
                    "INT16_FELL_BACK",
                    "error",
                    f"{row.node} was asked in int16 and built in int8: {reason}.",
                    row.node,
                    _int16_remedy(reason),
                )
            )
        else:
            found.append(
                Finding(
                    "NODE_ON_CPU",
                    "warning",
                    f"{row.node} ({row.type}) runs on the CPU: {reason}.",
                    row.node,
                    op_truth.CHEAP_REWRITES.get(row.type, ("", ""))[1],
                )
            )
    return found


def _int16_remedy(reason: str) -> str:
    if "input channels" in reason or "leaves the BPU" in reason:
        return "Split the head into parts of at most 256 input channels (transform pass split-wide-head)."
    return op_truth.int16_form(reason) or "Accept int8 for this node, or rewrite it as a convolution."


def _hidden_cpu_findings(facts: LogFacts, cpu_ops: Mapping[str, str], names: set[str]) -> list[Finding]:
    rows = {r.node for r in facts.nodes}
    hidden = [n for n in cpu_ops if n in names and printed_name(n) not in rows]
    text = "{0} ({1}) runs on the CPU; the tool's table leaves it out."
    return [Finding("NODE_ON_CPU", "warning", text.format(n, cpu_ops[n]), n) for n in hidden]


def _override_findings(spec: CompileSpec, facts: LogFacts, known: set[str]) -> list[Finding]:
    """Say what became of int16 overrides whose node has no row of its own, or whose row shows its first input only."""
    rows = {r.node for r in facts.nodes}
    refused = {(m[2], int(m[1])) for text in facts.warnings if (m := REFUSED_INPUT.search(text))}
    requantised = {m[1] for text in facts.warnings if (m := REQUANTISED.search(text))}
    found = []
    for override in spec.nodes:
        asked, name = _int16_inputs(override), override.node
        if override.output_type == "int16" and name in requantised:
            text = f"{name} was asked to give int16 and what reads it takes int8: its output is requantised."
            found.append(Finding("INT16_FELL_BACK", "error", text, name, "Rewrite the node that reads it."))
        if not asked or printed_name(name) in known:
            continue
        numbers = sorted(k for n, k in refused if n == name and k in asked)
        if numbers:
            text = f"{name} was asked in int16 and takes no int16 at input {', '.join(map(str, numbers))}."
            found.append(Finding("INT16_FELL_BACK", "error", text, name, _int16_remedy("")))
        elif printed_name(name) not in rows:
            text = f"{name} was asked in int16 and is part of another node: the tool's table does not show its type."
            found.append(
                Finding("INT16_NOT_SHOWN", "warning", text, name, "Ask it of the node that it became part of.")
            )
    return found


def _device_findings(
    spec: CompileSpec, model: ModelSummary, facts: LogFacts, cpu_ops: Mapping[str, str]
) -> list[Finding]:
    devices: dict[str, set[str]] = {}  # several, where long names are the same as the table shortens them
    for row in facts.nodes:
        devices.setdefault(row.node, set()).add(row.device)
    found = []
    asked_bpu = [o.node for o in spec.nodes if o.device == "BPU"] + list(spec.calibration.run_on_bpu)
    if spec.preset != "fast-perf":  # it adds these words by itself, for whatever of it can go there
        words = {m[1] for w in spec.calibration.optimization if (m := ON_BPU_WORD.fullmatch(w))}
        asked_bpu += [n.name for n in model.nodes if n.op_type in words]
    for name in dict.fromkeys(asked_bpu):
        if name in cpu_ops or devices.get(printed_name(name)) == {"CPU"}:
            found.append(
                Finding(
                    "BPU_FELL_BACK",
                    "error",
                    f"{name} was asked on the BPU and runs on the CPU.",
                    name,
                    "The operator has no BPU form in this place; rewrite it.",
                )
            )
    for name in [o.node for o in spec.nodes if o.device == "CPU"] + list(spec.calibration.run_on_cpu):
        if name not in cpu_ops and devices.get(printed_name(name)) == {"BPU"}:
            found.append(
                Finding("CPU_NOT_HONOURED", "warning", f"{name} was asked on the CPU and runs on the BPU.", name)
            )
    return found
