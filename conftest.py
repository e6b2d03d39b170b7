"""Which tests can run here, and a loud end when CI would leave one out.

Markers: `toolchain` needs the vendor toolchain (BOARDLIFT_TOOLCHAIN), `shared` reads the shared data folder beside the
checkout, `containers` needs a Docker Engine. In CI (BOARDLIFT_CI=1) a skip of the first two fails the run.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
SHARED = ROOT.parent / "shared"
TOOLCHAIN = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain")
WITHOUT_TOOLCHAIN = os.environ.get("BOARDLIFT_WITHOUT_TOOLCHAIN") == "1"
IN_CI = os.environ.get("BOARDLIFT_CI") == "1"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and children inherit that: tests of Ctrl-C need the default.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip by name what this machine lacks; refuse to run without the toolchain unless told so."""
    has_toolchain = (TOOLCHAIN / "bin/hb_mapper").is_file()
    needing = [item for item in items if item.get_closest_marker("toolchain")]
    if needing and not has_toolchain and not WITHOUT_TOOLCHAIN:
        raise pytest.UsageError(
            f"{len(needing)} tests need the vendor toolchain and there is none. "
            "Run `make toolchain`, or set BOARDLIFT_WITHOUT_TOOLCHAIN=1 to leave them out."
        )
    for item in items:
        if item.get_closest_marker("toolchain") and not has_toolchain:
            item.add_marker(pytest.mark.skip(reason="left out: BOARDLIFT_WITHOUT_TOOLCHAIN=1"))
        if item.get_closest_marker("shared") and not SHARED.is_dir():
            item.add_marker(pytest.mark.skip(reason="left out: no shared data folder beside the checkout"))
        if item.get_closest_marker("containers") and os.environ.get("BOARDLIFT_CONTAINERS") != "1":
            item.add_marker(pytest.mark.skip(reason="left out: run by `make compose-test`"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in CI which skips are not allowed."""
    bad = _forbidden_skips(terminalreporter)
    if bad:
        terminalreporter.write_line(f"{len(bad)} tests were skipped that must run in CI: {', '.join(bad[:5])}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a CI run that skipped something it should run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _forbidden_skips(reporter) and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _forbidden_skips(reporter: pytest.TerminalReporter) -> list[str]:
    if not IN_CI:
        return []
    return [r.nodeid for r in reporter.stats.get("skipped", []) if "make compose-test" not in str(r.longrepr)]
