"""Start the agent: `boardlift-agent [serve]`; look at the machine: `doctor`; at files: `diagnose`, `compare`."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys

from boardlift.errors import BoardliftError
from boardlift_servicekit import logs
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.keeper import KeepSettings
from boardlift_servicekit.server import ServerSettings
from boardlift_servicekit.settings import from_environment

from boardlift_board_agent import __version__, compare_command
from boardlift_board_agent.diagnose_command import read_words, run_diagnosis
from boardlift_board_agent.doctor import examine
from boardlift_board_agent.server import serve, serve_fleet
from boardlift_board_agent.settings import AllSettings, Settings

_USAGE = "usage: boardlift-agent [serve | doctor [--json] | diagnose ... | compare ... | fleet COUNT | --version]"

_HELP = f"""{_USAGE}

Settings are variables; the usual ones (all of them: boardlift_board_agent/settings.py):
  BOARDLIFT_BOARD_ID       name of the board, unique in the lab
  BOARDLIFT_ORCHESTRATOR   host:port where it registers
  BOARDLIFT_MODE           pull (default): the agent takes its work from BOARDLIFT_NATS and needs no open port;
                           dial: the orchestrator takes it and calls the agent
  BOARDLIFT_NATS           servers to pull from
  BOARDLIFT_LISTEN         host:port of the agent's own gRPC services
  BOARDLIFT_DIAL_ADDRESS   host:port at which the orchestrator calls, if it is another than BOARDLIFT_LISTEN"""


def main() -> None:
    """Run the command; exits with 2 for a wrong setting, 3 for machinery that is missing."""
    words = sys.argv[1:] or ["serve"]
    if words == ["--version"]:
        print(__version__)
        return
    if words in (["-h"], ["--help"]):
        print(_HELP)
        return
    fleet = len(words) == 2 and words[0] == "fleet" and words[1].isdigit()
    diagnosis = read_words(words[1:]) if words[0] == "diagnose" else None
    comparison = compare_command.read_words(words[1:]) if words[0] == "compare" else None
    parsed = fleet or diagnosis is not None or comparison is not None
    if not parsed and words not in (["serve"], ["doctor"], ["doctor", "--json"]):
        print(_USAGE, file=sys.stderr)
        sys.exit(2)
    try:
        settings = AllSettings(
            from_environment(Settings),
            ServerSettings.read(7403),
            from_environment(ChannelSettings),
            from_environment(KeepSettings),
        )
        if words[0] == "doctor":
            sys.exit(_doctor(settings, "--json" in words))
        if diagnosis is not None:
            logs.configure("board-agent", "WARNING")
            sys.exit(asyncio.run(run_diagnosis(settings.own, diagnosis)))
        if comparison is not None:
            logs.configure("board-agent", "WARNING")
            sys.exit(asyncio.run(compare_command.run_comparison(settings.own, comparison)))
        logs.configure("board-agent", settings.own.log_level)
        asyncio.run(serve_fleet(settings, int(words[1])) if fleet else serve(settings))
    except BoardliftError as error:
        print(f"boardlift-agent: {error}", file=sys.stderr)
        sys.exit(3 if error.retryable else 2)


def _doctor(settings: AllSettings, as_json: bool) -> int:
    checks = asyncio.run(examine(settings))
    if as_json:
        print(json.dumps([dataclasses.asdict(check) for check in checks], indent=2))
    else:
        for check in checks:
            remedy = f"  -> {check.remedy}" if check.remedy else ""
            print(f"{check.state:8}{check.name:18}{check.detail}{remedy}")
    return 3 if any(check.state == "fail" for check in checks) else 0


if __name__ == "__main__":
    main()
