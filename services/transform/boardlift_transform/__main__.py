"""Start the transform service: `python -m boardlift_transform`. All settings come from `BOARDLIFT_*` variables."""

from __future__ import annotations

import asyncio
import sys

from boardlift.errors import BoardliftError
from boardlift_servicekit import logs
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.keeper import KeepSettings
from boardlift_servicekit.server import ServerSettings
from boardlift_servicekit.settings import from_environment

from boardlift_transform.server import serve
from boardlift_transform.settings import AllSettings, Settings


def main() -> None:
    """Run until SIGTERM or SIGINT; exits with 2 when a setting is wrong."""
    try:
        settings = AllSettings(
            from_environment(Settings),
            ServerSettings.read(7401),
            from_environment(ChannelSettings),
            from_environment(KeepSettings),
        )
        logs.configure("transform", settings.own.log_level)
        asyncio.run(serve(settings))
    except BoardliftError as error:
        print(f"boardlift-transform-server: {error}", file=sys.stderr)
        sys.exit(3 if error.retryable else 2)


if __name__ == "__main__":
    main()
