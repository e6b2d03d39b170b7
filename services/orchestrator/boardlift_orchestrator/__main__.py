"""Start the orchestrator: `boardlift-orchestrator`. All settings come from `BOARDLIFT_*` variables."""

from __future__ import annotations

import asyncio
import sys

from boardlift.errors import BoardliftError
from boardlift_servicekit import logs
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.server import ServerSettings
from boardlift_servicekit.settings import from_environment

from boardlift_orchestrator.server import serve
from boardlift_orchestrator.settings import AllSettings, RetentionSettings, Settings

_HELP = """usage: boardlift-orchestrator

Settings are variables; the usual ones (all of them: boardlift_orchestrator/settings.py):
  BOARDLIFT_LISTEN          host:port of its gRPC services
  BOARDLIFT_NATS            NATS servers
  BOARDLIFT_STATE_DIR       folder for artifacts, shared by all replicas
  BOARDLIFT_TRANSFORM       host:port of the transform service; empty when its workers pull
  BOARDLIFT_COMPILER        host:port of the compiler service; empty when its workers pull
Boards pull, or are dialled when their agents have BOARDLIFT_MODE=dial. For those:
  BOARDLIFT_TLS_CA          CA of their certificates; without it only this machine is dialled
  BOARDLIFT_DIAL_TOKENS     folder with the token to send to each, in a file named after its id
  BOARDLIFT_DIAL_NETWORKS   networks in which they may be dialled, beside where they register from
  BOARDLIFT_DIAL_PATIENCE   seconds for which one that stops answering is waited for"""


def main() -> None:
    """Run until SIGTERM or SIGINT; exits with 2 when a setting is wrong, with 3 when NATS can't be reached."""
    if sys.argv[1:]:
        print(_HELP)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    try:
        settings = AllSettings(
            from_environment(Settings),
            ServerSettings.read(7400),
            from_environment(ChannelSettings),
            from_environment(RetentionSettings),
        )
        logs.configure("orchestrator", settings.own.log_level)
        asyncio.run(serve(settings))
    except BoardliftError as error:
        print(f"boardlift-orchestrator: {error}", file=sys.stderr)
        sys.exit(3 if error.retryable else 2)


if __name__ == "__main__":
    main()
