"""Turn the end of a tool run into one explained failure; pure.

Everything a run leaves is consulted: exit code, signal, error text, the file it should have written, and why we
stopped it ourselves. A run that looks successful but lacks its closing line, its file or the right architecture is a
failure too.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass

from boardlift_compiler.failure_kind import FailureKind
from boardlift_compiler.failures import FAILURE_KINDS, TEXT_KINDS
from boardlift_compiler.parse_log import LogFacts

MAX_EVIDENCE = 12
OWN_REPORT = re.compile(r"^version: \d", re.M)
"""Begins what the vendor's compiler tells of itself when it dies: versions, folders, command line, stack trace."""
PREFIX = re.compile(r"^\*\*\* ERROR-OCCUR-DURING \{[^}]+\} \*\*\*, error message: ")


@dataclass(frozen=True)
class StageFailure:
    """What the tool said no to, explained."""

    code: str
    """Stable code of the failure table."""
    message: str
    """What is wrong."""
    remedy: str
    """One thing to do about it."""
    subject: str = ""
    """Node, file or parameter at fault; empty when unknown."""
    evidence: tuple[str, ...] = ()
    """The tool's own lines, or the numbers that show it."""
    user_fault: bool = True
    """False when the machinery is at fault."""
    exit_code: int = 0
    """Exit code of the tool; 0 when none ran, 128 + n after signal n."""
    transform_pass: str = ""
    """Id of the transform pass that cures it."""


@dataclass(frozen=True)
class RunEnd:
    """How a tool run ended."""

    exit_code: int
    """Exit code; 128 + n after signal n."""
    timed_out_s: float = 0.0
    """Our time limit in seconds when it was hit, else 0."""
    silent_s: float = 0.0
    """Seconds without output when we stopped it for that, else 0."""
    wrote_model: bool = False
    """True when the compiled model lies where it should."""
    oom_killed: bool = False
    """True when the kernel killed a process for want of memory while the tool ran."""
    disk_full: bool = False
    """True when the work folder's file system had no room left at the end."""


def make_failure(
    code: str, subject: str = "", evidence: tuple[str, ...] = (), exit_code: int = 0, message: str = ""
) -> StageFailure:
    """Build a failure of a known kind.

    Raises:
        KeyError: when the table has no such code, which is a fault of ours.
    """
    return _fill(FAILURE_KINDS[code], subject, evidence, exit_code, message)


def _fill(
    kind: FailureKind, subject: str, evidence: tuple[str, ...], exit_code: int, message: str = ""
) -> StageFailure:
    text = message or kind.cause.replace("{subject}", subject or "(not named)")
    return StageFailure(
        kind.code, text, kind.remedy, subject, evidence[-MAX_EVIDENCE:], kind.user_fault, exit_code, kind.cure
    )


def explain_text(text: str, exit_code: int = 255) -> StageFailure | None:
    """Recognise the tool's error text; None when nothing in it looks like an error."""
    for kind in TEXT_KINDS:
        match = kind.pattern.search(text) if kind.pattern is not None else None
        if match is None:
            continue
        groups = [g for g in match.groupdict().values() if g]
        said = OWN_REPORT.split(text, maxsplit=1)[0].strip() or text
        lines = tuple(PREFIX.sub("", line)[:400] for line in said.splitlines() if line.strip())
        return _fill(kind, groups[0].strip(" '\"") if groups else "", lines, exit_code)
    return None


def explain_os_error(error: OSError) -> StageFailure:
    """Explain why we ourselves could not write what a run needs or store what it left.

    Raises:
        OSError: the same, when neither the disk nor the folder is the reason.
    """
    text = str(error.strerror or error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return make_failure("DISK_FULL", "", (text,))
    if error.errno in (errno.EACCES, errno.EROFS, errno.ENOENT, errno.ENOTDIR):
        return make_failure("WORK_FOLDER_UNWRITABLE", "", (text,))
    raise error


def explain_run(
    end: RunEnd, facts: LogFacts, *, expect_march: str = "", needs_model: bool = True
) -> StageFailure | None:
    """Explain how a run ended; None when it truly succeeded.

    Args:
        end: Exit code, files and our own reasons to stop it.
        facts: What its log says.
        expect_march: Architecture the log must name; empty to skip (checker prints none).
        needs_model: True for makertbin, False for checker.
    """
    tail = tuple(facts.tail[-MAX_EVIDENCE:])
    if end.silent_s:
        return make_failure("HANG", f"{end.silent_s:.0f}", tail, end.exit_code)
    if end.timed_out_s:
        return make_failure("TIMEOUT", f"{end.timed_out_s:.0f}", tail, end.exit_code)
    errors = "\n".join(facts.errors)
    if end.disk_full and end.exit_code != 0:
        return make_failure("DISK_FULL", "", tail, end.exit_code)
    if end.exit_code > 128 and end.exit_code < 193:
        return _explain_signal(end, facts, errors)
    failure = _explain_success(end, facts, expect_march, needs_model, tail) if end.exit_code == 0 else None
    if end.exit_code == 0 and (failure is None or not errors or failure.code == "MARCH_MISMATCH"):
        return failure
    found = explain_text(errors or "\n".join(facts.tail), end.exit_code)
    if found is not None and found.code == "KILLED" and end.oom_killed:
        return make_failure("OUT_OF_MEMORY", "", found.evidence, end.exit_code)
    return found or failure or make_failure("EXIT_CODE", str(end.exit_code), tail, end.exit_code)


def _explain_signal(end: RunEnd, facts: LogFacts, errors: str) -> StageFailure:
    signal = end.exit_code - 128
    tail = tuple(facts.tail[-MAX_EVIDENCE:])
    no_memory = "std::bad_alloc" in errors or "std::bad_alloc" in "\n".join(tail)
    if no_memory or (signal == 9 and end.oom_killed):
        return make_failure("OUT_OF_MEMORY", "", tail, end.exit_code)
    if signal == 4:
        return make_failure("CPU_UNSUPPORTED", "", tail, end.exit_code)
    if signal in (9, 15, 2, 1):
        return make_failure("KILLED", str(signal), tail, end.exit_code)
    where = f" during {facts.unfinished_stage}" if facts.unfinished_stage else ""
    return make_failure("CRASH", f"{signal}{where}", tail, end.exit_code)


def _explain_success(
    end: RunEnd, facts: LogFacts, expect_march: str, needs_model: bool, tail: tuple[str, ...]
) -> StageFailure | None:
    if not (facts.converted if needs_model else facts.checked):
        return make_failure("NOT_CLOSED", "", tail, end.exit_code)
    if needs_model and not end.wrote_model:
        return make_failure("NO_COMPILED_MODEL", "", tail, end.exit_code)
    if expect_march and facts.march != expect_march:
        return make_failure("MARCH_MISMATCH", facts.march or "an unnamed architecture", tail, end.exit_code)
    return None
