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
from boardlift_orchestrator.settings import AllSettings, Settings


def main() -> None:
    """Run until SIGTERM or SIGINT; exits with 2 when a setting is wrong, with 3 when NATS can't be reached."""
    try:
        settings = AllSettings(from_environment(Settings), ServerSettings.read(7400), from_environment(ChannelSettings))
        logs.configure("orchestrator", settings.own.log_level)
        asyncio.run(serve(settings))
    except BoardliftError as error:
        print(f"boardlift-orchestrator: {error}", file=sys.stderr)
        sys.exit(3 if error.retryable else 2)


if __name__ == "__main__":
    main()
